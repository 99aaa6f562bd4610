//! The binary as a user meets it: real processes against a small server on real sockets that
//! answers with the API's wire types.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod changes;
mod cluster;
mod contexts;
mod credentials;
mod exits;
mod formats;
mod import;
mod installation;
mod logs;
mod offline;
mod process;
mod remote;
mod sample;
mod server;
mod standalone;
mod stores;
mod tables;
mod tidy;
mod waiting;
