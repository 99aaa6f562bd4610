//! The audit: what must be true of any snapshot of the store, whatever crashed.
//!
//! The simulator checks it after every step, the tests at their ends, and `fencepost doctor` on
//! demand. Each violation names its invariant of 1-semantics section 8.

use crate::id::Token;
use crate::state::{AttemptState, Outcome, RunState, TiState};
use std::collections::{BTreeMap, BTreeSet};

/// A task instance as the audit sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTi {
    pub run: i64,
    pub task: u32,
    pub map_index: i32,
    pub name: String,
    pub state: TiState,
    pub token: Option<Token>,
    pub run_state: RunState,
    /// A timer is stored (`up_for_retry`).
    pub has_timer: bool,
    /// Its end is not counted downstream yet.
    pub forward_due: bool,
    pub max_tries: u32,
    pub infra_retries: u32,
    pub clears: u32,
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
    /// It has an owner's row.
    pub owned: bool,
    pub started: bool,
    pub holds: u32,
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
    pub tis: Vec<AuditTi>,
    pub attempts: Vec<AuditAttempt>,
    pub pools: Vec<AuditPool>,
    /// Slots of schedules with more than one run: (dag, slot).
    pub doubled_slots: Vec<(String, String)>,
    /// Finished runs with instances that are not finished: (dag, run).
    pub unfinished_in_finished_runs: Vec<(String, String)>,
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

type TiKey = (i64, u32, i32);

/// Every violation in a snapshot.
pub fn audit(snapshot: &Snapshot) -> Vec<Violation> {
    let mut found = Vec::new();
    let attempts = by_ti(snapshot);
    for ti in &snapshot.tis {
        let own = attempts.get(&(ti.run, ti.task, ti.map_index)).map_or(&[][..], Vec::as_slice);
        single_owner(ti, own, &mut found);
        state_agrees(ti, own, &mut found);
        budget(ti, own, &mut found);
        no_ghost(ti, own, &mut found);
    }
    tokens_rise(snapshot, &mut found);
    holds(snapshot, &mut found);
    slots(snapshot, &mut found);
    found.sort();
    found
}

fn by_ti(snapshot: &Snapshot) -> BTreeMap<TiKey, Vec<&AuditAttempt>> {
    let mut out: BTreeMap<TiKey, Vec<&AuditAttempt>> = BTreeMap::new();
    for attempt in &snapshot.attempts {
        out.entry((attempt.run, attempt.task, attempt.map_index)).or_default().push(attempt);
    }
    for list in out.values_mut() {
        list.sort_by_key(|attempt| attempt.token);
    }
    out
}

fn open<'a>(own: &'a [&AuditAttempt]) -> impl Iterator<Item = &'a AuditAttempt> {
    own.iter().copied().filter(|attempt| attempt.state != AttemptState::Ended)
}

fn single_owner(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let count = open(own).count();
    if count > 1 {
        found.push(violation("I1", &ti.name, format!("{count} attempts are open at once")));
    }
    for attempt in own {
        let claimed = !matches!(attempt.state, AttemptState::Queued | AttemptState::Ended);
        if claimed && !attempt.owned {
            let what = format!("attempt {} is {} without an owner", attempt.token, attempt.state);
            found.push(violation("I1", &ti.name, what));
        }
        if (attempt.state == AttemptState::Ended) != attempt.outcome.is_some() {
            let what = format!("attempt {}: state and outcome disagree", attempt.token);
            found.push(violation("I4", &ti.name, what));
        }
    }
}

/// The states of an instance and of its newest attempt must belong together.
fn state_agrees(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let newest = own.last();
    if newest.map(|attempt| attempt.token) != ti.token {
        let what = format!(
            "its token {} is not its newest attempt's",
            ti.token.map_or_else(|| "-".into(), |token| token.to_string())
        );
        found.push(violation("I3", &ti.name, what));
    }
    let state = newest.map(|attempt| attempt.state);
    use AttemptState::{Claimed, LostOpen, Queued, Running, Stopping};
    let agrees = match ti.state {
        TiState::Queued => matches!(state, Some(Queued | Claimed)),
        TiState::Running => matches!(state, Some(Running | Stopping)),
        TiState::Restarting => matches!(state, Some(Stopping)),
        TiState::Held => !matches!(state, Some(Queued | Claimed | Running)),
        TiState::None
        | TiState::Scheduled
        | TiState::Deferred
        | TiState::UpForRetry
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => !matches!(state, Some(Queued | Claimed | Running | Stopping)),
    };
    // A cancel is final at once while an attempt stays open under "may still be running".
    if !agrees && !(ti.state.is_finished() && state == Some(LostOpen)) {
        let shown = state.map_or("no attempt", AttemptState::as_str);
        found.push(violation("I4", &ti.name, format!("is {} with {shown}", ti.state)));
    }
}

fn budget(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let deferred = own.iter().filter(|a| a.outcome == Some(Outcome::Deferred) && a.started);
    let never = own.iter().filter(|a| a.outcome == Some(Outcome::NeverRan) && a.started);
    let started = own.iter().filter(|attempt| attempt.started).count();
    let free = deferred.count() + never.count();
    let allowed = ti.max_tries as usize + ti.infra_retries as usize + ti.clears as usize;
    if started.saturating_sub(free) > allowed {
        let what = format!("{started} attempts started, at most {allowed} are allowed");
        found.push(violation("I8", &ti.name, what));
    }
}

/// A non-terminal instance of a running run must have something that moves it on.
fn no_ghost(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let what = match ti.state {
        TiState::UpForRetry if !ti.has_timer => "waits for a retry without a timer",
        TiState::Queued if open(own).next().is_none() => "is queued without an attempt",
        _ if ti.state.is_finished() || ti.run_state != RunState::Running => return,
        TiState::Running | TiState::Restarting if open(own).next().is_none() => {
            "runs without an attempt"
        }
        _ => return,
    };
    found.push(violation("I24", &ti.name, what.into()));
}

fn tokens_rise(snapshot: &Snapshot, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<TiKey, (u32, Token)> = BTreeMap::new();
    let mut sorted: Vec<&AuditAttempt> = snapshot.attempts.iter().collect();
    sorted.sort_by_key(|attempt| (attempt.run, attempt.task, attempt.map_index, attempt.number));
    for attempt in sorted {
        let subject = format!("attempt {}", attempt.token);
        if !seen.insert(attempt.token) {
            found.push(violation("I2", &subject, "its token exists twice".into()));
        }
        if snapshot.highest_minted.is_some_and(|highest| attempt.token > highest) {
            found.push(violation("I2", &subject, "is above the store's counter".into()));
        }
        let key = (attempt.run, attempt.task, attempt.map_index);
        if let Some((number, token)) = last.insert(key, (attempt.number, attempt.token))
            && (token >= attempt.token || number == attempt.number)
        {
            found.push(violation("I2", &subject, format!("does not rise above {token}")));
        }
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
    for (dag, run) in &snapshot.unfinished_in_finished_runs {
        let subject = format!("{dag} {run}");
        found.push(violation("I24", &subject, "is over with unfinished instances".into()));
    }
}

fn violation(invariant: &'static str, subject: &str, what: String) -> Violation {
    Violation { invariant, subject: subject.into(), what }
}
