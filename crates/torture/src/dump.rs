//! What the store says in the end, as JSON lines in the folder: the checker reads these and no database.

use crate::installation::{DATABASE, Installation};
use crate::ledger::TiKey;
use serde::Deserialize;

/// Files and the statements that they are answers to.
const PARTS: [(&str, &str); 5] = [
    (
        "runs",
        "SELECT run_pk, dag_id, run_id, run_type, state, logical_date, created_at, ended_at FROM run",
    ),
    (
        "instances",
        "SELECT t.run_pk, t.dag_id, r.run_id, t.task_id, t.state, t.token, t.try_number, \
         t.infra_losses, t.clears, coalesce(t.reason, '') AS reason \
         FROM task_instance t JOIN run r USING (run_pk)",
    ),
    (
        "attempts",
        "SELECT a.token, a.dag_id, r.run_id, t.task_id, a.try_number, a.state, a.outcome, a.replaces, \
         a.job_id, a.containment, a.started_at, a.ended_at, a.reason, a.evidence::json ->> 'kind' AS evidence \
         FROM attempt a JOIN run r USING (run_pk) \
         JOIN task_instance t USING (run_pk, task_index, map_index)",
    ),
    (
        "jobs",
        "SELECT job_id, kind, name, state, lease_ttl, renewed_at, started_at, ended_at, succeeded_by, \
         death, evidence::json ->> 'observed_for' AS observed_for FROM job",
    ),
    (
        "events",
        "SELECT seq, at, kind, dag_id, run_pk, task_id, token, actor, from_state, to_state, reason, \
         evidence::json AS evidence FROM event ORDER BY seq",
    ),
];

/// Writes all of it.
pub fn write(it: &Installation) -> anyhow::Result<()> {
    for (name, query) in PARTS {
        let rows = format!("SELECT row_to_json(one) FROM ({query}) one");
        std::fs::write(it.path(name), it.cluster().sql(DATABASE, &rows)?)?;
    }
    Ok(())
}

/// A run.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Run {
    pub dag_id: String,
    pub run_id: String,
    pub run_type: String,
    pub state: String,
    pub logical_date: Option<i64>,
}

/// A task instance.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Instance {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub state: String,
    pub token: i64,
    pub try_number: u32,
    pub infra_losses: u32,
    pub clears: u32,
    pub reason: String,
}

impl Instance {
    /// Whose it is.
    pub fn ti(&self) -> TiKey {
        let (dag, run) = (self.dag_id.clone(), self.run_id.clone());
        TiKey { dag, run, task: self.task_id.clone() }
    }
}

/// An attempt.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Attempt {
    pub token: i64,
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub state: String,
    pub outcome: Option<String>,
    pub replaces: i64,
    /// Who had it last.
    pub job_id: Option<String>,
    /// Microseconds since 1970, by the store's clock.
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub evidence: Option<String>,
    pub containment: Option<String>,
}

impl Attempt {
    /// Whose it is.
    pub fn ti(&self) -> TiKey {
        let (dag, run) = (self.dag_id.clone(), self.run_id.clone());
        TiKey { dag, run, task: self.task_id.clone() }
    }
}

/// A job.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Job {
    pub job_id: String,
    pub kind: String,
    pub name: String,
    pub state: String,
    pub lease_ttl: Option<i64>,
    pub renewed_at: i64,
    pub ended_at: Option<i64>,
}

/// A line of the transition log.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Event {
    pub at: i64,
    pub kind: String,
    pub token: i64,
    pub reason: Option<String>,
    pub evidence: Option<serde_json::Value>,
}
