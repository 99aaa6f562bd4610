//! Workers, and the questions of `inspect`.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::dag_view::{narrow, time};
use super::failure::Failure;
use super::runs::check_text;
use fencepost_api::rest::{Action, ConfirmDead, Finding, Worker, WorkerQuery};
use fencepost_core::time::Timestamp;
use fencepost_engine::Cx;
use fencepost_engine::error::EngineError;
use fencepost_engine::liveness::incidents;
use fencepost_engine::operations::inspect::{self, Question};
use fencepost_engine::operations::workers::{self, filter, find, liveness};
use fencepost_store::Tx;
use fencepost_store::query::attempt::afterwards;
use fencepost_store::query::incident;
use fencepost_store::query::listing::jobs::{self, JobUse};

pub(super) async fn list(call: &Call) -> Done {
    let query: WorkerQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [name, id] = cursor::read("workers", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let wanted = filter(tx.now(), query.name.as_deref(), query.all);
    let ids = jobs::page(&tx, &wanted, (&name, &id), limit + 1).await?;
    let found = jobs::load(&tx, &ids).await?;
    let place =
        |one: &JobUse| cursor::write("workers", &[&one.job.name, &one.job.job_id.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    let mut rows = Vec::new();
    for one in found {
        rows.push(noted(&tx, one).await?);
    }
    Answer::ok(&cursor::page(rows, next))
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let found = find(&tx, call.arg(0)).await?;
    Answer::ok(&noted(&tx, found).await?)
}

/// With the incident of a lost one.
async fn noted(tx: &Tx, one: JobUse) -> Result<Worker, Failure> {
    let job = one.job.job_id;
    let mut worker = wire(one, tx.now());
    if let Some(own) = incident::of_jobs(tx, &[job]).await?.pop() {
        let uncertain = afterwards::uncertain(tx, own.id, job).await?;
        let name = incidents::name(own.id);
        let lost = format!("{name}: {} attempts lost", own.attempts);
        worker.note = Some(match uncertain {
            0 => lost,
            count => format!("{lost}; may still be running: {count}"),
        });
    }
    Ok(worker)
}

pub(super) async fn drain(call: &Call) -> Done {
    let reason = reason(call)?;
    if call.dry_run()? {
        return show(call).await;
    }
    let found = workers::drain(call.cx(), call.arg(0), call.by(), reason.as_deref()).await?;
    Answer::ok(&wire(found, call.cx().store.clock().now()))
}

pub(super) async fn resume(call: &Call) -> Done {
    let reason = reason(call)?;
    let found = workers::resume(call.cx(), call.arg(0), call.by(), reason.as_deref()).await?;
    Answer::ok(&wire(found, call.cx().store.clock().now()))
}

fn reason(call: &Call) -> Result<Option<String>, super::failure::Failure> {
    let body: Action = call.body()?;
    check_text("/reason", body.reason.as_deref())?;
    Ok(body.reason)
}

pub(super) async fn remove(call: &Call) -> Done {
    workers::remove(call.cx(), call.arg(0), call.by()).await?;
    Ok(Answer::nothing())
}

pub(super) async fn confirm_dead(call: &Call) -> Done {
    let body: ConfirmDead = call.body()?;
    check_text("/reason", body.reason.as_deref())?;
    let mut found = workers::mortals(call.cx(), &body.name).await?;
    if !call.dry_run()? {
        for one in &mut found {
            *one = workers::confirm(call.cx(), one, call.by(), body.reason.as_deref()).await?;
        }
    }
    let now = call.cx().store.clock().now();
    let rows = found.into_iter().map(|one| wire(one, now)).collect();
    Answer::ok(&cursor::page(rows, None))
}

fn wire(one: JobUse, now: Timestamp) -> Worker {
    let JobUse { job, leases, evidence } = one;
    let liveness = liveness(&job, now);
    let evidence = evidence.and_then(|text| serde_json::from_str(&text).ok());
    Worker {
        id: job.job_id.to_string(),
        note: note(liveness, leases),
        liveness: liveness.into(),
        name: job.name,
        host: job.host,
        queues: job.queues.split(',').map(ToOwned::to_owned).collect(),
        slots: job.slots,
        leases: narrow(leases),
        last_beat_at: job.renewed_at.to_string(),
        lease_expires_at: time(job.lease_ttl.map(|ttl| job.renewed_at.plus(ttl))),
        started_at: job.started_at.to_string(),
        ended_at: time(job.ended_at),
        version: job.version,
        boot_id: job.boot_id,
        pid: job.pid,
        evidence,
    }
}

fn note(liveness: &str, leases: i64) -> Option<String> {
    let text = match (liveness, leases) {
        ("silent", _) => "no beat for a while: a suspicion, nothing is done before its lease ends",
        ("stalled", _) => "it beats, and its loop stands still",
        ("draining", 0) => "drained: it can be stopped",
        ("draining", _) => "claims nothing more",
        ("detached", _) => "stopped; its shims wait for a successor in its home",
        ("lost", 0) => "its work was replaced",
        ("lost", _) => "may still be running; confirm-dead or evidence closes it",
        _ => return None,
    };
    Some(text.into())
}

pub(super) async fn inspect(call: &Call) -> Done {
    let question = Question::parse(call.arg(0))?;
    Answer::ok(&cursor::page(inspection(call.cx(), question).await?, None))
}

/// What a question finds, as it is shown; also to whoever looks into the store without a server.
pub async fn inspection(cx: &Cx, question: Question) -> Result<Vec<Finding>, EngineError> {
    let found = inspect::inspect(cx, question).await?;
    let row = |one: inspect::Found| Finding {
        subject: one.subject,
        state: one.state,
        since: time(one.since),
        owner: one.owner,
        detail: one.detail,
    };
    Ok(found.into_iter().map(row).collect())
}
