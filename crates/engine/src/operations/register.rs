//! A process introduces itself; its predecessors in the same home end in its favour.

use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::facts::Facts;
use crate::log;
use fencepost_core::guard::Guard;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::{AttemptState, JobKind, JobState};
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Claimer};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::{home, installation, lease};

/// Who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub job_id: JobId,
    pub kind: JobKind,
    pub name: String,
    pub host: String,
    pub pid: u32,
    pub pid_start: i64,
    pub boot_id: String,
    pub machine_id: String,
    pub home_id: String,
    /// The number of this registration among those of its home; 0 if nobody counts them.
    pub registration: i64,
    pub version: String,
    pub queues: Vec<String>,
    pub slots: u32,
    pub lease_ttl: Option<Span>,
}

/// A claim of a predecessor.
#[derive(Debug)]
pub struct HandedOver {
    pub attempt: Attempt,
    pub facts: Result<Facts, String>,
}

const PAGE: u32 = 100;

/// Registers a job, unless a later registration of its home is known. In the same transaction its
/// predecessors end with it as their successor and their claims become its own; it answers for each
/// of them (`take_over`, `report`).
pub async fn register(cx: &Cx, who: &Identity) -> Result<Vec<HandedOver>, EngineError> {
    let tx = cx.store.begin("register").await?;
    take_home(cx, &tx, who).await?;
    let epoch = installation::standing(&tx).await?.map_or(1, |standing| match who.kind {
        // While an epoch is not reconciled a worker has to come to it, as all others.
        JobKind::Worker => standing.reconciled,
        JobKind::Scheduler | JobKind::Server | JobKind::Triggerer => standing.epoch,
    });
    job::insert(&tx, &row(who, &tx, epoch)).await?;
    // Asked for again after a lost answer, perhaps much later.
    if let Some(known) = job::get(&tx, who.job_id).await?.filter(|job| is_over(job.state)) {
        let what = format!("job {}", who.job_id);
        return Err(Refusal::AlreadyTerminal { what, state: known.state.to_string() }.into());
    }
    let predecessors = succeed(&tx, who).await?;
    // Before every numbered call of the successor.
    let by = Claimer { job_id: who.job_id, worker: &who.name, host: &who.host, call: 0 };
    for predecessor in &predecessors {
        let mut after = 0;
        loop {
            let page = attempt::open_of(&tx, *predecessor, after, PAGE).await?;
            for open in &page {
                attempt::hand_over(&tx, open.token, by).await?;
                after = open.token.as_i64();
            }
            if page.len() < PAGE as usize {
                break;
            }
        }
    }
    let tokens = open_tokens(&tx, who.job_id).await?;
    event::append(&tx, vec![line(who, &predecessors, tokens.len())]).await?;
    tx.commit().await?;
    let loaded = super::claim::load(cx, &tokens).await?;
    Ok(loaded.into_iter().map(|(attempt, facts)| HandedOver { attempt, facts }).collect())
}

/// A request of a process that is gone may come after its successor's: it must not take the home
/// back. The row also makes registrations of one home wait for each other.
async fn take_home(cx: &Cx, tx: &Tx, who: &Identity) -> Result<(), EngineError> {
    let (home_id, presented) = (who.home_id.clone(), who.registration);
    // Roles without attempts may share a home.
    if who.kind != JobKind::Worker || presented == 0 {
        return Ok(());
    }
    if !cx.settings.guards.on(Guard::RegisterOrder) {
        return Ok(());
    }
    if home::take(tx, &home_id, presented, who.job_id).await? {
        return Ok(());
    }
    let last = home::registration(tx, &home_id).await?;
    Err(Refusal::StaleHome { home_id, presented, last }.into())
}

/// Ends the predecessors in the same home; those that handed over. One that is lost does not: its
/// attempts are on their way already.
async fn succeed(tx: &Tx, who: &Identity) -> Result<Vec<JobId>, EngineError> {
    if who.kind != JobKind::Worker {
        return Ok(Vec::new());
    }
    let found = job::predecessors(tx, who.kind, &who.home_id, who.job_id).await?;
    let handed = job::succeed(tx, &found, who.job_id).await?;
    Ok(found.into_iter().zip(handed).filter(|(_, handed)| *handed).map(|(job, _)| job).collect())
}

const fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Stopped | JobState::Lost)
}

/// Everything in a job's hands: also what an earlier request of its own was handed, whose answer
/// was lost.
async fn open_tokens(tx: &Tx, job_id: JobId) -> Result<Vec<Token>, EngineError> {
    let mut tokens: Vec<Token> = Vec::new();
    loop {
        let after = tokens.last().map_or(0, |token| token.as_i64());
        let page = attempt::open_of(tx, job_id, after, PAGE).await?;
        tokens.extend(page.iter().map(|open| open.token));
        if page.len() < PAGE as usize {
            return Ok(tokens);
        }
    }
}

fn row(who: &Identity, tx: &Tx, epoch: u32) -> Job {
    Job {
        job_id: who.job_id,
        kind: who.kind,
        state: JobState::Running,
        name: who.name.clone(),
        host: who.host.clone(),
        pid: who.pid,
        pid_start: who.pid_start,
        boot_id: who.boot_id.clone(),
        machine_id: who.machine_id.clone(),
        home_id: who.home_id.clone(),
        version: who.version.clone(),
        queues: who.queues.join(","),
        slots: who.slots,
        lease_ttl: who.lease_ttl,
        renew_seq: 0,
        renewed_at: tx.now(),
        started_at: tx.now(),
        ended_at: None,
        succeeded_by: None,
        detached: false,
        epoch,
        loop_age: Span::ZERO,
    }
}

fn line(who: &Identity, predecessors: &[JobId], claims: usize) -> Event {
    let list: Vec<String> = predecessors.iter().map(ToString::to_string).collect();
    Event {
        kind: "job_registered",
        actor: format!("{}:{}", who.kind, who.name),
        reason: Some(format!("{claims} claims handed over")),
        evidence: Some(serde_json::json!({
            "job": who.job_id.to_string(), "succeeds": list, "boot_id": who.boot_id,
            "host": who.host, "pid": who.pid,
        })),
        ..Event::default()
    }
}

/// A job ends in order; `detached` if it leaves running attempts to their shims and successor.
pub async fn leave(cx: &Cx, job_id: JobId) -> Result<(), EngineError> {
    let tx = cx.store.begin("leave").await?;
    lease::lock(&tx, job_id).await?;
    let open = open_states(&tx, job_id).await?;
    let running = open.iter().any(|state| *state != AttemptState::Claimed);
    job::stop(&tx, job_id, running).await?;
    if !running && !open.is_empty() {
        // Claims that were never started: orphans at once.
        lease::orphan(&tx, job_id).await?;
    }
    let left = Event {
        kind: "job_stopped",
        actor: log::SCHEDULER.into(),
        reason: Some(if running { "detached".into() } else { "idle".into() }),
        evidence: Some(serde_json::json!({ "job": job_id.to_string() })),
        ..Event::default()
    };
    event::append(&tx, vec![left]).await?;
    tx.commit().await?;
    Ok(())
}

async fn open_states(tx: &Tx, job_id: JobId) -> Result<Vec<AttemptState>, EngineError> {
    let (mut states, mut after) = (Vec::new(), 0);
    loop {
        let page = attempt::open_of(tx, job_id, after, PAGE).await?;
        states.extend(page.iter().map(|open| open.state));
        match page.last() {
            Some(last) if page.len() == PAGE as usize => after = last.token.as_i64(),
            Some(_) | None => return Ok(states),
        }
    }
}
