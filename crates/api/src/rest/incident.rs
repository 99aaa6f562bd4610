//! Incidents: one death with everything that it took.

use super::{Attempt, Time, TokenText, Word};
use serde::{Deserialize, Serialize};

/// One incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// `inc-204`.
    pub id: String,
    /// `open` or `closed`.
    pub state: Word,
    /// How it died: `alone`, `many` (with others at once), `detached` (it had stopped), `confirmed` (a
    /// person's word), `evidence` (it came back, or its host booted anew).
    pub kind: Word,
    /// Of the one that died.
    pub job: String,
    pub job_kind: Option<Word>,
    pub worker: Option<String>,
    pub host: Option<String>,
    pub at: Time,
    pub declared_by: String,
    /// For how long its silence was observed before it was declared.
    pub observed_for: Option<String>,
    pub evidence: serde_json::Value,
    /// Attempts of it that have been worked off.
    pub attempt_count: u64,
    /// Of them those whose processes nobody knows to be gone.
    pub may_still_run: u64,
    /// When the last of them was worked off.
    pub settled_at: Option<Time>,
    pub closed_at: Option<Time>,
    pub closed_by: Option<String>,
    pub close_reason: Option<String>,
}

/// An incident with what was lost in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentDetail {
    #[serde(flatten)]
    pub incident: Incident,
    /// In order of tokens, at most 1,000; `attempt_count` says how many there are.
    pub attempts: Vec<LostAttempt>,
    /// How fast recovered work comes back now, of whichever incident it is.
    pub ramps: Vec<Ramp>,
}

/// An attempt of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAttempt {
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The attempt that took its place; null: none so far.
    pub replaced_by: Option<TokenText>,
}

/// A pool to which recovered work comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ramp {
    pub pool: String,
    /// Thousandths of a start a second.
    pub rate_milli: u32,
    /// Attempts that wait for it.
    pub waiting: u64,
}

/// `GET /incidents`, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IncidentQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// Those that are not closed.
    pub open: bool,
}
