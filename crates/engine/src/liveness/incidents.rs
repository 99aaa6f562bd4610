//! Incidents: one death with all that it took, from the first sign until nobody has to think of it.
//!
//! A declaration opens one ([`super::declare`]), and so does evidence that comes by itself: a worker that
//! came back, a new boot. It is closed by whoever sees that nothing of it is open any more, or by a person.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::id::{JobId, Token};
use fencepost_store::Tx;
use fencepost_store::query::attempt::afterwards;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::{incident, job};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Incidents that are closed in one pass.
pub(super) const AT_ONCE: u32 = 50;
/// Where expiry says nothing about the processes: the kernel's deadline ends the tree of `pidns` alone,
/// whatever became of worker and shim.
const EXPIRED: &str = ",cgroup,group,";
/// Where a successor cannot see all of the tree of a dead shim.
const SUCCEEDED: &str = ",group,";

/// How it is named to people.
pub fn name(id: i64) -> String {
    format!("inc-{id}")
}

/// Attempts that expiry took, in the incident of their job.
pub(super) async fn expired(tx: &Tx, job: JobId, tokens: &[Token]) -> Result<(), EngineError> {
    afterwards::link(tx, tokens, job, EXPIRED).await?;
    incident::count(tx, job, tokens.len()).await?;
    Ok(())
}

/// A person said that a job and its processes are gone: its incident, with what was lost by that word.
pub(crate) async fn confirmed(
    tx: &Tx,
    job: JobId,
    (by, word): (&str, &Value),
    tokens: &[Token],
) -> Result<(), EngineError> {
    incident::open(tx, job, "confirmed", by, &word.to_string()).await?;
    afterwards::link(tx, tokens, job, "").await?;
    incident::count(tx, job, tokens.len()).await?;
    incident::settle(tx, job).await?;
    Ok(())
}

/// What reports said about deaths.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    /// Attempts that had ended, of which nothing runs.
    pub(crate) gone: Vec<Token>,
    /// Attempts that were lost, with their owner and the kind of evidence.
    pub(crate) lost: Vec<(Token, Option<JobId>, String)>,
}

impl Deaths {
    /// Writes it down, with the reports of that job.
    pub(crate) async fn write(self, tx: &Tx, reporter: JobId) -> Result<(), EngineError> {
        afterwards::gone(tx, &self.gone).await?;
        let mut dead: BTreeMap<(JobId, String), Vec<Token>> = BTreeMap::new();
        for (token, owner, kind) in self.lost {
            // One attempt whose shim was killed is no death of a worker.
            if !matches!(kind.as_str(), "successor" | "boot_id" | "self_fence") {
                continue;
            }
            let job = match owner.filter(|owner| *owner != reporter) {
                Some(owner) => owner,
                None => job::predecessor(tx, reporter).await?.unwrap_or(reporter),
            };
            dead.entry((job, kind)).or_default().push(token);
        }
        for ((job, kind), tokens) in dead {
            by_evidence(tx, job, &kind, &tokens).await?;
        }
        Ok(())
    }
}

async fn by_evidence(tx: &Tx, job: JobId, kind: &str, tokens: &[Token]) -> Result<(), EngineError> {
    let Some(dead) = job::get(tx, job).await? else { return Ok(()) };
    let by = format!("{}:{}", dead.kind, dead.name);
    let known = json!({
        "kind": kind,
        "at": tx.now().to_string(),
        "job": job.to_string(),
        "job_kind": dead.kind.as_str(),
        "worker": dead.name,
        "host": dead.host,
        "last_heartbeat_at": dead.renewed_at.to_string(),
        "declared_by": by,
    });
    incident::open(tx, job, "evidence", &by, &known.to_string()).await?;
    afterwards::link(tx, tokens, job, if kind == "successor" { SUCCEEDED } else { "" }).await?;
    incident::count(tx, job, tokens.len()).await?;
    incident::settle(tx, job).await?;
    Ok(())
}

/// Closes those of which nothing is open.
pub(super) async fn close(cx: &Cx, ripe: &[(i64, JobId)]) -> Result<(), EngineError> {
    if ripe.is_empty() {
        return Ok(());
    }
    let tx = cx.store.begin("close_incidents").await?;
    let mut lines = Vec::new();
    for (id, job) in ripe {
        if incident::close(&tx, *id, cx.actor(), None).await? {
            lines.push(line(*id, *job, cx.actor(), "nothing of it is open".into()));
        }
    }
    event::append(&tx, lines).await?;
    tx.commit().await?;
    Ok(())
}

/// A person has seen it; `false` if it was closed already.
pub async fn close_by_hand(cx: &Cx, id: i64, by: &str, reason: &str) -> Result<bool, EngineError> {
    let tx = cx.store.begin("close_incident").await?;
    let Some(known) = incident::get(&tx, id).await? else { return Ok(false) };
    let closed = incident::close(&tx, id, by, Some(reason)).await?;
    if closed {
        event::append(&tx, vec![line(id, known.job_id, by, reason.to_owned())]).await?;
        tx.commit().await?;
    }
    Ok(closed)
}

fn line(id: i64, job: JobId, by: &str, why: String) -> Event {
    let about: Value = json!({ "incident": name(id), "job": job.to_string() });
    Event {
        kind: "incident_closed",
        actor: by.into(),
        reason: Some(why),
        evidence: Some(about),
        ..Event::default()
    }
}
