//! Attempts on the wire.

use super::dag_view::time;
use super::failure::Failure;
use fencepost_api::rest::{Attempt, Evidence};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::attempt;
use fencepost_store::query::attempt::afterwards;
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::listing;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, TiKey};
use std::collections::{BTreeMap, BTreeSet};

/// What a page of attempts needs beside its rows.
#[derive(Debug, Default)]
struct Around {
    run_ids: BTreeMap<i64, String>,
    task_ids: BTreeMap<TiKey, String>,
    /// The numbers of attempts that were replaced.
    numbers: BTreeMap<Token, u32>,
    refused: BTreeMap<Token, u32>,
    /// Those that ended without a proof that their processes have.
    doubtful: BTreeSet<Token>,
    /// Owners of what has not ended.
    jobs: BTreeMap<JobId, Job>,
}

impl Around {
    async fn read(tx: &Tx, found: &[attempt::Attempt]) -> Result<Self, Failure> {
        let keys: BTreeSet<TiKey> = found.iter().map(|attempt| attempt.ti).collect();
        let keys: Vec<TiKey> = keys.into_iter().collect();
        let mut runs: Vec<i64> = keys.iter().map(|key| key.run_pk).collect();
        runs.dedup();
        let tokens: Vec<Token> = found.iter().map(|attempt| attempt.token).collect();
        let replaced: Vec<Token> = found.iter().filter_map(|attempt| attempt.replaces).collect();
        let open = found.iter().filter(|attempt| attempt.state != AttemptState::Ended);
        let owners: BTreeSet<JobId> = open.filter_map(|attempt| attempt.job_id).collect();
        let mut around = Self::default();
        for run in run::by_pks(tx, &runs).await? {
            around.run_ids.insert(run.run_pk, run.run_id);
        }
        for ti in task_instance::get(tx, &keys).await? {
            around.task_ids.insert(ti.key, ti.task_id);
        }
        for other in attempt::get(tx, &replaced).await? {
            around.numbers.insert(other.token, other.attempt_number);
        }
        around.refused.extend(listing::attempts::refused(tx, &tokens).await?);
        around.doubtful.extend(afterwards::doubtful(tx, &tokens).await?);
        // As many as there are workers, not attempts.
        for owner in owners {
            around.jobs.extend(job::get(tx, owner).await?.map(|job| (owner, job)));
        }
        Ok(around)
    }
}

/// Attempts with what belongs to them, read for all at once.
pub(super) async fn attempts(
    tx: &Tx,
    found: Vec<attempt::Attempt>,
) -> Result<Vec<Attempt>, Failure> {
    let around = Around::read(tx, &found).await?;
    Ok(found.into_iter().map(|attempt| wire(attempt, &around)).collect())
}

fn wire(attempt: attempt::Attempt, around: &Around) -> Attempt {
    let evidence = evidence(&attempt);
    Attempt {
        may_still_run: attempt.state == AttemptState::LostOpen
            || around.doubtful.contains(&attempt.token),
        attempt_id: attempt.attempt_id.to_string(),
        run_id: around.run_ids.get(&attempt.ti.run_pk).cloned().unwrap_or_default(),
        task_id: around.task_ids.get(&attempt.ti).cloned().unwrap_or_default(),
        map_index: attempt.ti.map_index,
        dag_id: attempt.dag_id,
        try_number: attempt.try_number,
        attempt_number: attempt.attempt_number,
        token: attempt.token.as_i64().to_string(),
        why: attempt.why.as_str().into(),
        replaces: attempt.replaces.and_then(|token| around.numbers.get(&token).copied()),
        state: attempt.state.as_str().into(),
        worker: attempt.worker,
        host: attempt.host,
        containment: attempt.containment,
        queued_at: attempt.queued_at.to_string(),
        claimed_at: time(attempt.claimed_at),
        started_at: time(attempt.started_at),
        ended_at: time(attempt.ended_at),
        outcome: attempt.outcome.map(|outcome| outcome.as_str().into()),
        message: attempt.message,
        // Of what is being stopped: why.
        reason: attempt.reason.or_else(|| attempt.stop_reason.map(|stop| stop.as_str().into())),
        exit_code: attempt.exit_code.and_then(|code| i32::try_from(code).ok()),
        signal: attempt.signal.and_then(|signal| i32::try_from(signal).ok()),
        counted_as: attempt.counted_as.map(|counted| counted.as_str().into()),
        evidence,
        refused_writes: around.refused.get(&attempt.token).copied().unwrap_or(0),
        lease_expires_at: attempt
            .job_id
            .and_then(|job| around.jobs.get(&job))
            .and_then(lease_end)
            .map(|at| at.to_string()),
    }
}

fn lease_end(job: &Job) -> Option<Timestamp> {
    job.lease_ttl.map(|ttl| job.renewed_at.plus(ttl))
}

/// What is known of its end.
pub(super) fn evidence(attempt: &attempt::Attempt) -> Option<Evidence> {
    let stored = attempt.evidence.as_deref()?;
    serde_json::from_str(stored).ok()
}
