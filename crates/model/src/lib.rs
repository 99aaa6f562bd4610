//! An exhaustive model: every order in which a small installation can go wrong, within stated bounds.
//!
//! A [`world::World`] is a handful of schedulers, workers and task instances with a budget of faults.
//! [`search::search`] visits every state that they can reach, the nearest first, and stops at the first
//! one that breaks a promise, with the shortest way to it. What is decided is decided by the core
//! (transitions, verdicts, holders, observers, inventories, admission): the model has of its own the
//! rows of the store, the machines, the messages and the time.
//!
//! Deliberately absent: SQL, processes, clocks (a tick is a second of everybody's), and liveness: a
//! bounded search sees what must never be, not what must come at last.

mod books;
mod check;
pub mod fault;
mod host;
pub mod mark;
mod net;
mod scheduler;
pub mod search;
pub mod state;
pub mod step;
mod store;
mod tick;
mod worker;
pub mod world;
