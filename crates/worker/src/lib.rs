//! The worker's side of an attempt: the shim that owns a task's process tree, and the handle by
//! which a worker starts, watches, stops and re-attaches to shims through files on disk.
//!
//! Invariants: a lock that is free means that no shim lives; an outcome is written once, under the
//! lock, after the tree was seen empty; no signal reaches a process that is not the attempt's.
//! The shim is a plain synchronous single-threaded program, and the handle blocks only where it says
//! so; the supervisor above them is the one part with an async runtime, which a handle needs only
//! to wait for an end.
//! Absent on purpose: anything about the store or HTTP.

pub mod attempt;
mod cgroup;
pub mod clock;
mod command;
pub mod dir;
pub mod home;
pub mod http;
mod limits;
pub mod log;
mod mask;
pub mod outcome;
pub mod page;
mod private;
pub mod process;
mod reserved;
pub mod shim;
pub mod spec;
pub mod supervisor;
mod sys;
