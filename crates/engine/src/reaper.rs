//! The reaper's pass: time-outs of runs, of queued attempts and of claims.

use crate::error::EngineError;
use crate::log;
use crate::operations::ramp::{self, RECOVERS};
use crate::operations::report::unstarted;
use crate::operations::stop::{self, RunStop};
use crate::{Cx, Pass, Report};
use fencepost_core::id::Token;
use fencepost_core::lifecycle::ti_next;
use fencepost_core::state::{Outcome, StopReason};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::event;
use fencepost_store::query::pool;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};
use std::collections::BTreeMap;
use std::pin::Pin;

const BATCH: u32 = 100;

/// Why an attempt that was not started is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Nobody claimed it.
    Queued,
    /// Its claimer did not start it.
    Claimed,
    /// Its token is of an epoch that is over.
    Epoch,
}

impl Late {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued_timeout",
            Self::Claimed => "start_timeout",
            Self::Epoch => "epoch",
        }
    }

    /// Whether it counts towards the bound on requeues.
    const fn counts(self) -> bool {
        !matches!(self, Self::Epoch)
    }
}
/// Runs that are stopped in one transaction.
const RUNS: u32 = 16;

/// The pass. It remembers nothing between turns.
#[derive(Debug, Default)]
pub struct Reaper;

impl Pass for Reaper {
    fn name(&self) -> &'static str {
        "reaper"
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = time_out_runs(cx).await?;
            report.merge(requeue(cx).await?);
            Ok(report)
        })
    }
}

async fn time_out_runs(cx: &Cx) -> Result<Report, EngineError> {
    let tx = cx.store.begin("time_out_runs").await?;
    let overdue = run::overdue(&tx, RUNS).await?;
    for run in &overdue {
        let request = RunStop { reason: StopReason::DagrunTimeout, by: log::REAPER };
        stop::stop_run(&tx, run, &request).await?;
    }
    let next_due = run::next_deadline(&tx).await?;
    tx.commit().await?;
    if !overdue.is_empty() {
        cx.wakes.engine();
    }
    Ok(Report { moved: overdue.len(), next_due, troubles: Vec::new() })
}

/// Attempts that nobody claimed within `queued_timeout`, and claims not started within
/// `start_timeout`, end `never_ran` and are replaced: a start of the old token is refused from then
/// on, so even a worker that wakes up late runs nothing.
async fn requeue(cx: &Cx) -> Result<Report, EngineError> {
    let tx = cx.store.begin("requeue").await?;
    let late = tx.now().minus(cx.settings.start_timeout);
    let mut found: Vec<(Attempt, Late)> = Vec::new();
    for attempt in attempt::unclaimed(&tx, BATCH).await? {
        found.push((attempt, Late::Queued));
    }
    for attempt in attempt::unstarted(&tx, late, BATCH).await? {
        found.push((attempt, Late::Claimed));
    }
    let moved = found.len();
    if moved > 0 {
        take_back(cx, &tx, &found).await?;
        cx.wakes.engine();
    }
    pool::settle(&tx).await?;
    ramp::end_idle(&tx).await?;
    tx.commit().await?;
    Ok(Report { moved, ..Report::default() })
}

/// Ends attempts `never_ran` that were found without a lock, and gives their instances back to the
/// dispatcher; how many. One that moved meanwhile stays.
pub(crate) async fn take_back(
    cx: &Cx,
    tx: &Tx,
    found: &[(Attempt, Late)],
) -> Result<usize, EngineError> {
    let tokens: Vec<Token> = found.iter().map(|(attempt, _)| attempt.token).collect();
    let tis: BTreeMap<TiKey, Ti> =
        task_instance::of_attempts(tx, &tokens).await?.into_iter().map(|ti| (ti.key, ti)).collect();
    // They were found without a lock: one may have been claimed, started or taken back meanwhile.
    let locked = attempt::get(tx, &tokens).await?;
    let stands = |found: &Attempt| locked.iter().any(|a| a == found);
    let (mut ends, mut changes) = (Vec::new(), Vec::new());
    for (attempt, reason) in found.iter().filter(|(attempt, _)| stands(attempt)) {
        let Some(ti) = tis.get(&attempt.ti).filter(|ti| ti.token == Some(attempt.token)) else {
            continue;
        };
        let limit = if reason.counts() { cx.settings.requeue_limit } else { u32::MAX };
        let verdict = unstarted(ti, limit);
        let Ok(to) = ti_next(ti.state, verdict.event) else { continue };
        ends.extend(stop::end_unstarted(attempt, Outcome::NeverRan, reason.as_str()));
        let mut change = TiChange::of(ti);
        change.to.state = to;
        change.to.requeues += u32::from(reason.counts());
        let recovers = attempt.ramp.is_some() || *reason == Late::Epoch;
        change.to.next_why = if recovers { RECOVERS } else { "replaces" }.into();
        change.to.scheduled_at = Some(tx.now());
        if to.is_finished() {
            stop::finish(&mut change.to, reason.as_str(), tx.now());
        } else {
            change.to.reason = Some(reason.as_str().into());
        }
        changes.push(change);
    }
    stop::end_all(tx, &ends).await?;
    task_instance::change(tx, &changes).await?;
    let lines = changes.iter().map(|c| {
        let mut line = log::ti_state(&c.to, c.from, log::REAPER);
        line.kind = "reset";
        line
    });
    event::append(tx, lines.collect()).await?;
    let failed = found.iter().filter(|(_, reason)| *reason == Late::Claimed);
    ramp::failed(tx, &failed.filter_map(|(attempt, _)| attempt.ramp.clone()).collect()).await?;
    Ok(ends.len())
}
