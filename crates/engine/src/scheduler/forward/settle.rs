//! What becomes of heads whose upstreams have moved, or that are marked.

use super::expand::expand;
use super::trigger::trigger;
use super::{Hand, MARK_BEHIND, MARK_PAST, past};
use crate::Cx;
use crate::assets::{Emissions, Producer};
use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts::{self, Facts};
use crate::log;
use fencepost_core::dag::TaskIndex;
use fencepost_core::lifecycle::ti_next;
use fencepost_core::plan::forward::{self, Gates, Move};
use fencepost_core::state::TiState;
use fencepost_store::Tx;
use fencepost_store::query::dag;
use fencepost_store::query::event;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Moved, TaskMove, Ti, TiKey};
use std::collections::BTreeMap;
use tokio::try_join;

/// Decides heads that have not moved, and moves all instances of their tasks; how many moved.
pub(super) async fn settle(
    cx: &Cx,
    tx: &Tx,
    hands: &BTreeMap<i64, Hand>,
    heads: Vec<Ti>,
) -> Result<usize, EngineError> {
    let mut moves: Vec<TaskMove> = Vec::new();
    let mut marks: Vec<(TiKey, u32)> = Vec::new();
    let mut count = 0;
    for head in heads {
        let (marked, ended) = (head.recheck > 0, head.state != TiState::None);
        // Cleared instances of a mapped task may lie behind a head that has ended.
        if ended && (!marked || head.key.map_index < 0) {
            marks.extend(marked.then_some((head.key, 0)));
            continue;
        }
        let Some(hand) = hands.get(&head.key.run_pk) else { continue };
        match decide(cx, tx, &hand.version, &head).await? {
            Move::Wait | Move::Evaluate | Move::Expand if ended => {
                marks.push((head.key, MARK_BEHIND));
            }
            Move::Wait | Move::Evaluate | Move::Expand => {
                marks.extend(marked.then_some((head.key, 0)));
            }
            Move::Trigger => {
                count += trigger(cx, tx, &hand.version, &head).await?;
                marks.extend(ended.then_some((head.key, 0)));
            }
            Move::WaitForPast => marks.push((head.key, MARK_PAST)),
            Move::Apply(event, reason) => {
                if let Ok(to) = ti_next(TiState::None, event) {
                    let (run_pk, task_index) = (head.key.run_pk, head.key.task_index);
                    moves.push(TaskMove { run_pk, task_index, to, reason: reason.into() });
                    marks.extend(ended.then_some((head.key, 0)));
                }
            }
        }
    }
    let (moved, ()) = try_join!(
        biased;
        task_instance::move_tasks(tx, &moves),
        task_instance::set_recheck(tx, &marks),
    )?;
    let went: BTreeMap<(i64, u32), &TaskMove> =
        moves.iter().map(|m| ((m.run_pk, m.task_index), m)).collect();
    let line = |m: &Moved| {
        let to = went.get(&(m.key.run_pk, m.key.task_index))?;
        Some(log::moved(m, to.to, &to.reason))
    };
    event::append(tx, moved.iter().filter_map(line).collect()).await?;
    let mut emissions = Emissions::default();
    for m in &moved {
        let place = (m.key.run_pk, m.key.task_index);
        let succeeded = went.get(&place).is_some_and(|to| to.to == TiState::Success);
        if let Some(hand) = hands.get(&m.key.run_pk).filter(|_| succeeded) {
            let of = Producer { key: m.key, dag_id: &m.dag_id, task_id: &m.task_id, token: None };
            emissions.succeeded(Some(&hand.version), &of, &[], log::SCHEDULER);
        }
    }
    emissions.write(tx).await?;
    Ok(count + moved.len())
}

async fn decide(cx: &Cx, tx: &Tx, version: &Version, head: &Ti) -> Result<Move, EngineError> {
    let task = TaskIndex(head.key.task_index);
    let mut gates = Gates::default();
    let depends_on_past = version.dag.tasks.get(task.at()).is_some_and(|task| task.depends_on_past);
    let first = forward::decide(&version.dag, task, &head.upstream, gates);
    if depends_on_past && first != Move::Wait {
        gates.past_ok = past::standing(cx, tx, version, head).await?.map(|past| past.is_met());
        // While it only waited, an older run may have taken its run's place.
        if head.recheck == MARK_PAST && gates.past_ok != Some(false) && !has_place(tx, head).await?
        {
            gates.past_ok = Some(false);
        }
    }
    gates.setup_ok = if first == Move::Wait { None } else { setup_ok(tx, version, head).await? };
    let mut decided = forward::decide(&version.dag, task, &head.upstream, gates);
    if decided == Move::Evaluate {
        gates.when = Some(evaluate(cx, tx, version, head).await?);
        decided = forward::decide(&version.dag, task, &head.upstream, gates);
    }
    if decided == Move::Expand {
        // Behind a head that has ended, single instances were cleared: they are what they were.
        let is_whole = head.state == TiState::None;
        gates.width = Some(if is_whole { expand(cx, tx, version, head).await? } else { Ok(1) });
        decided = forward::decide(&version.dag, task, &head.upstream, gates);
    }
    Ok(decided)
}

/// Whether a setup that a teardown depends on succeeded; `None` if it depends on none.
async fn setup_ok(tx: &Tx, version: &Version, head: &Ti) -> Result<Option<bool>, EngineError> {
    let setups = version.dag.setups_of(TaskIndex(head.key.task_index));
    if setups.is_empty() {
        return Ok(None);
    }
    let tis = task_instance::of_tasks(tx, head.key.run_pk, &setups).await?;
    Ok(Some(tis.iter().any(|ti| ti.state == TiState::Success)))
}

async fn has_place(tx: &Tx, head: &Ti) -> Result<bool, EngineError> {
    // Places are given away under the lock of the DAG; who holds that waits for no run.
    dag::lock(tx, &head.dag_id).await?;
    let places = run::places(tx, &head.dag_id, head.key.run_pk).await?;
    Ok(places.is_none_or(|of| !of.own_waits || of.taken < of.max_active_runs))
}

/// Evaluates `when`. A mistake in it fails the task, and nothing else (I22).
async fn evaluate(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    head: &Ti,
) -> Result<Result<bool, ()>, EngineError> {
    let run = run::by_pks(tx, &[head.key.run_pk]).await?.into_iter().next();
    let task = version.dag.tasks.get(head.key.task_index as usize);
    let (Some(run), Some(when)) = (run, task.and_then(|task| task.when.clone())) else {
        return Ok(Err(()));
    };
    let facts: Facts = facts::load(tx, &cx.catalog, run, head.clone()).await?;
    match (cx.env.evaluate)(&when, &facts) {
        Ok(value) => Ok(Ok(value)),
        Err(why) => {
            let mut note = log::ti_state(head, head.state, log::SCHEDULER);
            note.kind = "template_error";
            note.reason = Some(why);
            event::append(tx, vec![note]).await?;
            Ok(Err(()))
        }
    }
}
