//! Attempts: every dispatch ever made, with who ended it and on which evidence.

use super::{Time, TokenText, Word};
use serde::{Deserialize, Serialize};

/// One attempt. In a path it is its id, its decimal token or `EPOCH-COUNTER`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub attempt_id: String,
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: i32,
    pub try_number: u32,
    /// From 1 within its task instance.
    pub attempt_number: u32,
    pub token: TokenText,
    /// `first`, `retry`, `replaces`, `cleared`, `resumed`.
    pub why: Word,
    /// The number of the attempt that it replaces.
    pub replaces: Option<u32>,
    pub state: Word,
    pub worker: Option<String>,
    pub host: Option<String>,
    /// `pidns`, `cgroup`, `group`; null before the start.
    pub containment: Option<Word>,
    pub queued_at: Time,
    pub claimed_at: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub outcome: Option<Word>,
    pub reason: Option<String>,
    /// A sentence for people: the missing file, a template's mistake.
    #[serde(default)]
    pub message: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// `none`, `user`, `infra`; null while it has not ended.
    pub counted_as: Option<Word>,
    pub evidence: Option<Evidence>,
    /// Late writes of it that were refused.
    pub refused_writes: u32,
    /// It ended without proof that its processes are gone.
    pub may_still_run: bool,
    /// The time that its lease is good for; null: no lease, or none with an end (standalone).
    pub lease_expires_at: Option<Time>,
}

/// Why somebody concluded that an attempt is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// `expiry`, `successor`, `boot_id`, `exit_status`, `executor`, `self_fence`, `person`.
    pub kind: Word,
    pub at: Time,
    pub job: Option<String>,
    pub last_heartbeat_at: Option<Time>,
    pub lease_expires_at: Option<Time>,
    pub declared_by: Option<String>,
    pub term: Option<i64>,
    /// More, for people.
    pub detail: Option<String>,
}

/// Filters of `GET /attempts`. By token; `…/tasks/{task_id}/attempts` takes limit and cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// States, separated by commas; default: all that have not ended.
    pub state: Option<String>,
    pub dag_id: Option<String>,
    /// A worker's name.
    pub worker: Option<String>,
}
