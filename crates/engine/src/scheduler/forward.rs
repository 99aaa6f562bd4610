//! Ends move forward: each is counted once at its downstreams, which may then be decided, and a
//! run without anything left ends (I7).
//!
//! One transaction counts a batch of ends, clears their marks, decides the tasks that they touch,
//! and takes them off the run's count; a crash before its commit leaves the marks for the next
//! pass. Ends that a batch causes itself (skips, noops) are taken up in the next round.

use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts::{self, Facts};
use crate::log;
use crate::operations::stop::{self, RunStop};
use crate::{Cx, Report};
use fencepost_core::dag::TaskIndex;
use fencepost_core::lifecycle::{run_next, ti_next};
use fencepost_core::plan::forward::{self, End, Gates, Move};
use fencepost_core::plan::rollup::run_end;
use fencepost_core::state::{RunState, StopReason, TiState};
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::dag;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, DueEnd, Moved, TaskMove, Ti, TiKey};
use std::collections::BTreeMap;

/// Mark of a head that is to be decided again.
pub const MARK_NOW: u32 = 1;
/// Mark of a head that waits for the previous run's instance.
const MARK_PAST: u32 = 2;
/// Mark of a head that has ended while instances of its task wait behind it: they are decided when
/// an upstream ends.
const MARK_BEHIND: u32 = 3;
/// Ends counted in one transaction.
const ENDS: u32 = 1_000;
/// Marked heads decided in one transaction.
const MARKED: u32 = 128;
/// When a run that somebody else has in hand is looked at again.
const AGAIN: Span = Span::from_millis(20);
/// How often heads that wait for the past are looked at even if nothing ended.
const PAST_SCAN: Span = Span::from_secs(30);

/// A walk over what is due, page by page: what cannot be handled hides nothing behind it.
struct Sweep {
    /// After which end to go on; `None`: through.
    ends: Option<TiKey>,
    /// After which marked head: (mark, run, task).
    marks: Option<(u32, i64, i64)>,
}

impl Sweep {
    const START: Self = Self {
        ends: Some(TiKey { run_pk: 0, task_index: 0, map_index: i32::MIN }),
        marks: Some((0, 0, 0)),
    };
}

pub(super) async fn forward(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    loop {
        let mut sweep = Sweep::START;
        let mut moved = 0;
        while sweep.ends.is_some() || sweep.marks.is_some() {
            let tx = cx.store.begin("forward").await?;
            moved += count_ends(cx, &tx, &mut sweep, &mut report).await?;
            moved += recheck(cx, &tx, &mut sweep, &mut report).await?;
            tx.commit().await?;
        }
        report.moved += moved;
        if moved == 0 {
            report.troubles.dedup();
            return Ok(report);
        }
    }
}

/// Counts a page of ends; how many.
async fn count_ends(
    cx: &Cx,
    tx: &Tx,
    sweep: &mut Sweep,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let Some(after) = sweep.ends else { return Ok(0) };
    let ends = task_instance::forward_due(tx, after, ENDS).await?;
    sweep.ends = ends.last().filter(|_| ends.len() == ENDS as usize).map(|end| end.key);
    let mut counted = 0;
    for (run_pk, ends) in by_run(&ends) {
        let run = match take(tx, run_pk).await? {
            Held::Here(run) => run,
            Held::Gone => {
                task_instance::forwarded(tx, &ends).await?;
                counted += ends.len();
                continue;
            }
            Held::Elsewhere => {
                report.merge(look_again(tx));
                continue;
            }
        };
        match count_run(cx, tx, *run, &ends).await {
            Ok(()) => counted += ends.len(),
            Err(trouble) => report.troubles.push(trouble.of_one_version()?),
        }
    }
    Ok(counted)
}

/// Whose a run is for now. Its counts, and the moves of its instances out of `none`, are for one
/// scheduler at a time.
enum Held {
    Here(Box<Run>),
    /// Another scheduler, or a person's request, has its lock.
    Elsewhere,
    Gone,
}

async fn take(tx: &Tx, run_pk: i64) -> Result<Held, EngineError> {
    if let Some(run) = run::take(tx, run_pk).await? {
        return Ok(Held::Here(Box::new(run)));
    }
    let exists = !run::by_pks(tx, &[run_pk]).await?.is_empty();
    Ok(if exists { Held::Elsewhere } else { Held::Gone })
}

/// Who has the lock may not have seen what was left to it.
fn look_again(tx: &Tx) -> Report {
    Report { next_due: Some(tx.now().plus(AGAIN)), ..Report::default() }
}

fn by_run(ends: &[DueEnd]) -> BTreeMap<i64, Vec<DueEnd>> {
    let mut out: BTreeMap<i64, Vec<DueEnd>> = BTreeMap::new();
    for end in ends {
        out.entry(end.key.run_pk).or_default().push(*end);
    }
    out
}

async fn count_run(cx: &Cx, tx: &Tx, run: Run, due: &[DueEnd]) -> Result<(), EngineError> {
    let run_pk = run.run_pk;
    let version = match cx.catalog.version(tx, run.version_pk).await {
        Ok(version) => version,
        Err(error) => {
            if run.stop_reason.is_some() {
                end_unread(cx, tx, run_pk).await?;
            }
            return Err(error);
        }
    };
    let is_due = task_instance::forwarded(tx, due).await?;
    let due: Vec<DueEnd> =
        due.iter().zip(is_due).filter(|(_, is_due)| *is_due).map(|(end, _)| *end).collect();
    let ends: Vec<End> =
        due.iter().map(|d| End { task: TaskIndex(d.key.task_index), state: d.state }).collect();
    let deltas = forward::deltas(&version.downstreams, &ends);
    let tasks: Vec<u32> = deltas.keys().map(|task| task.0).collect();
    let mut heads = task_instance::heads(tx, run_pk, &tasks).await?;
    for head in &mut heads {
        if let Some(delta) = deltas.get(&TaskIndex(head.key.task_index)) {
            head.upstream = forward::add(head.upstream, delta);
        }
    }
    let counts: Vec<_> = heads.iter().map(|head| (head.key, head.upstream)).collect();
    task_instance::set_counts(tx, &counts).await?;
    let failed = ends.iter().any(|end| end.state == TiState::Failed);
    let fail_fast = version.dag.fail_fast && run.state == RunState::Running;
    if fail_fast && failed && run.stop_reason.is_none() {
        let request = RunStop { reason: StopReason::FailFast, by: log::SCHEDULER };
        stop::stop_run(tx, &run, &request).await?;
    } else {
        settle(cx, tx, &version, heads).await?;
    }
    count_down(cx, tx, run_pk, &due).await
}

/// Nothing comes after the ends of a stopped run: it is over with the last of them, whatever its
/// version says. They stay to be counted until it can be read.
async fn end_unread(cx: &Cx, tx: &Tx, run_pk: i64) -> Result<(), EngineError> {
    let states = task_instance::states(tx, run_pk).await?;
    if states.iter().all(|s| s.state.is_finished()) {
        roll_up(cx, tx, run_pk).await?;
    }
    Ok(())
}

/// Takes counted ends off their run, which ends with the last one.
async fn count_down(cx: &Cx, tx: &Tx, run_pk: i64, due: &[DueEnd]) -> Result<(), EngineError> {
    let count = i64::try_from(due.len()).unwrap_or(i64::MAX);
    for (pk, left) in run::count_down(tx, &[(run_pk, count)]).await? {
        if left <= 0 {
            roll_up(cx, tx, pk).await?;
        }
    }
    Ok(())
}

/// Decides marked heads again, by run.
async fn recheck(
    cx: &Cx,
    tx: &Tx,
    sweep: &mut Sweep,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let Some(after) = sweep.marks else { return Ok(0) };
    let marked = task_instance::recheck(tx, MARK_PAST, after, MARKED).await?;
    let place = |ti: &Ti| (ti.recheck, ti.key.run_pk, ti.key.task_index.into());
    sweep.marks = marked.last().filter(|_| marked.len() == MARKED as usize).map(place);
    if !marked.is_empty() {
        let scan = tx.now().plus(PAST_SCAN);
        report.merge(Report { next_due: Some(scan), ..Report::default() });
    }
    let mut by_run: BTreeMap<i64, Vec<Ti>> = BTreeMap::new();
    for ti in marked {
        by_run.entry(ti.key.run_pk).or_default().push(ti);
    }
    let mut moved = 0;
    for (run_pk, heads) in by_run {
        let run = match take(tx, run_pk).await? {
            Held::Here(run) if run.state == RunState::Running => run,
            Held::Here(_) | Held::Gone => continue,
            Held::Elsewhere => {
                report.merge(look_again(tx));
                continue;
            }
        };
        match cx.catalog.version(tx, run.version_pk).await {
            Ok(version) => moved += settle(cx, tx, &version, heads).await?,
            Err(trouble) => report.troubles.push(trouble.of_one_version()?),
        }
    }
    Ok(moved)
}

/// Decides heads that have not moved, and moves all instances of their tasks; how many moved.
pub(super) async fn settle(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    heads: Vec<Ti>,
) -> Result<usize, EngineError> {
    let mut moves: Vec<TaskMove> = Vec::new();
    let mut marks: Vec<(TiKey, u32)> = Vec::new();
    for head in heads {
        let (marked, ended) = (head.recheck > 0, head.state != TiState::None);
        // Cleared instances of a mapped task may lie behind a head that has ended.
        if ended && (!marked || head.key.map_index < 0) {
            marks.extend(marked.then_some((head.key, 0)));
            continue;
        }
        match decide(cx, tx, version, &head).await? {
            Move::Wait | Move::Evaluate if ended => marks.push((head.key, MARK_BEHIND)),
            Move::Wait | Move::Evaluate => marks.extend(marked.then_some((head.key, 0))),
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
    let moved = task_instance::move_tasks(tx, &moves).await?;
    let went: BTreeMap<(i64, u32), &TaskMove> =
        moves.iter().map(|m| ((m.run_pk, m.task_index), m)).collect();
    let line = |m: &Moved| {
        let to = went.get(&(m.key.run_pk, m.key.task_index))?;
        Some(log::moved(m, to.to, &to.reason))
    };
    let count = moved.len();
    event::append(tx, moved.iter().filter_map(line).collect()).await?;
    task_instance::set_recheck(tx, &marks).await?;
    Ok(count)
}

async fn decide(cx: &Cx, tx: &Tx, version: &Version, head: &Ti) -> Result<Move, EngineError> {
    let task = TaskIndex(head.key.task_index);
    let mut gates = Gates::default();
    let depends_on_past = version.dag.tasks.get(task.at()).is_some_and(|task| task.depends_on_past);
    let first = forward::decide(&version.dag, task, &head.upstream, gates);
    if depends_on_past && matches!(first, Move::Apply(..) | Move::Evaluate) {
        gates.past_ok = past_ok(tx, head).await?;
        // While it only waited, an older run may have taken its run's place.
        if head.recheck == MARK_PAST && gates.past_ok != Some(false) && !has_place(tx, head).await?
        {
            gates.past_ok = Some(false);
        }
    }
    let second = forward::decide(&version.dag, task, &head.upstream, gates);
    if second != Move::Evaluate {
        return Ok(second);
    }
    gates.when = Some(evaluate(cx, tx, version, head).await?);
    Ok(forward::decide(&version.dag, task, &head.upstream, gates))
}

async fn has_place(tx: &Tx, head: &Ti) -> Result<bool, EngineError> {
    // Places are given away under the lock of the DAG; who holds that waits for no run.
    dag::lock(tx, &head.dag_id).await?;
    let places = run::places(tx, &head.dag_id, head.key.run_pk).await?;
    Ok(places.is_none_or(|of| !of.own_waits || of.taken < of.max_active_runs))
}

/// Whether the instance of the run before ended well; `None` if there was none.
async fn past_ok(tx: &Tx, head: &Ti) -> Result<Option<bool>, EngineError> {
    let run = run::by_pks(tx, &[head.key.run_pk]).await?.into_iter().next();
    let Some(date) = run.and_then(|run| run.logical_date) else { return Ok(None) };
    let Some(previous) = run::previous(tx, &head.dag_id, date).await? else { return Ok(None) };
    let tis = task_instance::of_tasks(tx, previous.run_pk, &[head.key.task_index]).await?;
    if tis.is_empty() {
        // Not started, or a version without this task: only the former can still run it.
        let can_come = !previous.made && !previous.state.is_finished();
        return Ok(can_come.then_some(false));
    }
    Ok(Some(tis.iter().all(|ti| matches!(ti.state, TiState::Success | TiState::Skipped))))
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

/// Ends a run whose instances are all counted.
pub(super) async fn roll_up(cx: &Cx, tx: &Tx, run_pk: i64) -> Result<(), EngineError> {
    let Some(run) = run::by_pks(tx, &[run_pk]).await?.into_iter().next() else { return Ok(()) };
    // What stopped a run decides alone.
    let leaves = if run.stop_reason.is_some() {
        Vec::new()
    } else {
        let version = cx.catalog.version(tx, run.version_pk).await?;
        let states = task_instance::states(tx, run_pk).await?;
        let is_leaf = |task: u32| version.leaves.binary_search(&task).is_ok();
        states.iter().filter(|s| is_leaf(s.task_index)).map(|s| s.state).collect()
    };
    let (event, reason) = run_end(run.stop_reason, &leaves);
    let Ok(to) = run_next(run.state, event) else { return Ok(()) };
    if run::end(tx, run_pk, run.state, to, reason).await? {
        let ended = log::run(&run, "run_state", to.as_str(), log::SCHEDULER, reason);
        event::append(tx, vec![ended]).await?;
    }
    Ok(())
}
