//! The REST API: every route of `fencepost_api::rest::routes` over the engine and the store.
//!
//! One entry takes every request below `/api/v1` and goes by the route table: route, token,
//! permission, body, handler. So a route without a handler or a handler without a permission
//! cannot exist, and nothing is allowed by default. Handlers are thin: read a query or a body, call
//! an operation or read rows, convert. A mutation runs to its end even if its caller hangs up.
//!
//! Deliberately absent: SQL, decisions about states, processes, the execution API.

mod answer;
mod answers;
mod assets;
mod attempt_view;
mod attempts;
mod backfills;
mod call;
mod callbacks;
mod connections;
mod cursor;
mod dag_view;
mod dags;
mod dispatch;
mod entry;
mod events;
mod failure;
mod health;
mod held;
mod idempotency;
mod incidents;
mod logs;
mod marks;
mod openapi;
mod pools;
mod rendered;
mod run_view;
mod runs;
mod schedule;
mod system;
mod target;
mod task_view;
mod tasks;
mod timings;
mod tokens;
mod vault;
mod workers;

pub(crate) use answer::{Answer, Done, response};
pub(crate) use failure::Failure;
pub use logs::{LogFrame, LogPage, LogQueryArgs, LogSource};

pub use system::doctor_report;
pub use tokens::create_token;
pub use workers::inspection;

use crate::vault::Keyring;
use axum::Router;
use axum::routing::any;
use fencepost_api::rest::ConfigValue;
use fencepost_api::rest::routes::PREFIX;
use fencepost_core::time::Timestamp;
use fencepost_engine::Cx;
use fencepost_engine::drive::SharedHealth;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What the REST API works with.
#[derive(Clone)]
pub struct RestState {
    pub cx: Cx,
    pub logs: Arc<dyn LogSource>,
    /// Of the loop that runs the passes.
    pub health: SharedHealth,
    /// The effective configuration; secrets are masked by the caller.
    pub config: Arc<Vec<ConfigValue>>,
    /// Of the program.
    pub version: String,
    pub started_at: Timestamp,
    /// What keeps this process's worker from working, if anything does.
    pub worker_trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// What opens variables, connections and secrets.
    pub keyring: Arc<Keyring>,
    /// Becomes true when the process is to end: long polls are answered at once.
    pub stop: watch::Receiver<bool>,
}

/// The state with what the API remembers: nothing that an answer about runs depends on.
struct Server {
    state: RestState,
    timings: timings::Timings,
    /// When each token was last used, since the start of this process.
    used: Mutex<BTreeMap<String, Timestamp>>,
    /// Idempotency keys of requests that are being carried out here.
    busy: Mutex<BTreeSet<String>>,
}

/// The router, for the whole address space of a server: what is not below `/api/v1` is a problem
/// `no-such-route`.
pub fn router(state: RestState) -> Router {
    let server = Server {
        state,
        timings: timings::Timings::default(),
        used: Mutex::default(),
        busy: Mutex::default(),
    };
    Router::new()
        .route(&format!("{PREFIX}/{{*rest}}"), any(entry::serve))
        .fallback(entry::serve)
        .with_state(Arc::new(server))
}
