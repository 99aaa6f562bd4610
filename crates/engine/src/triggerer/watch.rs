//! Conditions that have to be looked at: each by one triggerer, again and again.
//!
//! Rows are taken by lease: a share of them by each live triggerer, up to its capacity; those of a job that
//! is over are free. Looks run beside the pass, a bounded number at a time, so that a slow one holds up
//! nothing; what they saw is applied by the pass, and refused by the store if the row is no longer ours.

use super::TRIGGERER;
use super::wake::{Waking, settle};
use crate::assets::shown;
use crate::error::EngineError;
use crate::{Cx, Pass, Report};
use fencepost_core::id::Token;
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::wait::{External, How, Look, Memory, Wait, Waiting, Which, next_look};
use fencepost_store::Tx;
use fencepost_store::query::asset;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance;
use fencepost_store::query::trigger::{self, Trigger};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Looks at files and addresses. It bounds its own time.
pub trait Looker: Send + Sync {
    /// Looks once.
    fn look<'a>(&'a self, wait: &'a Wait) -> Pin<Box<dyn Future<Output = Look> + Send + 'a>>;
}

/// Looks that run at the same time.
const AT_ONCE: usize = 128;
/// Rows that are taken in one transaction.
const TAKE: u64 = 500;
/// While looks run: their ends bring the next turn sooner.
const SCAN: Span = Span::from_secs(1);

/// The pass. What it has in memory are looks that run: they are made again by whoever takes the rows over.
pub struct Watcher {
    looker: Arc<dyn Looker>,
    capacity: u64,
    running: JoinSet<(Trigger, Look)>,
    /// Tokens of those.
    in_flight: BTreeSet<Token>,
}

impl Watcher {
    /// A watcher of at most so many triggers.
    pub fn new(looker: Arc<dyn Looker>, capacity: u32) -> Self {
        let (running, in_flight) = (JoinSet::new(), BTreeSet::new());
        Self { looker, capacity: capacity.into(), running, in_flight }
    }

    /// Whether looks are under way.
    pub fn is_looking(&self) -> bool {
        !self.in_flight.is_empty()
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watcher({} of {})", self.in_flight.len(), self.capacity)
    }
}

impl Pass for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn rests(&self) -> bool {
        false
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = Report::default();
            report.moved += self.apply(cx).await?;
            let own = owner(cx);
            if !own.is_empty() {
                take(cx, &own, self.capacity).await?;
            }
            self.begin(cx, &own, &mut report).await?;
            Ok(report)
        })
    }
}

/// Under whose name rows are taken: in standalone mode there is one process, and no row is anybody's.
fn owner(cx: &Cx) -> String {
    cx.own.as_ref().map_or_else(String::new, |own| own.job_id.to_string())
}

/// Takes its share of what nobody has.
async fn take(cx: &Cx, own: &str, capacity: u64) -> Result<(), EngineError> {
    let look = cx.store.read("look_for_triggers").await?;
    let loads = trigger::loads(&look, own).await?;
    drop(look);
    let share = loads.all.div_ceil(loads.triggerers.max(1));
    let room = capacity.min(share.max(1)).saturating_sub(loads.own).min(TAKE);
    if loads.all == 0 || room == 0 {
        return Ok(());
    }
    let tx = cx.store.begin("take_triggers").await?;
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    if trigger::claim(&tx, own, room).await? > 0 {
        tx.commit().await?;
    }
    Ok(())
}

impl Watcher {
    /// Begins the looks that are due, as far as there is room.
    async fn begin(&mut self, cx: &Cx, own: &str, report: &mut Report) -> Result<(), EngineError> {
        let room = AT_ONCE.saturating_sub(self.in_flight.len());
        let tx = cx.store.read("triggers_to_look_at").await?;
        let now = tx.now();
        let limit = u32::try_from(AT_ONCE * 2).unwrap_or(u32::MAX);
        let due = trigger::to_look(&tx, own, limit).await?;
        let is_new = |trigger: &Trigger| !self.in_flight.contains(&trigger.token);
        let due: Vec<Trigger> = due.into_iter().filter(is_new).take(room).collect();
        let mut seen = Vec::new();
        for trigger in due {
            let wait = match Waiting::from_json(&trigger.wait) {
                Ok(waiting) => waiting.wait,
                Err(error) => {
                    seen.push((trigger, Look::Failed(error.to_string())));
                    continue;
                }
            };
            // What the store itself knows is looked at here.
            let look = match &wait {
                Wait::External(other) => external(cx, &tx, other).await?,
                Wait::Asset { name, since } => asset_event(&tx, name, *since).await?,
                Wait::Until(_)
                | Wait::File(_)
                | Wait::Http(_)
                | Wait::Sql(_)
                | Wait::Approval(_) => {
                    self.spawn(cx, trigger, wait);
                    continue;
                }
            };
            seen.push((trigger, look));
        }
        let next = trigger::next_look(&tx, own).await?;
        drop(tx);
        // While looks run at the limit, their ends bring the next turn.
        let soonest = now.plus(if self.is_looking() { SCAN } else { Span::from_millis(20) });
        let next_due = next.map(|at| at.max(soonest));
        report.merge(Report { next_due, ..Report::default() });
        report.moved += apply(cx, own, seen).await?;
        Ok(())
    }

    fn spawn(&mut self, cx: &Cx, trigger: Trigger, wait: Wait) {
        let (looker, wakes) = (Arc::clone(&self.looker), cx.wakes.clone());
        self.in_flight.insert(trigger.token);
        self.running.spawn(async move {
            let look = looker.look(&wait).await;
            wakes.engine_here();
            (trigger, look)
        });
    }

    /// Applies what has been seen; how many waits ended.
    async fn apply(&mut self, cx: &Cx) -> Result<usize, EngineError> {
        let mut seen = Vec::new();
        while let Some(done) = self.running.try_join_next() {
            // A look that panicked is made again: its row says that it is still due.
            if let Ok((trigger, look)) = done {
                seen.push((trigger, look));
            }
        }
        let tokens: Vec<Token> = seen.iter().map(|(trigger, _)| trigger.token).collect();
        let moved = apply(cx, &owner(cx), seen).await;
        for token in tokens {
            self.in_flight.remove(&token);
        }
        if self.running.is_empty() {
            self.in_flight.clear();
        }
        moved
    }
}

/// Writes down what looks saw, and ends the waits that they end.
async fn apply(cx: &Cx, own: &str, seen: Vec<(Trigger, Look)>) -> Result<usize, EngineError> {
    if seen.is_empty() {
        return Ok(0);
    }
    let tx = cx.store.begin("apply_looks").await?;
    let mut looked: Vec<(Token, Timestamp, Value)> = Vec::new();
    let mut ends: BTreeMap<Token, How> = BTreeMap::new();
    let mut keys = Vec::new();
    for (trigger, look) in seen {
        let memory = Memory::from_json(&trigger.memory).after(&look);
        match look {
            Look::Met(data) => drop(ends.insert(trigger.token, How::Met(data))),
            Look::Failed(why) => drop(ends.insert(trigger.token, How::Failed(why))),
            Look::NotYet | Look::Trouble(_) => {
                let interval = Waiting::from_json(&trigger.wait).map(|w| w.poke_interval);
                let interval = interval.unwrap_or(fencepost_core::wait::POKE_INTERVAL);
                let at = next_look(tx.now(), interval, &memory, (cx.env.random)());
                looked.push((trigger.token, at, memory.to_json()));
                continue;
            }
        }
        keys.push(trigger.ti);
    }
    // Instances first: whoever decides about a trigger has its instance in hand.
    let tis = task_instance::get(&tx, &keys).await?;
    let tokens: Vec<Token> = ends.keys().copied().collect();
    let triggers = trigger::get(&tx, &tokens).await?;
    let mut wakings = Vec::new();
    for trigger in triggers {
        // It is another's by now, who looks for itself.
        if trigger.job_id != own {
            continue;
        }
        let ti = tis.iter().find(|ti| ti.key == trigger.ti && ti.token == Some(trigger.token));
        if let (Some(ti), Some(how)) = (ti, ends.remove(&trigger.token)) {
            wakings.push(Waking { ti: ti.clone(), trigger, how });
        }
    }
    let moved = settle(cx, &tx, wakings, TRIGGERER).await?;
    trigger::looked(&tx, own, &looked).await?;
    tx.commit().await?;
    if moved > 0 {
        cx.wakes.engine();
    }
    Ok(moved)
}

/// Looks whether an asset has had an event: whoever emitted it, and whoever took it.
async fn asset_event(tx: &Tx, name: &str, since: Timestamp) -> Result<Look, EngineError> {
    let found = asset::since(tx, name, since).await?;
    Ok(found.map_or(Look::NotYet, |found| Look::Met(shown(&found))))
}

/// Looks at another run, as it is now: whatever it was while nobody looked.
async fn external(cx: &Cx, tx: &Tx, other: &External) -> Result<Look, EngineError> {
    let Some(run) = other_run(tx, other).await? else { return Ok(Look::NotYet) };
    let states: Vec<String> = match &other.task_id {
        None => vec![run.state.to_string()],
        Some(task_id) => {
            let version = match cx.catalog.version(tx, run.version_pk).await {
                Ok(version) => version,
                Err(error) => return Ok(Look::Trouble(error.of_one_version()?)),
            };
            let index = version.task_index(task_id);
            let tis = task_instance::of_tasks(tx, run.run_pk, index.as_slice()).await?;
            tis.iter().map(|ti| ti.state.to_string()).collect()
        }
    };
    if states.is_empty() {
        let task = other.task_id.as_deref().unwrap_or_default();
        let is_gone = run.made || run.state.is_finished();
        let why = format!("run `{}` has no task `{task}`", run.run_id);
        return Ok(if is_gone { Look::Failed(why) } else { Look::NotYet });
    }
    if let Some(state) = states.iter().find(|state| other.failed_states.contains(state)) {
        return Ok(Look::Failed(format!("{} {} is {state}", other.dag_id, run.run_id)));
    }
    if states.iter().all(|state| other.allowed_states.contains(state)) {
        return Ok(Look::Met(json!({ "run_id": run.run_id, "states": states })));
    }
    Ok(Look::NotYet)
}

async fn other_run(tx: &Tx, other: &External) -> Result<Option<Run>, EngineError> {
    Ok(match &other.which {
        Which::RunId(run_id) => run::get(tx, &other.dag_id, run_id).await?,
        Which::LogicalDate(at) => {
            let upto = at.plus(Span::from_micros(1));
            let newest = run::previous(tx, &other.dag_id, upto, true).await?;
            newest.filter(|run| run.logical_date == Some(*at))
        }
    })
}
