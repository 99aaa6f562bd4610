//! What the machine can do without us: the floors that Fencepost's figures are divided by.
//!
//! A floor does the least that any queue on that database must do: take a row so that nobody else
//! has it, and end it once. It keeps no history, no limits, no tokens, no leases.

pub mod postgres;
pub mod spawn;
pub mod sqlite;

/// Rows of the floor's table: (state, queue, priority, attempt, payload).
pub const PAYLOAD: &str = "{\"argv\": [\"true\"], \"env\": {}}";
