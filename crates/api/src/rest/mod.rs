//! The REST API's resources as they stand on the wire, under `/api/v1`.
//!
//! Conventions, the same everywhere:
//! - instants are RFC 3339 in UTC with milliseconds, as text; tokens are decimal text;
//! - states, outcomes and reasons are the words of the vocabulary, as text: a client shows a word
//!   that it does not know as it is, so a newer server does not break an older client;
//! - a field that does not apply is null and is always there; unknown fields are ignored;
//! - lists are [`Page`]s; errors are [`crate::problem::Problem`]s; routes are in [`routes`].
//!
//! Absent on purpose: conversions from domain types (the server's) and how things look (the
//! client's).

mod asset;
mod attempt;
mod backfill;
mod callback;
mod change;
mod dag;
mod event;
mod explain;
mod incident;
mod log;
mod page;
mod pool;
pub mod routes;
mod run;
mod system;
mod task;
mod token;
mod vault;
mod worker;

pub use asset::{
    Asset, AssetConsumer, AssetDetail, AssetEmit, AssetEvent, AssetEventsQuery, AssetSource,
    AssetTaker, AssetTask,
};
pub use attempt::{Attempt, AttemptQuery, Evidence};
pub use backfill::{
    Backfill, BackfillCreate, BackfillExisting, BackfillPreview, BackfillProgress, BackfillQuery,
};
pub use callback::{Callback, CallbackQuery};
pub use change::{Action, Change, ChangePlan, Clear, Mark, Resolve};
pub use dag::{
    Dag, DagDetail, DagPatch, DagQuery, DagTask, DagTaskGroup, DagVersion, DagVersionDetail,
    Diagnostic, ImportError, NextRun, Param, PauseEffect, RunDot, Slot, SlotQuery,
};
pub use event::{Event, EventQuery};
pub use explain::{Explain, Gate, GateStatus};
pub use incident::{Incident, IncidentDetail, IncidentQuery, LostAttempt, Ramp};
pub use log::{LogLine, LogPage, LogQuery};
pub use page::{DryRun, ListQuery, Page};
pub use pool::{Pool, PoolPut};
pub use run::{Run, RunPatch, RunQuery, TriggerRun};
pub use system::{ConfigValue, Doctor, Health, HealthComponent, Version, Violation};
pub use task::{HeldTask, Output, Outputs, Rendered, RenderedField, TaskInstance, TaskQuery};
pub use token::{Token, TokenCreate, TokenCreated};
pub use vault::{ConnectionTest, Kept, KeptPut, KeptQuery, Rotated};
pub use worker::{ConfirmDead, Finding, Worker, WorkerQuery};

/// An instant: RFC 3339, UTC, milliseconds (`2026-11-30T07:52:31.123Z`).
pub type Time = String;
/// A fencing token as the decimal text of its 63 bits.
pub type TokenText = String;
/// A word of the vocabulary.
pub type Word = String;
