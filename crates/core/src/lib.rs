//! The pure core of Fencepost: what is legal, what is due, what must happen next.
//!
//! Nothing here does IO, reads a clock, draws a random number or generates an id; time and
//! randomness are arguments. Domain types carry no serde; `serde_json::Value` appears only as the
//! JSON value of a user (params, `expand` elements, outputs).

pub mod asset;
pub mod audit;
pub mod callback;
pub mod connection;
pub mod dag;
pub mod guard;
pub mod hook;
pub mod http_task;
pub mod id;
pub mod kept;
pub mod lease;
pub mod lifecycle;
pub mod liveness;
pub mod outputs;
pub mod params;
pub mod plan;
pub mod ramp;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod state;
pub mod time;
pub mod trigger_rule;
pub mod verdict;
pub mod wait;
