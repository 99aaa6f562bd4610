//! The REST API over a real store, with the engine's passes run by hand and a worker played
//! through the execution API.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod access;
mod assets;
mod attempts;
mod backfills;
mod callbacks;
mod dags;
mod fixture;
mod idempotency;
mod incidents;
mod lifecycle;
mod logs;
mod metrics;
mod neighbours;
mod paging;
mod polling;
mod requests;
mod system;
mod tokens;
mod vault;
