//! The witness of leases: who really renewed, and when, by the order of commits. It knows nothing of
//! observers, guards or switches, and sees every declaration and every write of a scheduler.
//!
//! * I25: who renewed less than a TTL ago is not declared lost;
//! * I26: time in which nobody was heard (the store, or all servers, were away) is nobody's silence;
//!   and many workers that fall silent together are given one TTL more;
//! * I9: a scheduler that was declared lost changes nothing.

use crate::time::{Time, at_once};
use crate::trace::Trace;
use fencepost_core::id::JobId;
use fencepost_core::state::{JobKind, JobState};
use fencepost_engine::Cx;
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::lease;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an observer's readings may blur: two of its scans.
const BLUR: Duration = Duration::from_secs(4);

/// What is known of leases. Clones are the same.
#[derive(Clone)]
pub struct Witness {
    time: Time,
    trace: Trace,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    live: BTreeMap<JobId, Known>,
    /// The job of each process that registered last.
    newest: BTreeMap<String, JobId>,
    /// Every job that ever was.
    seen: BTreeSet<JobId>,
    lost: BTreeSet<JobId>,
    /// When a server or a worker was heard last.
    heard: Duration,
    /// When workers were declared lost, with their TTLs, and by which job: a fresh scheduler cannot
    /// know what another one declared.
    gone: Vec<(Duration, Duration, Option<JobId>)>,
    /// The store is another one, whose rows tell nothing of what was really renewed.
    is_unsure: bool,
    /// Who declared what is not worked off yet.
    unsettled: BTreeMap<JobId, Option<JobId>>,
}

struct Known {
    name: String,
    kind: JobKind,
    ttl: Duration,
    seq: i64,
    renewed: Duration,
    /// Of the time since then, in which others were heard.
    silent: Duration,
    /// It has not renewed since the store became another one.
    is_unsure: bool,
}

impl Witness {
    pub fn new(time: Time, trace: Trace) -> Self {
        Self { time, trace, state: Arc::default() }
    }

    /// A transaction of a process was committed and changed something.
    pub fn after_commit(&self, process: &str, op: &str, cx: &Cx) {
        let now = self.time.elapsed();
        match op {
            "register" | "renew" | "renew_leases" | "leave" => self.hear(now, cx),
            "declare" => self.lose(process, now, cx),
            "settle_page" => self.settle(process, cx),
            _ => {}
        }
        self.stale(process, op);
    }

    /// The store is another one: what was known of it is worth nothing.
    pub fn forget(&self) {
        let (heard, is_unsure) = (self.time.elapsed(), true);
        let mut state = self.state();
        // Which process has which job stays true.
        let newest = std::mem::take(&mut state.newest);
        let seen = std::mem::take(&mut state.seen);
        *state = State { newest, seen, heard, is_unsure, ..State::default() };
    }

    /// Whether the newest job of that process was declared lost; also if it never was one.
    pub fn has_lost(&self, process: &str) -> bool {
        let state = self.state();
        state.newest.get(process).is_none_or(|job| state.lost.contains(job))
    }

    fn hear(&self, now: Duration, cx: &Cx) {
        let Some(live) = live(cx) else { return };
        let mut state = self.state();
        let mut was_heard = false;
        for job in &live {
            was_heard |= state.look(job, now);
        }
        state.is_unsure = false;
        let ids: BTreeSet<JobId> = live.iter().map(|job| job.job_id).collect();
        // Those that left in order. (The lost are taken out as they are declared.)
        state.live.retain(|id, _| ids.contains(id));
        if was_heard {
            state.credit(now);
        }
    }

    fn lose(&self, process: &str, now: Duration, cx: &Cx) {
        let Some(live) = live(cx) else { return };
        let ids: BTreeSet<JobId> = live.iter().map(|job| job.job_id).collect();
        let mut broken = Vec::new();
        let mut state = self.state();
        let by = state.newest.get(process).copied();
        let missing: Vec<JobId> =
            state.live.keys().filter(|id| !ids.contains(id)).copied().collect();
        for id in missing {
            let is_lost = state_of(cx, id) == Some(JobState::Lost);
            let Some(known) = state.live.remove(&id) else { continue };
            if !is_lost {
                continue;
            }
            broken.extend(state.judge(&known, now, by));
            state.lost.insert(id);
            state.unsettled.insert(id, by);
            if known.kind == JobKind::Worker {
                state.gone.push((now, known.ttl, by));
                self.trace.mark("worker_lost_by_expiry");
            } else {
                self.trace.mark("role_lost_by_expiry");
            }
        }
        drop(state);
        for what in broken {
            self.trace.violate(what);
        }
    }

    /// What a lost job left is worked off by another one than the one that declared it.
    fn settle(&self, process: &str, cx: &Cx) {
        let mut state = self.state();
        if state.unsettled.is_empty() {
            return;
        }
        let Some(departed) = departed(cx) else { return };
        let by = state.newest.get(process).copied();
        let done: Vec<JobId> =
            state.unsettled.keys().filter(|id| !departed.contains(id)).copied().collect();
        for id in done {
            if state.unsettled.remove(&id).is_some_and(|declarer| declarer != by) {
                self.trace.mark("page_after_crash");
            }
        }
    }

    fn stale(&self, process: &str, op: &str) {
        let state = self.state();
        let job = state.newest.get(process).filter(|job| state.lost.contains(job)).copied();
        drop(state);
        if let Some(job) = job.filter(|_| process.starts_with("scheduler")) {
            let what = format!("I9: {process} commits {op} as job {job}, which is lost");
            self.trace.violate(what);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes note of a live job; whether a server or a worker is heard by it.
    fn look(&mut self, job: &Job, now: Duration) -> bool {
        let Some(ttl) = job.lease_ttl else { return false };
        let known = self.live.get_mut(&job.job_id);
        match known {
            Some(known) if known.seq == job.renew_seq => return false,
            Some(known) => {
                (known.seq, known.renewed, known.silent) = (job.renew_seq, now, Duration::ZERO);
                known.is_unsure = false;
            }
            None => {
                if self.seen.insert(job.job_id) {
                    self.newest.insert(job.name.clone(), job.job_id);
                }
                let known = Known {
                    name: job.name.clone(),
                    kind: job.kind,
                    ttl: ttl.to_std(),
                    seq: job.renew_seq,
                    renewed: now,
                    silent: Duration::ZERO,
                    is_unsure: self.is_unsure,
                };
                self.live.insert(job.job_id, known);
            }
        }
        matches!(job.kind, JobKind::Server | JobKind::Worker)
    }

    /// What passed since somebody was heard counts as silence of the others, a third of a TTL at most.
    fn credit(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.heard);
        for known in self.live.values_mut() {
            // Nobody can know when a gap of all of them began: what is credited for it is bounded.
            let most = known.ttl / 3 + BLUR;
            known.silent += gap.min(most).min(now.saturating_sub(known.renewed));
        }
        self.heard = now;
    }

    /// What is wrong with a declaration, if anything is.
    fn judge(&mut self, known: &Known, now: Duration, by: Option<JobId>) -> Option<String> {
        if known.is_unsure {
            return None;
        }
        let (name, ttl) = (&known.name, known.ttl);
        let since = now.saturating_sub(known.renewed);
        if since < ttl {
            return Some(format!("I25: {name} is declared lost {since:?} after it renewed"));
        }
        if known.kind != JobKind::Worker {
            return None;
        }
        let last = now.saturating_sub(self.heard);
        let silent = known.silent + last.min(ttl / 3 + BLUR);
        if silent + BLUR < ttl {
            let text = format!("of its silence of {since:?} others were heard in {silent:?} only");
            return Some(format!("I26: {name} is declared lost, but {text}"));
        }
        self.gone.retain(|(at, ttl, _)| now.saturating_sub(*at) <= *ttl);
        let workers = || self.live.values().filter(|other| other.kind == JobKind::Worker);
        // Much less than this worker's silence: its observers cannot know yet.
        let is_silent =
            |other: &&Known| other.silent * 4 >= silent * 3 && other.silent * 4 >= ttl * 3;
        let gone = self.gone.iter().filter(|(_, _, declarer)| *declarer == by).count() + 1;
        let total = workers().count() + gone;
        let many = workers().filter(is_silent).count() + gone;
        if many >= 3 && many * 2 >= total && silent + BLUR < ttl * 2 {
            let text = format!("{many} of {total} workers fell silent together");
            return Some(format!("I26: {name} is declared lost after {silent:?}; {text}"));
        }
        None
    }
}

fn live(cx: &Cx) -> Option<Vec<Job>> {
    let read = async { job::live(&cx.store.read("look").await?).await };
    at_once(read)?.ok()
}

fn state_of(cx: &Cx, id: JobId) -> Option<JobState> {
    let read = async { job::get(&cx.store.read("look").await?, id).await };
    Some(at_once(read)?.ok()??.state)
}

fn departed(cx: &Cx) -> Option<BTreeSet<JobId>> {
    let read = async { lease::departed(&cx.store.read("look").await?, u32::MAX).await };
    Some(at_once(read)?.ok()?.into_iter().map(|job| job.job).collect())
}
