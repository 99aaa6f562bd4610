//! Workers, and what `inspect` finds.

use super::{Time, Word};
use serde::{Deserialize, Serialize};

/// One incarnation of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its job's id.
    pub id: String,
    pub name: String,
    pub host: String,
    pub queues: Vec<String>,
    pub slots: u32,
    /// Attempts in its hands.
    pub leases: u32,
    /// `live`, `silent` (beats are missing: a suspicion), `stalled` (its loop stands still),
    /// `draining`, `detached` (it ended and left running tasks to its successor), `lost`, `stopped`.
    pub liveness: Word,
    pub last_beat_at: Time,
    /// Null: nothing but a successor in its home, a new boot or a person ends it.
    pub lease_expires_at: Option<Time>,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub version: String,
    pub boot_id: String,
    pub pid: u32,
    /// Of a lost one: when, by whom, and how that is known.
    pub evidence: Option<serde_json::Value>,
    /// A sentence for people.
    pub note: Option<String>,
}

/// `GET /workers`: without `all` those that matter now: not ended, or ended with work left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    pub all: bool,
    /// Of that name, or on that host.
    pub name: Option<String>,
}

/// `POST /workers:confirm-dead`: a person's word that the processes of a worker, or of every worker
/// of a host, are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmDead {
    /// A worker's name or id, or a host.
    pub name: String,
    #[serde(default)]
    pub reason: Option<String>,
}

/// Something that one of the questions of `GET /inspect/{question}` finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about: a job, or `dag/run/task`.
    pub subject: String,
    pub state: Word,
    pub since: Option<Time>,
    pub owner: Option<String>,
    /// A sentence: what is the matter, and what happens next by itself.
    pub detail: String,
}
