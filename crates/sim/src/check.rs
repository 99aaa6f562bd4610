//! The checks: the audit of the whole store after commits, and what must be true at the end.

use crate::ledger::{Ledger, TaskKey};
use crate::os::Os;
use crate::races::Races;
use crate::time::{Time, at_once};
use crate::trace::Trace;
use crate::witness::Witness;
use fencepost_core::state::{CountedAs, Outcome, RunState, TiState};
use fencepost_core::time::Timestamp;
use fencepost_engine::{Cx, doctor};
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::listing::events::{self, EventFilter};
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti};
use fencepost_store::query::{dag, job};
use fencepost_store::{MemoryDb, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

const ALL: u32 = 100_000;

/// The checks of one world. Clones are the same.
#[derive(Clone)]
pub struct Checks {
    trace: Trace,
    every: u64,
    commits: Arc<AtomicU64>,
    /// The store's count of changes at the last look.
    looked: Arc<AtomicU64>,
    db: MemoryDb,
    cx: Arc<OnceLock<Cx>>,
    pub witness: Witness,
    pub races: Races,
}

/// A run with its instances and their attempts.
pub struct Seen {
    pub run: Run,
    pub tis: Vec<(Ti, Vec<Attempt>)>,
}

/// How a world ended, for comparison with another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// `RUN: STATE` to `TASK STATE, ...`.
    pub runs: BTreeMap<String, String>,
    /// Executions by instance.
    pub starts: BTreeMap<String, usize>,
    /// How its attempts ended, by instance: outcome, who paid, how it is known.
    pub attempts: BTreeMap<String, Vec<String>>,
}

impl Checks {
    /// Checks that look after every so many commits.
    pub fn new(time: Time, trace: Trace, every: u64, db: &MemoryDb) -> Self {
        Self {
            witness: Witness::new(time, trace.clone()),
            races: Races::new(trace.clone()),
            trace,
            every: every.max(1),
            commits: Arc::default(),
            looked: Arc::default(),
            db: db.clone(),
            cx: Arc::default(),
        }
    }

    /// The context to look with.
    pub fn look_with(&self, cx: Cx) {
        // Set once, when the world is made.
        let _ = self.cx.set(cx);
    }

    /// A transaction of a process was committed; whether it changed anything.
    pub fn after_commit(&self, process: &str, op: &str) -> bool {
        // Most transactions find nothing to do.
        let changes = self.db.changes();
        if self.looked.swap(changes, SeqCst) == changes {
            return false;
        }
        self.trace.note(|| format!("{process} commits {op}"));
        if let Some(cx) = self.cx.get() {
            self.witness.after_commit(process, op, cx);
        }
        let count = self.commits.fetch_add(1, SeqCst);
        if count.is_multiple_of(self.every) {
            self.audit(&format!("after {op} of {process}"));
        }
        true
    }

    /// Looks at the whole store.
    pub fn audit(&self, when: &str) {
        let Some(cx) = self.cx.get() else { return };
        match at_once(doctor::examine(cx)) {
            Some(Ok(findings)) => {
                for one in findings.violations {
                    let text = format!("{}: {} {} ({when})", one.invariant, one.subject, one.what);
                    self.trace.violate(text);
                }
            }
            Some(Err(error)) => self.trace.violate(format!("the audit fails: {error}")),
            None => self.trace.violate("the audit waits".into()),
        }
    }

    /// Changing commits so far.
    pub fn commits(&self) -> u64 {
        self.commits.load(SeqCst)
    }

    /// Everything in the store.
    pub async fn look(&self) -> Result<Vec<Seen>, StoreError> {
        let Some(cx) = self.cx.get() else { return Ok(Vec::new()) };
        let tx = cx.store.read("look").await?;
        let mut out = Vec::new();
        for row in dag::list(&tx, "", ALL).await? {
            let last = (Timestamp::from_micros(i64::MAX), i64::MAX);
            for run in run::list(&tx, &row.dag_id, last, ALL).await? {
                let mut tis = Vec::new();
                for ti in task_instance::list(&tx, run.run_pk, (-1, -1), ALL).await? {
                    let attempts = attempt::of_ti(&tx, ti.key).await?;
                    tis.push((ti, attempts));
                }
                out.push(Seen { run, tis });
            }
        }
        out.sort_by_key(|seen| seen.run.run_pk);
        Ok(out)
    }

    /// Who has the open attempts of a run, for people.
    pub async fn owners(&self, seen: &Seen) -> Result<Vec<String>, StoreError> {
        let Some(cx) = self.cx.get() else { return Ok(Vec::new()) };
        let tx = cx.store.read("look").await?;
        let mut out = Vec::new();
        let attempts = seen.tis.iter().flat_map(|(_, attempts)| attempts);
        for attempt in attempts.filter(|a| a.outcome.is_none()) {
            let owner = match attempt.job_id {
                Some(id) => job::get(&tx, id).await?,
                None => None,
            };
            let owner = owner.map_or_else(
                || "nobody's".to_owned(),
                |job| format!("of {} {} ({})", job.name, job.job_id, job.state),
            );
            out.push(format!("{} {} {owner}", attempt.token, attempt.state));
        }
        Ok(out)
    }

    /// How often each kind of line is in the transition log.
    pub async fn kinds(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let Some(cx) = self.cx.get() else { return Ok(BTreeMap::new()) };
        let tx = cx.store.read("look").await?;
        let mut out = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = events::page(&tx, after, &EventFilter::default(), 1_000).await?;
            let Some(last) = page.last() else { return Ok(out) };
            after = last.seq;
            for line in page {
                if let Some(to) = &line.to {
                    *out.entry(format!("to {to}")).or_default() += 1;
                }
                *out.entry(line.kind).or_default() += 1;
            }
        }
    }
}

/// Every run is over or held.
pub fn is_settled(seen: &[Seen]) -> bool {
    seen.iter().all(|one| {
        let held = one.tis.iter().any(|(ti, _)| ti.state == TiState::Held);
        one.run.state.is_finished() || (held && one.run.state == RunState::Running)
    })
}

/// A run that nothing of is under way, of a DAG of which an earlier run is held: its place, or the end
/// of a task that depends on its past, is what it waits for.
pub fn waits_for_the_held(one: &Seen, seen: &[Seen]) -> bool {
    let is_held = |other: &Seen| other.tis.iter().any(|(ti, _)| ti.state == TiState::Held);
    let is_idle = one.tis.iter().all(|(ti, _)| ti.state.is_finished() || ti.state == TiState::None);
    let before =
        |other: &&Seen| other.run.dag_id == one.run.dag_id && other.run.run_pk < one.run.run_pk;
    is_idle && seen.iter().filter(before).any(is_held)
}

/// What cannot be left once work has ended (I32), and what was lost or shown wrongly (I6).
pub fn at_the_end(seen: &[Seen], ledger: &Ledger, machines: &[Os], trace: &Trace) {
    for execution in ledger.running() {
        trace.violate(format!("I32: {} still runs under {}", execution.key, execution.token));
    }
    for os in machines {
        for name in os.left() {
            trace.violate(format!("I32: attempt {name} is left on {}", os.name()));
        }
    }
    for one in seen {
        for (ti, attempts) in &one.tis {
            let key = key_of(&one.run, ti);
            let good = attempts.iter().filter(|a| a.outcome == Some(Outcome::Success));
            let last = good.map(|a| a.token.as_i64()).max();
            // One that a person marked shows whatever was written last.
            let is_current = ti.token.map(|token| token.as_i64()) == last;
            if let Some(token) = last.filter(|_| ti.state == TiState::Success && is_current)
                && ledger.shows(&key) != Some(token)
            {
                let shown = ledger.shows(&key);
                trace.violate(format!("I6: {key} ended well under {token}, shown is {shown:?}"));
            }
        }
    }
}

fn key_of(run: &Run, ti: &Ti) -> TaskKey {
    TaskKey {
        dag: run.dag_id.clone(),
        run: run.run_id.clone(),
        task: ti.task_id.clone(),
        map_index: ti.key.map_index,
    }
}

/// How an attempt ended, in words.
fn how(attempt: &Attempt) -> String {
    let outcome = attempt.outcome.map_or(attempt.state.as_str(), Outcome::as_str);
    let paid = attempt.counted_as.map_or("", CountedAs::as_str);
    [outcome, paid, &evidence(attempt)].join(" ").trim().replace("  ", " ")
}

/// What the end of an attempt is known by.
pub fn evidence(attempt: &Attempt) -> String {
    let json = attempt.evidence.as_deref().unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    json.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// The end of a world.
pub fn end(seen: &[Seen], ledger: &Ledger) -> End {
    let mut end = End::default();
    for one in seen {
        let name = |ti: &Ti| {
            let index = ti.key.map_index;
            if index < 0 { ti.task_id.clone() } else { format!("{}[{index}]", ti.task_id) }
        };
        let list: Vec<String> =
            one.tis.iter().map(|(ti, _)| format!("{} {}", name(ti), ti.state)).collect();
        for (ti, attempts) in &one.tis {
            let ends = attempts.iter().map(how).collect();
            end.attempts.insert(key_of(&one.run, ti).to_string(), ends);
        }
        let key = format!("{}/{}", one.run.dag_id, one.run.run_id);
        end.runs.insert(key, format!("{}: {}", one.run.state, list.join(", ")));
    }
    for execution in ledger.executions() {
        *end.starts.entry(execution.key.to_string()).or_default() += 1;
    }
    end
}
