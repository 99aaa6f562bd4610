//! Assets and their events.

use super::{Time, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An asset that some DAG names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    pub name: String,
    /// Tasks that write it.
    pub producers: u32,
    /// DAGs that run by it.
    pub consumers: u32,
    pub last_event_at: Option<Time>,
}

/// An asset with who names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetDetail {
    pub name: String,
    pub producers: Vec<AssetTask>,
    pub consumers: Vec<AssetConsumer>,
    /// Tasks that say that they read it.
    pub inlets: Vec<AssetTask>,
    pub last_event_at: Option<Time>,
}

/// A task that names an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetTask {
    pub dag_id: String,
    pub task_id: String,
}

/// A DAG that runs by an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetConsumer {
    pub dag_id: String,
    /// Events of this asset that wait for its next run.
    pub queued: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssetEvent {
    pub id: u64,
    pub asset: String,
    pub at: Time,
    /// The task that succeeded; null if somebody outside emitted it.
    pub source: Option<AssetSource>,
    pub emitted_by: String,
    pub extra: Value,
    /// For whom it was queued.
    pub queued_for: Vec<AssetTaker>,
}

/// The task instance that emitted an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetSource {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: i32,
}

/// A DAG that waited for the asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetTaker {
    pub dag_id: String,
    /// The run that took the event; null while it is queued.
    pub run_id: Option<Word>,
}

/// `GET /assets/events`, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssetEventsQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// Only those of this asset.
    pub asset: Option<String>,
}

/// `POST /assets/{name}/events`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssetEmit {
    /// An object that the runs are told.
    pub extra: Value,
}
