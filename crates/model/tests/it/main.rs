//! The short form of the model: its worlds with all guards on, and without each of them.
//!
//! The long form adds the larger worlds (`--run-ignored all`, as `./test --long` does).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a trace is there to be read")]

mod guards;
mod worlds;
