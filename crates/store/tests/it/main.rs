//! The conformance suite of the store: `conformance` runs on every driver, `sqlite` is about that
//! driver alone, `statements` reads the sources.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod differential;
mod place;
mod postgres;
mod rows;
mod sqlite;
mod statements;
