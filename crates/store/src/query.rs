//! The statements, by what they are about: each constant beside its function and its decoder.

pub mod attempt;
pub mod audit;
pub mod dag;
pub mod event;
pub mod installation;
pub mod job;
pub mod outbox;
pub mod pool;
pub mod run;
pub mod task_instance;
pub mod xcom;
