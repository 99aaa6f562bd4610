//! A declaration: one small transaction that makes a job `lost`, with its evidence and its incident.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::guard::Guard;
use fencepost_core::liveness::Expired;
use fencepost_core::state::JobKind;
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::lease::{self, Declaration};
use fencepost_store::query::{incident, installation};
use serde_json::{Value, json};

/// How a job died. A death alone is a sign of poison in what it ran.
pub(super) const ALONE: &str = "alone";
const MANY: &str = "many";
const DETACHED: &str = "detached";

/// Declares an expired job lost; `false` if it renewed, ended or was declared meanwhile.
pub(super) async fn declare(cx: &Cx, expired: &Expired) -> Result<bool, EngineError> {
    let tx = cx.store.begin("declare").await?;
    if cx.settings.guards.on(Guard::DeclareRowLock) {
        lease::lock(&tx, expired.job).await?;
    }
    let Some(job) = job::get(&tx, expired.job).await? else { return Ok(false) };
    let epoch = installation::load(&tx).await?.map_or(1, |row| row.epoch);
    let (death, evidence) = (death(&job, expired), evidence(cx, &tx, &job, expired, epoch));
    let declaration = Declaration {
        job: job.job_id,
        renew_seq: observed(cx, &job, expired),
        window: expired.window,
        death,
        evidence: evidence.to_string(),
        at: agreed(cx, &tx),
    };
    if !lease::declare(&tx, &declaration).await? {
        return Ok(false);
    }
    incident::open(&tx, job.job_id, death, cx.actor(), &declaration.evidence).await?;
    let line = Event {
        kind: "job_lost",
        actor: cx.actor().into(),
        from: Some(job.state.as_str()),
        to: Some("lost"),
        reason: Some(format!("{} `{}` on {}: {death}", job.kind, job.name, job.host)),
        evidence: Some(evidence),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    Ok(true)
}

fn death(job: &Job, expired: &Expired) -> &'static str {
    match job.kind {
        JobKind::Worker if job.detached => DETACHED,
        JobKind::Worker if !expired.alone => MANY,
        JobKind::Worker | JobKind::Scheduler | JobKind::Server | JobKind::Triggerer => ALONE,
    }
}

/// The renewal that the row must still have.
fn observed(cx: &Cx, job: &Job, expired: &Expired) -> i64 {
    let compares = cx.settings.guards.on(Guard::DeclareCompareAndSet);
    if compares { expired.renew_seq } else { job.renew_seq }
}

/// The store's instant at which the lease must be over.
fn agreed(cx: &Cx, tx: &Tx) -> Timestamp {
    let agrees = cx.settings.guards.on(Guard::StoreClock);
    if agrees { tx.now() } else { Timestamp::from_micros(i64::MAX) }
}

/// What is known, as `attempts` shows it with each attempt of the job.
fn evidence(cx: &Cx, tx: &Tx, job: &Job, expired: &Expired, epoch: u32) -> Value {
    json!({
        "kind": "expiry",
        "at": tx.now().to_string(),
        "job": job.job_id.to_string(),
        "job_kind": job.kind.as_str(),
        "worker": job.name,
        "host": job.host,
        "last_heartbeat_at": job.renewed_at.to_string(),
        "lease_expires_at": job.renewed_at.plus(expired.ttl).to_string(),
        "observed_for": expired.window.to_string(),
        "declared_by": cx.actor(),
        "term": epoch,
    })
}
