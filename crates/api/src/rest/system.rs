//! The installation itself: health, audit, version, effective configuration.

use super::{Time, Word};
use serde::{Deserialize, Serialize};

/// `GET /health/live` and `/health/ready` (503 with the same body when not `ok`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `ok`, `degraded` or `down`.
    pub status: Word,
    pub version: String,
    pub components: Vec<HealthComponent>,
}

/// A role or a resource. Health is progress, not only a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthComponent {
    /// `scheduler`, `dispatcher`, `reaper`, `worker`, `store`, `disk`, ...
    pub role: Word,
    pub name: String,
    /// `ok`, `degraded` or `down`.
    pub status: Word,
    /// When its loop last came round.
    pub last_turn_at: Option<Time>,
    /// The age of that, by the server's clock.
    pub age_ms: Option<u64>,
    pub detail: Option<String>,
}

/// `GET /doctor`: the audit of all invariants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    pub at: Time,
    pub runs_checked: u64,
    pub attempts_checked: u64,
    pub violations: Vec<Violation>,
    /// Not wrong, but worth knowing (re-attach cannot work here because ...).
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// `I24`.
    pub invariant: String,
    pub sentence: String,
    /// What it is about: `sales_daily/manual__…/load`.
    pub subject: String,
    pub detail: String,
}

/// `GET /version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub version: String,
    /// `v1`.
    pub api: String,
    /// `sqlite` or `postgres`.
    pub store: Word,
    /// The schema's version.
    pub schema: u32,
    pub epoch: u32,
    pub installation_id: String,
    pub started_at: Time,
}

/// A row of `GET /config`: the configuration that the server runs with. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    /// `worker.lease_ttl`.
    pub key: String,
    /// Null: not set, and has no default.
    pub value: Option<String>,
    /// `flag`, `environment`, `file` or `default`.
    pub origin: Word,
    /// Which flag, variable, or file and line.
    pub origin_detail: Option<String>,
}
