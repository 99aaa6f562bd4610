//! Real shims and real task processes. Every wait is for a condition, with a generous limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod contain;
mod doubts;
mod ends;
mod environment;
mod guards;
mod homes;
mod lease;
mod limits;
mod logs;
mod questions;
mod recover;
