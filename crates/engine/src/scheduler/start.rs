//! Queued runs start while `max_active_runs` has room: their task instances are made, and those
//! without upstreams get going.

use super::forward::MARK_NOW;
use super::overlap;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::log;
use crate::{Cx, Report};
use fencepost_core::lifecycle::{RunEvent, run_next, ti_next};
use fencepost_core::plan::forward::{self, Gates, Move};
use fencepost_core::plan::runs::Instances;
use fencepost_core::state::TiState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::dag;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::run::{self, Run, RunStart, Startable};
use fencepost_store::query::task_instance::{self, Moved, Ti, TiKey};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::try_join;

/// DAGs looked at in one transaction.
const DAGS: u32 = 50;
/// When a DAG that somebody else has in hand is looked at again.
pub(super) const AGAIN: Span = Span::from_millis(20);
/// Runs started in one transaction: a large one holds up nobody for long.
pub(super) const RUNS: u32 = 16;

pub(super) async fn start_runs(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    let mut after = String::new();
    loop {
        let tx = cx.store.begin("start_runs").await?;
        let startable = run::startable(&tx, &after, DAGS).await?;
        let mut moved = 0;
        let mut replaced = Vec::new();
        for dag in &startable {
            let started = start_some(cx, &tx, dag, &mut report).await?;
            moved += started.moved;
            replaced.extend(started.replaced);
        }
        tx.commit().await?;
        report.moved += moved;
        for old in &replaced {
            overlap::replace(cx, old, &mut report).await?;
        }
        match startable.last() {
            // A DAG may have room for more than one transaction starts.
            Some(_) if moved > 0 => after.clear(),
            Some(last) if startable.len() == DAGS as usize => after.clone_from(&last.dag_id),
            Some(_) | None => return Ok(report),
        }
    }
}

/// What came of a DAG's queued runs.
#[derive(Default)]
struct Started {
    /// Runs that started, or gave way.
    moved: usize,
    /// The run that is to make place.
    replaced: Option<Run>,
}

/// Starts the oldest queued runs of a DAG as far as there is room; what may not wait gives way. One
/// whose version cannot be read stays queued and takes nobody's place.
async fn start_some(
    cx: &Cx,
    tx: &Tx,
    of: &Startable,
    report: &mut Report,
) -> Result<Started, EngineError> {
    // The limit is the DAG's: who starts runs has its lock, and counts under it.
    let Some(row) = dag::take(tx, &of.dag_id).await? else {
        let again = tx.now().plus(AGAIN);
        report.merge(Report { next_due: Some(again), ..Report::default() });
        return Ok(Started::default());
    };
    let policy = overlap::policy(cx, tx, &row, report).await?;
    let missed = overlap::miss_late(tx, &of.dag_id, &policy, report).await?;
    let active = run::count_active(tx, &of.dag_id).await?;
    let room = usize::try_from(row.max_active_runs - active).unwrap_or(0);
    let started = match room {
        0 => start_older(cx, tx, of, report).await?,
        room => start_oldest(cx, tx, of, room.min(RUNS as usize), report).await?,
    };
    let mut out = Started { moved: missed + started, replaced: None };
    if started >= room {
        let (missed, replaced) = overlap::give_way(tx, &of.dag_id, policy.overlap).await?;
        out.moved += missed;
        out.replaced = replaced;
    }
    Ok(out)
}

async fn start_oldest(
    cx: &Cx,
    tx: &Tx,
    of: &Startable,
    room: usize,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let mut started = 0;
    let mut after = (Timestamp::from_micros(i64::MIN), 0);
    while started < room {
        let page = run::queued(tx, &of.dag_id, after, RUNS).await?;
        let Some(last) = page.last() else { break };
        after = (last.run_after, last.run_pk);
        let readable = readable(cx, tx, page, room - started, report).await?;
        started += readable.len();
        start(cx, tx, &readable).await?;
    }
    Ok(started)
}

/// Queued runs, each with its version.
pub(super) type Readable = Vec<(Run, Arc<Version>)>;

/// The first `most` of some runs, without those whose version cannot be read.
pub(super) async fn readable(
    cx: &Cx,
    tx: &Tx,
    runs: Vec<Run>,
    most: usize,
    report: &mut Report,
) -> Result<Readable, EngineError> {
    let mut out = Vec::new();
    for run in runs {
        if out.len() == most {
            break;
        }
        match cx.catalog.version(tx, run.version_pk).await {
            Ok(version) => out.push((run, version)),
            Err(error) => {
                let why = error.of_one_version()?;
                report.troubles.push(format!("{}: {why}", run.run_id));
            }
        }
    }
    Ok(out)
}

/// A run that only waits for the one before it takes no place from that one: else an older run that
/// was cleared and a newer, blocked one would wait for each other for ever.
async fn start_older(
    cx: &Cx,
    tx: &Tx,
    dag: &Startable,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let Some(older) = run::older_than_waiting(tx, &dag.dag_id).await? else { return Ok(0) };
    let places = run::places(tx, &dag.dag_id, 0).await?;
    if places.is_none_or(|places| places.taken >= places.max_active_runs) {
        return Ok(0);
    }
    let readable = readable(cx, tx, vec![older], 1, report).await?;
    start(cx, tx, &readable).await?;
    Ok(readable.len())
}

/// Starts queued runs. What waits for nothing is scheduled at once; roots that have more to ask are marked,
/// and the forward step of the same pass decides them.
pub(super) async fn start(cx: &Cx, tx: &Tx, queued: &Readable) -> Result<(), EngineError> {
    let made: Vec<i64> = queued.iter().filter(|(run, _)| run.made).map(|(r, _)| r.run_pk).collect();
    let mut unfinished: BTreeMap<i64, i64> = BTreeMap::new();
    for s in task_instance::states(tx, &made).await? {
        let left = if s.state.is_finished() { s.uncounted } else { s.count };
        *unfinished.entry(s.run_pk).or_default() += i64::from(left);
    }
    let (mut tis, mut starts, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (run, version) in queued {
        let Ok(to) = run_next(run.state, RunEvent::Start) else { continue };
        let mut own = vec![log::run(run, "run_state", to.as_str(), log::SCHEDULER, "")];
        let left = if run.made {
            unfinished.get(&run.run_pk).copied().unwrap_or(0)
        } else {
            let fresh = make(version, run, tx.now());
            own.extend(fresh.iter().filter_map(went));
            let count = i64::try_from(fresh.len()).unwrap_or(i64::MAX);
            tis.extend(fresh);
            count
        };
        let timeout = version.dag.dagrun_timeout;
        starts.push(RunStart { run_pk: run.run_pk, unfinished: left, timeout });
        lines.push(own);
    }
    let ((), started) = try_join!(
        biased;
        task_instance::insert(tx, &tis),
        run::start(tx, &starts),
    )?;
    let lines = lines.into_iter().zip(&started).filter(|(_, started)| **started);
    event::append(tx, lines.flat_map(|(lines, _)| lines).collect()).await?;
    let empty = starts.iter().zip(started).filter(|(of, started)| *started && of.unfinished == 0);
    let empty: Vec<i64> = empty.map(|(of, _)| of.run_pk).collect();
    super::forward::roll_up(cx, tx, &empty).await
}

/// The instances of a fresh run.
fn make(version: &Version, run: &Run, now: Timestamp) -> Vec<Ti> {
    let of_task = |made: &Instances| {
        let made = *made;
        (0..made.count).map(move |n| (made, made.first + i32::try_from(n).unwrap_or(i32::MAX)))
    };
    version
        .instances
        .iter()
        .flat_map(of_task)
        .filter_map(|(made, map_index)| instance(version, run, &made, map_index, now))
        .collect()
}

fn instance(
    version: &Version,
    run: &Run,
    made: &Instances,
    map_index: i32,
    now: Timestamp,
) -> Option<Ti> {
    let mut ti = fresh_instance(version, run, made, map_index)?;
    if made.empty {
        // An empty expansion has nothing to run: it is skipped as in Airflow.
        ti.state = TiState::Skipped;
        ti.forward_due = true;
        ti.reason = Some("empty_expand".into());
        ti.ended_at = Some(now);
    } else if let Some((to, reason)) = at_once(version, made) {
        ti.state = to;
        ti.reason = Some(reason.into());
        ti.forward_due = to.is_finished();
        ti.scheduled_at = (!to.is_finished()).then_some(now);
        ti.ended_at = to.is_finished().then_some(now);
    } else if made.upstream.total == 0 && map_index == made.first {
        ti.recheck = MARK_NOW;
    }
    Some(ti)
}

/// Where the instances of a task go that has nothing to wait for and nothing to ask.
fn at_once(version: &Version, made: &Instances) -> Option<(TiState, &'static str)> {
    let task = version.dag.tasks.get(made.task.at())?;
    // One that has outlets is settled where its events are emitted.
    if made.upstream.total > 0 || task.depends_on_past || !task.outlets.is_empty() {
        return None;
    }
    match forward::decide(&version.dag, made.task, &made.upstream, Gates::default()) {
        Move::Apply(event, reason) => Some((ti_next(TiState::None, event).ok()?, reason)),
        Move::Wait | Move::WaitForPast | Move::Evaluate | Move::Expand | Move::Trigger => None,
    }
}

/// The line of an instance that did not begin as `none`.
fn went(ti: &Ti) -> Option<Event> {
    let (task_id, dag_id) = (ti.task_id.clone(), ti.dag_id.clone());
    let moved = Moved { key: ti.key, task_id, dag_id, calls: ti.calls };
    let reason = ti.reason.as_deref().unwrap_or_default();
    (ti.state != TiState::None).then(|| log::moved(&moved, ti.state, reason))
}

/// An instance as it is before anything has happened to it; also what is shown of a run whose
/// instances are not made yet.
pub fn fresh_instance(
    version: &Version,
    run: &Run,
    made: &Instances,
    map_index: i32,
) -> Option<Ti> {
    let task = version.dag.tasks.get(made.task.at())?;
    Some(Ti {
        key: TiKey { run_pk: run.run_pk, task_index: made.task.0, map_index },
        task_id: task.task_id.as_str().into(),
        dag_id: run.dag_id.clone(),
        state: TiState::None,
        token: None,
        try_number: 1,
        max_tries: task.retry.retries.saturating_add(1),
        attempts: 0,
        infra_losses: 0,
        single_deaths: 0,
        requeues: 0,
        clears: 0,
        generation: 0,
        pool: task.limits.pool.as_str().into(),
        pool_slots: task.limits.pool_slots.into(),
        priority: version.priorities.get(made.task.at()).copied().unwrap_or(1),
        upstream: made.upstream,
        forward_due: false,
        recheck: 0,
        retry_at: None,
        next_why: "first".into(),
        prev_outcome: "first".into(),
        reason: None,
        mapped: None,
        scheduled_at: None,
        queued_at: None,
        started_at: None,
        ended_at: None,
        calls: version.dag.calls_of(task),
    })
}
