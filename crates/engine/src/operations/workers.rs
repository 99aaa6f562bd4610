//! Workers as a person sees and orders them: drain, resume, remove, confirm as dead.

use super::confirm_dead;
use super::run_control::AttemptRef;
use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::liveness::incidents;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::{JobKind, JobState};
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, afterwards};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::incident;
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::listing::jobs::{self, JobFilter, JobUse};
use serde_json::{Value, json};

/// How long a lost worker is listed although nothing is left of it.
const REMEMBERED: Span = Span::from_hours(24);
/// Without a beat for so long, and with a lease that has not ended, a worker is under suspicion.
const SILENT: Span = Span::from_secs(15);
/// A loop that has not turned for so long stands still.
const STALLED: Span = Span::from_secs(60);
const PAGE: u32 = 200;
/// Workers of one name or host that one word of a person covers.
const MANY: u32 = 1_000;

/// What is known of a worker's life. Only `lost` is a verdict; `silent` and `stalled` are suspicions.
pub fn liveness(job: &Job, now: Timestamp) -> &'static str {
    match job.state {
        JobState::Lost => "lost",
        JobState::Stopped if job.detached && job.succeeded_by.is_none() => "detached",
        JobState::Stopped => "stopped",
        JobState::Draining => "draining",
        JobState::Running if job.lease_ttl.is_none() => "live",
        JobState::Running if now.since(job.renewed_at) > SILENT => "silent",
        JobState::Running if job.loop_age > STALLED => "stalled",
        JobState::Running => "live",
    }
}

/// Whether it gets claims: one that drains keeps what it has, and one whose loop stands still would let them lie.
pub(crate) fn takes(job: &Job) -> bool {
    job.state != JobState::Draining && (job.lease_ttl.is_none() || job.loop_age <= STALLED)
}

/// The filter of lists.
pub fn filter(now: Timestamp, name: Option<&str>, all: bool) -> JobFilter {
    JobFilter {
        kind: JobKind::Worker,
        name: name.unwrap_or_default().into(),
        all,
        lost_after: now.minus(REMEMBERED),
    }
}

/// The worker of that id, or the newest incarnation of that name.
pub async fn find(tx: &Tx, who: &str) -> Result<JobUse, EngineError> {
    let id = match who.parse::<JobId>() {
        Ok(id) => Some(id),
        Err(_) => jobs::newest(tx, JobKind::Worker, who).await?,
    };
    let found = jobs::load(tx, id.as_slice()).await?.pop();
    let found = found.filter(|found| found.job.kind == JobKind::Worker);
    found.ok_or_else(|| Refusal::NoWorker(who.to_owned()).into())
}

/// From this commit on it claims nothing more; what it runs goes on.
pub async fn drain(
    cx: &Cx,
    who: &str,
    by: &str,
    reason: Option<&str>,
) -> Result<JobUse, EngineError> {
    change(cx, who, &Order { kind: "worker_drained", by, reason, to: JobState::Draining }).await
}

/// A draining one claims again.
pub async fn resume(
    cx: &Cx,
    who: &str,
    by: &str,
    reason: Option<&str>,
) -> Result<JobUse, EngineError> {
    change(cx, who, &Order { kind: "worker_resumed", by, reason, to: JobState::Running }).await
}

struct Order<'a> {
    kind: &'static str,
    by: &'a str,
    reason: Option<&'a str>,
    to: JobState,
}

async fn change(cx: &Cx, who: &str, order: &Order<'_>) -> Result<JobUse, EngineError> {
    let tx = cx.store.begin("change_worker").await?;
    let found = find(&tx, who).await?;
    let (id, from) = (found.job.job_id, found.job.state);
    let changed = match order.to {
        JobState::Draining => job::drain(&tx, id).await?,
        JobState::Running | JobState::Stopped | JobState::Lost => job::resume(&tx, id).await?,
    };
    if !changed && from != order.to {
        let what = format!("worker {}", found.job.name);
        return Err(Refusal::AlreadyTerminal { what, state: from.to_string() }.into());
    }
    if changed {
        event::append(&tx, vec![line(&found.job, order)]).await?;
    }
    let found = find(&tx, &id.to_string()).await?;
    tx.commit().await?;
    cx.wakes.workers();
    Ok(found)
}

fn line(job: &Job, order: &Order<'_>) -> Event {
    Event {
        kind: order.kind,
        actor: order.by.into(),
        from: Some(job.state.as_str()),
        to: Some(order.to.as_str()),
        reason: Some(order.reason.map_or_else(|| job.name.clone(), ToOwned::to_owned)),
        evidence: Some(json!({ "job": job.job_id.to_string(), "worker": job.name })),
        ..Event::default()
    }
}

/// Takes a worker that is over from the lists. Its attempts keep its name.
pub async fn remove(cx: &Cx, who: &str, by: &str) -> Result<(), EngineError> {
    let tx = cx.store.begin("remove_worker").await?;
    let found = find(&tx, who).await?;
    let worker = format!("worker {}", found.job.name);
    if found.leases > 0 || !job::remove(&tx, found.job.job_id).await? {
        let state = match found.leases {
            0 => found.job.state.to_string(),
            count => format!("{} with {count} attempts in its hands", found.job.state),
        };
        let mend = "drain it and wait for what it runs, or confirm it dead if it is";
        return Err(Refusal::WorkerActive { worker, state, mend }.into());
    }
    let order = Order { kind: "worker_removed", by, reason: None, to: found.job.state };
    event::append(&tx, vec![line(&found.job, &order)]).await?;
    tx.commit().await?;
    Ok(())
}

/// The workers that a person's word would be about: of that name, or on that host, which are not over
/// or have attempts in their hands. One that beats is meant only where its id is given: a restarted
/// worker has the name of the dead one.
pub async fn mortals(cx: &Cx, name: &str) -> Result<Vec<JobUse>, EngineError> {
    let tx = cx.store.read("find_workers").await?;
    if let Ok(id) = name.parse::<JobId>() {
        return Ok(jobs::load(&tx, &[id]).await?);
    }
    let now = tx.now();
    let ids = jobs::page(&tx, &filter(now, Some(name), false), ("", ""), MANY).await?;
    let found = jobs::load(&tx, &ids).await?;
    if found.is_empty() {
        return Err(Refusal::NoWorker(name.to_owned()).into());
    }
    let mut meant = Vec::new();
    for one in found {
        if one.leases > 0 || liveness(&one.job, now) != "lost" || leaves_doubt(&tx, &one).await? {
            meant.push(one);
        }
    }
    let (living, mortal): (Vec<_>, Vec<_>) =
        meant.into_iter().partition(|one| beats(&one.job, now));
    match living.first() {
        Some(one) if mortal.is_empty() => {
            let worker = format!("worker `{name}` ({})", one.job.job_id);
            let state = format!("alive, its last beat came {} ago", quiet(&one.job, now));
            let mend = "drain it; or stop it, or name its id, if you know better";
            Err(Refusal::WorkerActive { worker, state, mend }.into())
        }
        _ => Ok(mortal),
    }
}

/// Whether something of a lost one may still run, though all of it was closed.
async fn leaves_doubt(tx: &Tx, one: &JobUse) -> Result<bool, EngineError> {
    let Some(own) = incident::of_jobs(tx, &[one.job.job_id]).await?.pop() else { return Ok(false) };
    Ok(afterwards::uncertain(tx, own.id, own.job_id).await? > 0)
}

/// Whether it renewed its lease within moments.
fn beats(job: &Job, now: Timestamp) -> bool {
    let is_open = matches!(job.state, JobState::Running | JobState::Draining);
    is_open && job.lease_ttl.is_some() && quiet(job, now) <= SILENT
}

fn quiet(job: &Job, now: Timestamp) -> Span {
    now.since(job.renewed_at).in_secs()
}

/// A person states that the processes of a worker are gone: its job is over, and each of its
/// attempts is ended by that evidence, whatever its task says about mere expiry.
pub async fn confirm(
    cx: &Cx,
    found: &JobUse,
    by: &str,
    reason: Option<&str>,
) -> Result<JobUse, EngineError> {
    let tx = cx.store.begin("confirm_worker_dead").await?;
    let at = tx.now();
    let word = evidence(&found.job, by, reason, at);
    let declared = job::confirm_dead(&tx, found.job.job_id, &word.to_string()).await?;
    if declared {
        let own = Order { kind: "job_lost", by, reason, to: JobState::Lost };
        let evidence = Some(word.clone());
        event::append(&tx, vec![Event { evidence, ..line(&found.job, &own) }]).await?;
    }
    tx.commit().await?;
    let mut lost = Vec::new();
    for token in open(cx, found.job.job_id).await? {
        match confirm_dead::confirm_dead(cx, &AttemptRef::Token(token), by, reason).await {
            Ok(()) => lost.push(token),
            // A scheduler or the worker itself came first.
            Err(EngineError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let tx = cx.store.begin("confirm_worker_dead").await?;
    // What its expiry had closed before is settled by the same word.
    afterwards::gone_of(&tx, found.job.job_id).await?;
    if declared || !lost.is_empty() {
        incidents::confirmed(&tx, found.job.job_id, (by, &word), &lost).await?;
    }
    tx.commit().await?;
    cx.wakes.engine();
    let look = cx.store.read("find_workers").await?;
    find(&look, &found.job.job_id.to_string()).await
}

fn evidence(job: &Job, by: &str, reason: Option<&str>, at: Timestamp) -> Value {
    json!({
        "kind": "person",
        "at": at.to_string(),
        "job": job.job_id.to_string(),
        "job_kind": job.kind.as_str(),
        "worker": job.name,
        "host": job.host,
        "last_heartbeat_at": job.renewed_at.to_string(),
        "declared_by": by,
        "reason": reason,
    })
}

async fn open(cx: &Cx, job_id: JobId) -> Result<Vec<Token>, EngineError> {
    let tx = cx.store.read("find_claims").await?;
    let mut tokens: Vec<Token> = Vec::new();
    loop {
        let after = tokens.last().map_or(0, |token| token.as_i64());
        let page = attempt::open_of(&tx, job_id, after, PAGE).await?;
        tokens.extend(page.iter().map(|open| open.token));
        if page.len() < PAGE as usize {
            return Ok(tokens);
        }
    }
}
