//! Ends move forward: each is counted once at its downstreams, which may then be decided, and a
//! run without anything left ends (I7).
//!
//! One transaction counts a batch of ends, clears their marks, decides the tasks that they touch,
//! and takes them off the run's count; a crash before its commit leaves the marks for the next
//! pass. Ends that a batch causes itself (skips, noops) are taken up in the next round.

mod expand;
pub(crate) mod past;
mod roll_up;
mod settle;
mod trigger;

pub(super) use roll_up::roll_up;

use crate::catalog::Version;
use crate::error::EngineError;
use crate::log;
use crate::operations::stop::{self, RunStop};
use crate::{Cx, Report};
use fencepost_core::dag::TaskIndex;
use fencepost_core::plan::forward::{self, End};
use fencepost_core::state::{RunState, StopReason, TiState};
use fencepost_core::time::Span;
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_store::Tx;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, DueEnd, Ti, TiKey};
use settle::settle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::try_join;

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
    let taken = take(tx, ends.iter().map(|end| end.key.run_pk).collect()).await?;
    report.merge(taken.look_again(tx));
    let gone: Vec<DueEnd> = ends.iter().filter(|end| taken.is_gone(end.key)).copied().collect();
    task_instance::forwarded(tx, &gone).await?;
    let hands = hands(cx, tx, taken, report).await?;
    let due: Vec<DueEnd> =
        ends.into_iter().filter(|end| hands.contains_key(&end.key.run_pk)).collect();
    count(cx, tx, &hands, &due).await?;
    Ok(gone.len() + due.len())
}

/// Whose runs are for now. Their counts, and the moves of their instances out of `none`, are for one
/// scheduler at a time.
struct Taken {
    here: Vec<Run>,
    /// Another scheduler, or a person's request, has their locks.
    elsewhere: BTreeSet<i64>,
}

impl Taken {
    fn is_gone(&self, key: TiKey) -> bool {
        let is_here = self.here.iter().any(|run| run.run_pk == key.run_pk);
        !is_here && !self.elsewhere.contains(&key.run_pk)
    }

    /// Who has a lock may not have seen what was left to it.
    fn look_again(&self, tx: &Tx) -> Report {
        let again = (!self.elsewhere.is_empty()).then(|| tx.now().plus(AGAIN));
        Report { next_due: again, ..Report::default() }
    }
}

async fn take(tx: &Tx, run_pks: BTreeSet<i64>) -> Result<Taken, EngineError> {
    let wanted: Vec<i64> = run_pks.into_iter().collect();
    let here = run::take(tx, &wanted).await?;
    let is_here = |pk: &&i64| here.iter().any(|run| run.run_pk == **pk);
    let missing: Vec<i64> = wanted.iter().filter(|pk| !is_here(pk)).copied().collect();
    let elsewhere = run::by_pks(tx, &missing).await?.iter().map(|run| run.run_pk).collect();
    Ok(Taken { here, elsewhere })
}

/// A run in hand, and its version.
struct Hand {
    run: Run,
    version: Arc<Version>,
}

/// Runs in hand whose versions can be read. Nothing comes after the ends of a stopped run: it is over
/// with the last of them, whatever its version says. They stay to be counted until it can be read.
async fn hands(
    cx: &Cx,
    tx: &Tx,
    taken: Taken,
    report: &mut Report,
) -> Result<BTreeMap<i64, Hand>, EngineError> {
    let mut hands = BTreeMap::new();
    for run in taken.here {
        match cx.catalog.version(tx, run.version_pk).await {
            Ok(version) => drop(hands.insert(run.run_pk, Hand { run, version })),
            Err(error) => {
                report.troubles.push(error.of_one_version()?);
                let states = if run.stop_reason.is_some() {
                    task_instance::states(tx, &[run.run_pk]).await?
                } else {
                    continue;
                };
                if states.iter().all(|s| s.state.is_finished()) {
                    roll_up(cx, tx, &[run.run_pk]).await?;
                }
            }
        }
    }
    Ok(hands)
}

/// Counts ends of runs in hand, decides what follows, and takes them off their runs, which end with
/// the last one.
async fn count(
    cx: &Cx,
    tx: &Tx,
    hands: &BTreeMap<i64, Hand>,
    due: &[DueEnd],
) -> Result<(), EngineError> {
    let below = below(hands, due);
    let (is_due, heads) = try_join!(
        biased;
        task_instance::forwarded(tx, due),
        task_instance::heads(tx, &below),
    )?;
    let mut by_run: BTreeMap<i64, Vec<End>> = BTreeMap::new();
    for (end, _) in due.iter().zip(is_due).filter(|(_, is_due)| *is_due) {
        let (task, state) = (TaskIndex(end.key.task_index), end.state);
        by_run.entry(end.key.run_pk).or_default().push(End { task, state });
    }
    let mut deltas: BTreeMap<(i64, u32), UpstreamCounts> = BTreeMap::new();
    for (run_pk, ends) in &by_run {
        let Some(hand) = hands.get(run_pk) else { continue };
        let of_run = forward::deltas(&hand.version.downstreams, ends);
        deltas.extend(of_run.into_iter().map(|(task, delta)| ((*run_pk, task.0), delta)));
    }
    let add = |mut head: Ti| {
        let delta = deltas.get(&(head.key.run_pk, head.key.task_index))?;
        head.upstream = forward::add(head.upstream, delta);
        Some(head)
    };
    let mut heads: Vec<Ti> = heads.into_iter().filter_map(add).collect();
    let counts: Vec<_> = heads.iter().map(|head| (head.key, head.upstream)).collect();
    let count = |ends: &Vec<End>| i64::try_from(ends.len()).unwrap_or(i64::MAX);
    let counted: Vec<(i64, i64)> = by_run.iter().map(|(pk, ends)| (*pk, count(ends))).collect();
    let ((), left) = try_join!(
        biased;
        task_instance::set_counts(tx, &counts),
        run::count_down(tx, &counted),
    )?;
    for (run_pk, ends) in &by_run {
        let Some(hand) = hands.get(run_pk).filter(|hand| fails_fast(hand, ends)) else { continue };
        let request = RunStop { reason: StopReason::FailFast, by: log::SCHEDULER };
        stop::stop_run(tx, &hand.run, &request).await?;
        heads.retain(|head| head.key.run_pk != *run_pk);
    }
    settle(cx, tx, hands, heads).await?;
    let over: Vec<i64> = left.iter().filter(|(_, left)| *left <= 0).map(|(pk, _)| *pk).collect();
    roll_up(cx, tx, &over).await
}

/// The tasks below ends: (run, task).
fn below(hands: &BTreeMap<i64, Hand>, due: &[DueEnd]) -> Vec<(i64, u32)> {
    let mut tasks = BTreeSet::new();
    for end in due {
        let Some(hand) = hands.get(&end.key.run_pk) else { continue };
        let downs = hand.version.downstreams.get(end.key.task_index as usize);
        tasks.extend(downs.into_iter().flatten().map(|down| (end.key.run_pk, down.0)));
    }
    tasks.into_iter().collect()
}

fn fails_fast(hand: &Hand, ends: &[End]) -> bool {
    let is_running = hand.run.state == RunState::Running && hand.run.stop_reason.is_none();
    let fails = hand.version.dag.fail_fast && is_running;
    fails && ends.iter().any(|end| end.state == TiState::Failed)
}

/// Decides marked heads again.
async fn recheck(
    cx: &Cx,
    tx: &Tx,
    sweep: &mut Sweep,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let Some(after) = sweep.marks else { return Ok(0) };
    let mut marked = task_instance::recheck(tx, MARK_PAST, after, MARKED).await?;
    let place = |ti: &Ti| (ti.recheck, ti.key.run_pk, ti.key.task_index.into());
    sweep.marks = marked.last().filter(|_| marked.len() == MARKED as usize).map(place);
    if marked.is_empty() {
        return Ok(0);
    }
    let scan = tx.now().plus(PAST_SCAN);
    report.merge(Report { next_due: Some(scan), ..Report::default() });
    let mut taken = take(tx, marked.iter().map(|ti| ti.key.run_pk).collect()).await?;
    report.merge(taken.look_again(tx));
    taken.here.retain(|run| run.state == RunState::Running);
    let mut hands = BTreeMap::new();
    for run in taken.here {
        match cx.catalog.version(tx, run.version_pk).await {
            Ok(version) => drop(hands.insert(run.run_pk, Hand { run, version })),
            Err(trouble) => report.troubles.push(trouble.of_one_version()?),
        }
    }
    marked.retain(|ti| hands.contains_key(&ti.key.run_pk));
    settle(cx, tx, &hands, marked).await
}
