//! What must happen to a tree, and when: the shim's decisions, without any doing.
//!
//! Times are nanoseconds on the page's clock. The loop asks [`Course::next`] after every wake-up
//! and sleeps until [`Course::wake_at`]. A simulator of processes asks it too.

use crate::clock::NS_PER_MS;
use crate::outcome::Reason;
use crate::spec::ShimSpec;

/// Between two rounds of SIGKILL, for trees that can fork between looking and killing.
const KILL_AGAIN: u64 = 50 * NS_PER_MS;
/// What a main process left behind gets at most this long after SIGTERM.
const LEAVE_GRACE: u64 = 5_000 * NS_PER_MS;

/// What the loop sees.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub deadline: u64,
    pub stop: Option<(Reason, bool)>,
    pub last_activity: u64,
    pub main_ended: bool,
    pub tree_empty: bool,
}

/// What the loop is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Sleep.
    Wait,
    /// SIGTERM to the main process's group.
    Terminate(Reason),
    /// SIGTERM to what the main process left behind.
    TerminateRest,
    /// SIGKILL to the whole tree.
    Kill,
    /// The tree is empty: write the outcome.
    Finish,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    Ending { kill_at: u64, rest_told: bool },
    Killing { again_at: u64 },
}

/// Where one attempt stands.
#[derive(Debug)]
pub struct Course {
    stage: Stage,
    grace: u64,
    margin: u64,
    time_out_at: Option<u64>,
    stall: Option<u64>,
    reason: Option<Reason>,
}

impl Course {
    pub fn new(spec: &ShimSpec, started_at: u64) -> Self {
        let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
        Self {
            stage: Stage::Running,
            grace: ns(spec.grace_ms()),
            margin: ns(spec.margin_ms),
            time_out_at: spec.execution_timeout_ms.map(|ms| started_at.saturating_add(ns(ms))),
            stall: spec.stall_timeout_ms.map(ns),
            reason: None,
        }
    }

    /// Why the tree was signalled while the main process ran.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    fn fence_at(&self, deadline: u64) -> u64 {
        deadline.saturating_sub(self.grace.saturating_add(self.margin))
    }

    fn kill_at(&self, kill_at: u64, deadline: u64) -> u64 {
        kill_at.min(deadline.saturating_sub(self.margin))
    }

    /// Why a running main process must be stopped, if it must.
    fn cause(&self, view: &View, now: u64) -> Option<Reason> {
        if let Some((reason, _)) = view.stop {
            return Some(reason);
        }
        if now >= self.fence_at(view.deadline) {
            return Some(Reason::SelfFence);
        }
        if self.time_out_at.is_some_and(|at| now >= at) {
            return Some(Reason::ExecutionTimeout);
        }
        let stalled = |limit: u64| now >= view.last_activity.saturating_add(limit);
        self.stall.is_some_and(stalled).then_some(Reason::StallTimeout)
    }

    pub fn next(&mut self, view: &View, now: u64) -> Act {
        if view.main_ended && view.tree_empty {
            return Act::Finish;
        }
        let kill_now = view.stop.is_some_and(|(_, kill_now)| kill_now) || now >= view.deadline;
        match self.stage {
            Stage::Running if view.main_ended => {
                self.stage = Stage::Ending {
                    kill_at: now.saturating_add(self.grace.min(LEAVE_GRACE)),
                    rest_told: true,
                };
                Act::TerminateRest
            }
            Stage::Running => match self.cause(view, now) {
                None => Act::Wait,
                Some(reason) => {
                    self.reason = Some(reason);
                    if kill_now {
                        return self.kill(now);
                    }
                    let kill_at = now.saturating_add(self.grace);
                    self.stage = Stage::Ending { kill_at, rest_told: false };
                    Act::Terminate(reason)
                }
            },
            Stage::Ending { kill_at, rest_told } => {
                if kill_now || now >= self.kill_at(kill_at, view.deadline) {
                    return self.kill(now);
                }
                if view.main_ended && !rest_told {
                    let kill_at = kill_at.min(now.saturating_add(LEAVE_GRACE));
                    self.stage = Stage::Ending { kill_at, rest_told: true };
                    return Act::TerminateRest;
                }
                Act::Wait
            }
            Stage::Killing { again_at } if now >= again_at => self.kill(now),
            Stage::Killing { .. } => Act::Wait,
        }
    }

    fn kill(&mut self, now: u64) -> Act {
        self.stage = Stage::Killing { again_at: now.saturating_add(KILL_AGAIN) };
        Act::Kill
    }

    /// The next instant at which something is due although nothing happens.
    pub fn wake_at(&self, deadline: u64, last_activity: u64) -> u64 {
        match self.stage {
            Stage::Running => {
                let stall_at = self.stall.map(|limit| last_activity.saturating_add(limit));
                [Some(self.fence_at(deadline)), self.time_out_at, stall_at]
                    .into_iter()
                    .flatten()
                    .fold(u64::MAX, u64::min)
            }
            Stage::Ending { kill_at, .. } => self.kill_at(kill_at, deadline),
            Stage::Killing { again_at } => again_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockKind;
    use crate::spec::{Containment, Resources, VERSION};

    const S: u64 = 1_000 * NS_PER_MS;

    fn course(timeout_ms: Option<u64>, stall_ms: Option<u64>) -> Course {
        let spec = ShimSpec {
            private: None,
            version: VERSION,
            token: "1".into(),
            attempt_id: "a".into(),
            argv: vec!["x".into()],
            env: Vec::new(),
            cwd: "/".into(),
            run_as_user: None,
            containment: Containment::Auto,
            kill_grace_ms: 10_000,
            worker_kill_grace_ms: 30_000,
            execution_timeout_ms: timeout_ms,
            stall_timeout_ms: stall_ms,
            resources: Resources::default(),
            keeps: false,
            graceful_exit_codes: Vec::new(),
            log_limit: 1,
            clock: ClockKind::Monotonic,
            margin_ms: 1_000,
            result_file: None,
            outputs: Vec::new(),
        };
        Course::new(&spec, 0)
    }

    fn view() -> View {
        View {
            deadline: 100 * S,
            stop: None,
            last_activity: 0,
            main_ended: false,
            tree_empty: false,
        }
    }

    #[test]
    fn an_unrenewed_lease_ends_in_order_before_the_deadline() {
        let mut course = course(None, None);
        assert_eq!(course.wake_at(100 * S, 0), 89 * S);
        assert_eq!(course.next(&view(), 88 * S), Act::Wait);
        assert_eq!(course.next(&view(), 89 * S), Act::Terminate(Reason::SelfFence));
        assert_eq!(course.wake_at(100 * S, 0), 99 * S);
        assert_eq!(course.next(&view(), 98 * S), Act::Wait);
        assert_eq!(course.next(&view(), 99 * S), Act::Kill);
        assert_eq!(course.next(&view(), 99 * S + 1), Act::Wait);
        assert_eq!(course.next(&view(), 99 * S + KILL_AGAIN), Act::Kill);
        let gone = View { main_ended: true, tree_empty: true, ..view() };
        assert_eq!(course.next(&gone, 100 * S), Act::Finish);
        assert_eq!(course.reason(), Some(Reason::SelfFence));
    }

    #[test]
    fn a_renewed_lease_is_not_fenced_and_a_lowered_one_is() {
        let mut course = course(None, None);
        let renewed = View { deadline: 200 * S, ..view() };
        assert_eq!(course.next(&renewed, 95 * S), Act::Wait);
        let lowered = View { deadline: 50 * S, ..view() };
        assert_eq!(course.next(&lowered, 95 * S), Act::Kill, "after the deadline: at once");
    }

    #[test]
    fn what_is_left_behind_is_ended_without_a_reason() {
        let mut course = course(None, None);
        let left = View { main_ended: true, ..view() };
        assert_eq!(course.next(&left, S), Act::TerminateRest);
        assert_eq!(course.next(&left, 5 * S), Act::Wait);
        assert_eq!(course.next(&left, 6 * S), Act::Kill, "min(kill_grace, 5 s)");
        assert_eq!(course.reason(), None);
    }

    #[test]
    fn a_main_process_that_ended_first_is_not_stopped() {
        let mut course = course(Some(1_000), None);
        let ended = View {
            main_ended: true,
            tree_empty: true,
            stop: Some((Reason::Cancel, true)),
            ..view()
        };
        assert_eq!(course.next(&ended, 50 * S), Act::Finish);
        assert_eq!(course.reason(), None);
    }

    #[test]
    fn timeouts_and_stops_name_their_reason_and_kill_now_skips_the_grace() {
        let mut timed = course(Some(3_000), None);
        assert_eq!(timed.next(&view(), 3 * S - 1), Act::Wait);
        assert_eq!(timed.next(&view(), 3 * S), Act::Terminate(Reason::ExecutionTimeout));

        let mut stalled = course(None, Some(4_000));
        let active = View { last_activity: 10 * S, ..view() };
        assert_eq!(stalled.next(&active, 14 * S - 1), Act::Wait);
        assert_eq!(stalled.next(&active, 14 * S), Act::Terminate(Reason::StallTimeout));

        let mut stopped = course(None, None);
        let asked = View { stop: Some((Reason::Cancel, false)), ..view() };
        assert_eq!(stopped.next(&asked, S), Act::Terminate(Reason::Cancel));
        let now = View { stop: Some((Reason::Cancel, true)), ..view() };
        assert_eq!(stopped.next(&now, 2 * S), Act::Kill);

        let mut killed = course(None, None);
        assert_eq!(killed.next(&now, S), Act::Kill);
        assert_eq!(killed.reason(), Some(Reason::Cancel));
    }

    #[test]
    fn daemons_of_a_stopped_task_hear_of_it_when_the_main_process_is_gone() {
        let mut course = course(None, None);
        let asked = View { stop: Some((Reason::Clear, false)), ..view() };
        assert_eq!(course.next(&asked, S), Act::Terminate(Reason::Clear));
        let left = View { main_ended: true, ..asked };
        assert_eq!(course.next(&left, 2 * S), Act::TerminateRest);
        assert_eq!(course.next(&left, 3 * S), Act::Wait);
        assert_eq!(course.next(&left, 7 * S), Act::Kill);
    }
}
