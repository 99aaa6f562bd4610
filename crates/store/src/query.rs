//! The statements, by what they are about: each constant beside its function and its decoder.

pub mod api_token;
pub mod attempt;
pub mod audit;
pub mod dag;
pub mod event;
pub mod idempotency;
pub mod installation;
pub mod job;
pub mod listing;
pub mod outbox;
pub mod pool;
pub mod run;
pub mod task_instance;
pub mod xcom;
