//! What checks and other clients rely on: the fields of the documented forms, by name and type.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod forms;
