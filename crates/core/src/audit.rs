//! The audit: what must be true of any snapshot of the store, whatever crashed.
//!
//! The simulator checks it after every step, the tests at their ends, and `fencepost doctor` on
//! demand. Each violation names its invariant of 1-semantics section 8. What a snapshot cannot
//! show is deliberately absent: what happened between two of them (the transition log's history),
//! processes, sinks, and limits that a newer DAG version may have lowered (`max_active_*`).

mod budgets;
mod counts;
mod ghosts;
mod owners;

use crate::id::Token;
use crate::state::{AttemptState, CountedAs, Outcome, RunState, TiState};
use crate::trigger_rule::UpstreamCounts;
use std::collections::BTreeMap;

/// A task instance as the audit sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTi {
    pub run: i64,
    pub task: u32,
    pub map_index: i32,
    pub name: String,
    pub state: TiState,
    pub token: Option<Token>,
    /// A timer (of `up_for_retry`) or a trigger (of `deferred`) is stored for it.
    pub has_timer: bool,
    /// Its end is not counted downstream yet.
    pub forward_due: bool,
    /// It is marked to be decided again, or to wait for the previous run.
    pub recheck: bool,
    /// Of the task, on its head (lowest map index) only.
    pub upstream: UpstreamCounts,
    pub try_number: u32,
    pub max_tries: u32,
    /// Dispatches so far.
    pub attempts: u32,
    pub infra_losses: u32,
    pub clears: u32,
    /// The state in the last line of the transition log about it, if there is one.
    pub logged: Option<TiState>,
}

/// An attempt as the audit sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAttempt {
    pub token: Token,
    pub number: u32,
    pub run: i64,
    pub task: u32,
    pub map_index: i32,
    pub state: AttemptState,
    pub outcome: Option<Outcome>,
    pub counted_as: Option<CountedAs>,
    /// It has an owner's row.
    pub owned: bool,
    /// Its owner is over and worked off: nobody will settle it any more.
    pub abandoned: bool,
    pub started: bool,
    pub holds: u32,
}

/// A run as the audit sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRun {
    pub run: i64,
    pub name: String,
    pub state: RunState,
    /// Instances that it still waits for, as it counts them.
    pub unfinished: i64,
}

/// A task of a run's DAG version. A snapshot without it checks less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTask {
    pub run: i64,
    pub task: u32,
    pub upstreams: Vec<u32>,
    pub infra_retries: u32,
}

/// Outputs of a task instance, and the attempt that they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOutput {
    pub run: i64,
    pub task: u32,
    pub map_index: i32,
    pub token: Token,
}

/// A pool and the sum of the holds on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPool {
    pub name: String,
    pub slots: i64,
    pub held: i64,
    /// Its size was lowered below what was held: the excess drains by itself.
    pub shrunk: bool,
}

/// A snapshot of the store, read in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub runs: Vec<AuditRun>,
    pub tasks: Vec<AuditTask>,
    pub tis: Vec<AuditTi>,
    pub attempts: Vec<AuditAttempt>,
    pub outputs: Vec<AuditOutput>,
    pub pools: Vec<AuditPool>,
    /// Holds of attempts that do not exist.
    pub stray_holds: Vec<Token>,
    /// Slots of schedules with more than one run: (dag, slot).
    pub doubled_slots: Vec<(String, String)>,
    /// The counter of the store as a token: no attempt may be above it.
    pub highest_minted: Option<Token>,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// `I1` to `I34`.
    pub invariant: &'static str,
    /// Whose: a task instance, a pool, a slot.
    pub subject: String,
    pub what: String,
}

/// Every violation in a snapshot.
pub fn audit(snapshot: &Snapshot) -> Vec<Violation> {
    let index = Index::of(snapshot);
    let mut found = Vec::new();
    for ti in &snapshot.tis {
        let own = index.attempts_of(ti);
        owners::check(ti, own, &mut found);
        budgets::check(ti, own, index.task(ti.run, ti.task), &mut found);
        ghosts::check(&index, ti, own, &mut found);
        logged(ti, &mut found);
    }
    counts::check(&index, snapshot, &mut found);
    owners::tokens_rise(snapshot, &mut found);
    owners::outputs(&index, snapshot, &mut found);
    holds(snapshot, &mut found);
    slots(snapshot, &mut found);
    found.sort();
    found
}

type TaskKey = (i64, u32);

/// The rows of a snapshot by what they belong to.
struct Index<'a> {
    attempts: BTreeMap<(i64, u32, i32), Vec<&'a AuditAttempt>>,
    runs: BTreeMap<i64, &'a AuditRun>,
    tasks: BTreeMap<TaskKey, &'a AuditTask>,
    /// Instances by map index: the first is the head.
    instances: BTreeMap<TaskKey, Vec<&'a AuditTi>>,
}

impl<'a> Index<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut attempts: BTreeMap<_, Vec<&AuditAttempt>> = BTreeMap::new();
        for attempt in &snapshot.attempts {
            let key = (attempt.run, attempt.task, attempt.map_index);
            attempts.entry(key).or_default().push(attempt);
        }
        for list in attempts.values_mut() {
            list.sort_by_key(|attempt| attempt.token);
        }
        let mut instances: BTreeMap<TaskKey, Vec<&AuditTi>> = BTreeMap::new();
        for ti in &snapshot.tis {
            instances.entry((ti.run, ti.task)).or_default().push(ti);
        }
        for list in instances.values_mut() {
            list.sort_by_key(|ti| ti.map_index);
        }
        Self {
            attempts,
            runs: snapshot.runs.iter().map(|run| (run.run, run)).collect(),
            tasks: snapshot.tasks.iter().map(|task| ((task.run, task.task), task)).collect(),
            instances,
        }
    }

    fn attempts_of(&self, ti: &AuditTi) -> &[&'a AuditAttempt] {
        self.attempts.get(&(ti.run, ti.task, ti.map_index)).map_or(&[], Vec::as_slice)
    }

    fn task(&self, run: i64, task: u32) -> Option<&'a AuditTask> {
        self.tasks.get(&(run, task)).copied()
    }

    fn instances(&self, run: i64, task: u32) -> &[&'a AuditTi] {
        self.instances.get(&(run, task)).map_or(&[], Vec::as_slice)
    }

    fn run_state(&self, run: i64) -> Option<RunState> {
        self.runs.get(&run).map(|run| run.state)
    }
}

fn open<'a>(own: &'a [&AuditAttempt]) -> impl Iterator<Item = &'a AuditAttempt> {
    own.iter().copied().filter(|attempt| attempt.state != AttemptState::Ended)
}

/// Every change of state is a line of the log, so the last line tells the state.
fn logged(ti: &AuditTi, found: &mut Vec<Violation>) {
    if let Some(logged) = ti.logged.filter(|logged| *logged != ti.state) {
        let what = format!("is {}, its last line in the log says {logged}", ti.state);
        found.push(violation("I34", &ti.name, what));
    }
}

fn holds(snapshot: &Snapshot, found: &mut Vec<Violation>) {
    for attempt in &snapshot.attempts {
        let active = !matches!(attempt.state, AttemptState::Ended | AttemptState::LostOpen);
        let subject = format!("attempt {}", attempt.token);
        if active && attempt.holds != 1 {
            let what = format!("is {} and has {} holds", attempt.state, attempt.holds);
            found.push(violation("I14", &subject, what));
        }
        if attempt.state == AttemptState::Ended && attempt.holds != 0 {
            found.push(violation("I32", &subject, "ended and holds slots".into()));
        }
    }
    for token in &snapshot.stray_holds {
        let subject = format!("attempt {token}");
        found.push(violation("I32", &subject, "does not exist and holds slots".into()));
    }
    for pool in &snapshot.pools {
        if pool.held > pool.slots && !pool.shrunk {
            let what = format!("{} slots held of {}", pool.held, pool.slots);
            found.push(violation("I14", &format!("pool {}", pool.name), what));
        }
    }
}

fn slots(snapshot: &Snapshot, found: &mut Vec<Violation>) {
    for (dag, slot) in &snapshot.doubled_slots {
        let subject = format!("dag {dag}");
        found.push(violation("I17", &subject, format!("slot {slot} has more than one run")));
    }
}

fn violation(invariant: &'static str, subject: &str, what: String) -> Violation {
    Violation { invariant, subject: subject.into(), what }
}
