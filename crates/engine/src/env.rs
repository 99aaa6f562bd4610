//! What enters the engine from outside: time, randomness, and the reading of DAG versions.
//!
//! Nothing else in the engine reads a clock or draws a number, so the simulator can give it its
//! own. The parser and the template engine stay outside too: they come in as functions.

use crate::facts::Facts;
use fencepost_core::dag::Dag;
use fencepost_core::id::{AttemptId, JobId, uuid_v7};
use fencepost_core::time::{BootInstant, Timestamp};
use std::sync::Arc;

type Decode = dyn Fn(&serde_json::Value) -> Result<Dag, String> + Send + Sync;
type ValueOf = dyn Fn(&str, &str, &Facts) -> Result<serde_json::Value, String> + Send + Sync;
type Render = dyn Fn(&str, &Facts) -> Result<String, String> + Send + Sync;
type Evaluate = dyn Fn(&str, &Facts) -> Result<bool, String> + Send + Sync;

/// The surroundings of an engine. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// The wall clock of this host: ids and log lines only. Stored times are the store's.
    pub wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// CLOCK_BOOTTIME of this host: what leases are counted on.
    pub boottime: Arc<dyn Fn() -> BootInstant + Send + Sync>,
    /// 64 random bits.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Reads a version's contents as the DAG file's crate wrote them.
    pub decode: Arc<Decode>,
    /// Evaluates a `when`.
    pub evaluate: Arc<Evaluate>,
    /// What the template of a field (the first argument) gives: a value, or text.
    pub value: Arc<ValueOf>,
    /// Renders one template of a task.
    pub render: Arc<Render>,
}

impl Env {
    fn uuid(&self) -> u128 {
        let millis = u64::try_from((self.wall)().as_micros() / 1_000).unwrap_or(0);
        let random = (u128::from((self.random)()) << 64) | u128::from((self.random)());
        uuid_v7(millis, random)
    }
    /// A fresh attempt id.
    pub fn attempt_id(&self) -> AttemptId {
        AttemptId::from_u128(self.uuid())
    }
    /// A fresh id of a callback.
    pub fn callback_id(&self) -> String {
        AttemptId::from_u128(self.uuid()).to_string()
    }
    /// A fresh job id.
    pub fn job_id(&self) -> JobId {
        JobId::from_u128(self.uuid())
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}
