//! The pure core of Fencepost: what is legal, what is due, what must happen next.
//!
//! Nothing here does IO, reads a clock, draws a random number or generates an id; time and
//! randomness are arguments. Domain types carry no serde; `serde_json::Value` appears only as the
//! JSON value of a user (params, `expand` elements, outputs).

pub mod id;
pub mod time;
