//! Queued runs start while `max_active_runs` has room: their task instances are made, and those
//! without upstreams get going.

use super::forward::MARK_NOW;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::log;
use crate::{Cx, Report};
use fencepost_core::lifecycle::{RunEvent, run_next};
use fencepost_core::plan::runs::Instances;
use fencepost_core::state::TiState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::dag;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, Run, Startable};
use fencepost_store::query::task_instance::{self, Ti, TiKey};

/// DAGs looked at in one transaction.
const DAGS: u32 = 50;
/// When a DAG that somebody else has in hand is looked at again.
const AGAIN: Span = Span::from_millis(20);
/// Runs started in one transaction: a large one holds up nobody for long.
const RUNS: u32 = 16;

pub(super) async fn start_runs(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    let mut after = String::new();
    loop {
        let tx = cx.store.begin("start_runs").await?;
        let startable = run::startable(&tx, &after, DAGS).await?;
        let mut moved = 0;
        for dag in &startable {
            moved += start_some(cx, &tx, dag, &mut report).await?;
        }
        tx.commit().await?;
        report.moved += moved;
        match startable.last() {
            // A DAG may have room for more than one transaction starts.
            Some(_) if moved > 0 => after.clear(),
            Some(last) if startable.len() == DAGS as usize => after.clone_from(&last.dag_id),
            Some(_) | None => return Ok(report),
        }
    }
}

/// Starts the oldest queued runs of a DAG as far as there is room; how many. One whose version
/// cannot be read stays queued and takes nobody's place.
async fn start_some(
    cx: &Cx,
    tx: &Tx,
    of: &Startable,
    report: &mut Report,
) -> Result<usize, EngineError> {
    // The limit is the DAG's: who starts runs has its lock, and counts under it.
    let Some(row) = dag::take(tx, &of.dag_id).await? else {
        let again = tx.now().plus(AGAIN);
        report.merge(Report { next_due: Some(again), ..Report::default() });
        return Ok(0);
    };
    let active = run::count_active(tx, &of.dag_id).await?;
    let room = usize::try_from(row.max_active_runs - active).unwrap_or(0).min(RUNS as usize);
    if room == 0 {
        return start_older(cx, tx, of, report).await;
    }
    let mut started = 0;
    let mut after = (Timestamp::from_micros(i64::MIN), 0);
    while started < room {
        let page = run::queued(tx, &of.dag_id, after, RUNS).await?;
        for queued in page.iter().take(room - started) {
            after = (queued.run_after, queued.run_pk);
            match start(cx, tx, queued).await {
                Ok(()) => started += 1,
                Err(error) => {
                    let why = error.of_one_version()?;
                    report.troubles.push(format!("{}: {why}", queued.run_id));
                }
            }
        }
        if page.is_empty() {
            break;
        }
    }
    Ok(started)
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
    match start(cx, tx, &older).await {
        Ok(()) => Ok(1),
        Err(error) => {
            report.troubles.push(error.of_one_version()?);
            Ok(0)
        }
    }
}

async fn start(cx: &Cx, tx: &Tx, queued: &Run) -> Result<(), EngineError> {
    let Ok(to) = run_next(queued.state, RunEvent::Start) else { return Ok(()) };
    let version = cx.catalog.version(tx, queued.version_pk).await?;
    let unfinished = if queued.made {
        task_instance::states(tx, queued.run_pk)
            .await?
            .iter()
            .map(|s| if s.state.is_finished() { s.uncounted } else { s.count })
            .map(i64::from)
            .sum()
    } else {
        let tis = make(&version, queued, tx.now());
        task_instance::insert(tx, &tis).await?;
        i64::try_from(tis.len()).unwrap_or(i64::MAX)
    };
    let timeout = version.dag.dagrun_timeout;
    if !run::start(tx, queued.run_pk, unfinished, timeout).await? {
        return Ok(());
    }
    let started = log::run(queued, "run_state", to.as_str(), log::SCHEDULER, "");
    event::append(tx, vec![started]).await?;
    if unfinished == 0 {
        return super::forward::roll_up(cx, tx, queued.run_pk).await;
    }
    // Its roots are marked; the forward step of the same pass decides them.
    Ok(())
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
    } else if made.upstream.total == 0 && map_index == made.first {
        ti.recheck = MARK_NOW;
    }
    Some(ti)
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
        scheduled_at: None,
        queued_at: None,
        started_at: None,
        ended_at: None,
    })
}
