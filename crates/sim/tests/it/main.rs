//! The simulator's own tests, and the short form of what it proves.
//!
//! The long form is the binary: `cargo run --release -p fencepost-sim`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod books;
mod crash_points;
mod guards;
mod worlds;
