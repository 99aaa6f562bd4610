//! Delivery: beside the pass, a bounded number at a time and few for each receiver, so that a slow one
//! holds up neither the others nor the scheduler. At least once: a crash between an arrival and the
//! commit that says so repeats it, under the same id.

use super::fanout::{WHY_MAX, dead_line, line};
use crate::error::{EngineError, Refusal};
use crate::operations::trigger::{LogicalDate, TriggerRequest, make_run};
use crate::{Cx, Report};
use fencepost_core::callback::{Callback, Patience};
use fencepost_core::dag::{CALLBACK_PARAM, callback_param, companion_id};
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::callback::{self as rows, Callback as Row};
use fencepost_store::query::{event, run};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Deliveries at the same time, and of those to one receiver.
const AT_ONCE: usize = 24;
const PER_TARGET: usize = 3;
/// Receivers that are looked at in one turn.
const TARGETS: u32 = 64;
/// For so long a callback is that of the scheduler that took it; after its death it is due again.
pub const TAKEN: Span = Span::from_secs(60);
/// While deliveries are under way their ends bring the next turn.
const SCAN: Span = Span::from_secs(1);

/// What is to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The same for every repeat.
    pub id: String,
    pub callback: Callback,
    /// What happened.
    pub told: Value,
}

/// Carries callbacks out. It bounds its own time, well below [`TAKEN`].
pub trait Courier: Send + Sync {
    /// Delivers once; it may be asked again for the same id.
    fn deliver<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

/// A callback that was tried, and how it went.
type Tried = (Row, Result<(), String>);

pub(super) struct Deliveries {
    courier: Arc<dyn Courier>,
    running: JoinSet<Tried>,
    /// Ids under way, with their receivers.
    in_flight: BTreeMap<String, String>,
    /// How deliveries went, as long as the store has not taken it: they stay in flight, since whoever forgot
    /// it would send again.
    unwritten: Vec<Tried>,
    /// Behind which receiver the next turn begins, where there are very many.
    after: String,
}

impl Deliveries {
    pub(super) fn new(courier: Arc<dyn Courier>) -> Self {
        let (running, in_flight) = (JoinSet::new(), BTreeMap::new());
        Self { courier, running, in_flight, unwritten: Vec::new(), after: String::new() }
    }

    pub(super) fn is_under_way(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// How long the next turn may wait at least.
    pub(super) fn pause(&self) -> Span {
        if self.is_under_way() { SCAN } else { Span::from_millis(20) }
    }

    /// Writes down how deliveries went; how many there were.
    pub(super) async fn apply(
        &mut self,
        cx: &Cx,
        patience: &Patience,
    ) -> Result<usize, EngineError> {
        while let Some(done) = self.running.try_join_next() {
            // One that panicked is made again: its row says that it is still due.
            self.unwritten.extend(done.ok());
        }
        // In one order, whoever else writes.
        self.unwritten.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        let written = write(cx, patience, &self.unwritten).await?;
        for (row, _) in self.unwritten.drain(..) {
            self.in_flight.remove(&row.id);
        }
        if self.running.is_empty() {
            self.in_flight.clear();
        }
        Ok(written)
    }

    /// Begins the deliveries that are due, as far as there is room.
    pub(super) async fn begin(
        &mut self,
        cx: &Cx,
        patience: &Patience,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let look = cx.store.read("callbacks_due").await?;
        let targets = rows::targets(&look, &self.after, TARGETS).await?;
        let is_whole = targets.len() < TARGETS as usize;
        self.after = targets.last().filter(|_| !is_whole).cloned().unwrap_or_default();
        let (mut due, mut room) = (Vec::new(), AT_ONCE.saturating_sub(self.in_flight.len()));
        for target in targets {
            let busy = self.in_flight.values().filter(|of| **of == target).count();
            let most = PER_TARGET.saturating_sub(busy).min(room);
            let page = u32::try_from(PER_TARGET * 2).unwrap_or(u32::MAX);
            let found = rows::due(&look, &target, page).await?;
            let new = found.into_iter().filter(|row| !self.in_flight.contains_key(&row.id));
            let new: Vec<Row> = new.take(most).collect();
            room -= new.len();
            due.extend(new);
        }
        drop(look);
        let mine = take(cx, due).await?;
        let (own, outside): (Vec<Row>, Vec<Row>) =
            mine.into_iter().partition(|row| ["trigger_dag", "run"].contains(&row.kind.as_str()));
        for row in outside {
            self.spawn(cx, row);
        }
        for row in own {
            report.moved += trigger(cx, patience, row).await?;
        }
        Ok(())
    }

    fn spawn(&mut self, cx: &Cx, row: Row) {
        let (courier, wakes) = (Arc::clone(&self.courier), cx.wakes.clone());
        self.in_flight.insert(row.id.clone(), row.target.clone());
        self.running.spawn(async move {
            let went = match Callback::read(&row.spec) {
                Ok(callback) => {
                    let (id, told) = (row.id.clone(), row.told.clone());
                    courier.deliver(&Delivery { id, callback, told }).await
                }
                Err(error) => Err(error.to_string()),
            };
            wakes.engine_here();
            (row, went)
        });
    }
}

/// Takes callbacks for this process, where there are others.
async fn take(cx: &Cx, due: Vec<Row>) -> Result<Vec<Row>, EngineError> {
    if !cx.store.is_shared() || due.is_empty() {
        return Ok(due);
    }
    let tx = cx.store.begin("take_callbacks").await?;
    let mut mine = Vec::new();
    for row in due {
        if rows::take(&tx, &row, TAKEN).await? {
            mine.push(row);
        }
    }
    tx.commit().await?;
    Ok(mine)
}

async fn write(cx: &Cx, patience: &Patience, tried: &[Tried]) -> Result<usize, EngineError> {
    if tried.is_empty() {
        return Ok(0);
    }
    let tx = cx.store.begin("callbacks_tried").await?;
    let count = tried.len();
    for (row, went) in tried {
        went_so(cx, &tx, patience, row, went.clone()).await?;
    }
    tx.commit().await?;
    Ok(count)
}

/// Writes down how one went: it has arrived, or is due again later, or nobody tries any more.
async fn went_so(
    cx: &Cx,
    tx: &Tx,
    patience: &Patience,
    row: &Row,
    went: Result<(), String>,
) -> Result<(), EngineError> {
    let lines = match went {
        Ok(()) => {
            let is_new = rows::delivered(tx, &row.id).await?;
            is_new.then(|| line(row, "callback_delivered"))
        }
        Err(why) => {
            let why: String = why.chars().take(WHY_MAX).collect();
            let age = tx.now().since(row.since_at);
            let delay = patience.next(row.tries.saturating_add(1), age, (cx.env.random)());
            let again_at = delay.map(|delay| tx.now().plus(delay));
            let is_ours = rows::failed(tx, row, again_at, &why).await?;
            let row = Row { last_error: Some(why), ..row.clone() };
            let kind = if again_at.is_some() { "callback_failed" } else { "callback_dead" };
            is_ours.then(|| event::Event { kind, ..dead_line(&row) })
        }
    };
    event::append(tx, lines.into_iter().collect()).await?;
    Ok(())
}

/// Makes the run that a callback asks for, in the transaction that says that it was made. Its id follows
/// from the callback's, so that one is made whatever crashes.
async fn trigger(cx: &Cx, patience: &Patience, row: Row) -> Result<usize, EngineError> {
    let tx = cx.store.begin("callback_trigger").await?;
    let went = match requests(&tx, &row).await? {
        Err(why) => Err(why),
        Ok(requests) => first_accepted(cx, &tx, requests).await?,
    };
    went_so(cx, &tx, patience, &row, went).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(1)
}

/// What to ask for, best first.
async fn requests(tx: &Tx, row: &Row) -> Result<Result<Vec<TriggerRequest>, String>, EngineError> {
    let request = TriggerRequest {
        run_id: Some(format!("callback__{}", row.id)),
        logical_date: LogicalDate::Now,
        note: Some(format!("{} of {} {}", row.occasion.as_str(), row.dag_id, row.run_id)),
        by: format!("callback of {}", row.dag_id),
        ..TriggerRequest::default()
    };
    Ok(match Callback::read(&row.spec) {
        Ok(Callback::TriggerDag { dag_id, conf }) => {
            Ok(vec![TriggerRequest { dag_id, conf, ..request }])
        }
        Ok(Callback::Run { script }) => match companion_id(&row.dag_id) {
            Ok(companion) => {
                let of = run::by_pks(tx, &[row.run_pk]).await?.pop();
                let own = of.and_then(|run| run.params.as_object().cloned()).unwrap_or_default();
                let told = callback_param(&row.id, &script, &row.told);
                let with = |mut params: Map<String, Value>| {
                    params.insert(CALLBACK_PARAM.into(), told.clone());
                    let dag_id = companion.to_string();
                    TriggerRequest { dag_id, params, ..request.clone() }
                };
                // An edit of the DAG may have taken away what its run was given: its defaults do then.
                Ok(vec![with(own), with(Map::new())])
            }
            Err(error) => Err(error.to_string()),
        },
        Ok(_) => Err("it makes no run".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// Makes the first run that its DAG accepts.
async fn first_accepted(
    cx: &Cx,
    tx: &Tx,
    requests: Vec<TriggerRequest>,
) -> Result<Result<(), String>, EngineError> {
    let mut went = Err("there is nothing to make".to_owned());
    for request in requests {
        went = match make_run(cx, tx, request).await {
            Ok(_) | Err(EngineError::Refused(Refusal::RunExists { .. })) => return Ok(Ok(())),
            Err(error @ EngineError::Refused(Refusal::Invalid(_))) => Err(error.to_string()),
            Err(error @ EngineError::Refused(_)) => return Ok(Err(error.to_string())),
            Err(error) => return Ok(Err(EngineError::of_one_version(error)?)),
        };
    }
    Ok(went)
}
