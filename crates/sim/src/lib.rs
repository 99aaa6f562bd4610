//! A deterministic simulator: the shipped passes, servers and supervisors over the real store, on a
//! virtual clock, network and operating system, from one seed.
//!
//! What is driven is what is shipped; what is simulated is what lies outside of it: time, randomness,
//! messages, processes, machines. A world is one thread; equal seeds give equal events, which a
//! digest proves. Deliberately absent: real processes, disks and sockets, which the tests of their
//! own crates and the end-to-end tests cover.

pub mod chaos;
pub mod check;
pub mod exhaustive;
pub mod fault;
pub mod ledger;
pub mod net;
pub mod os;
pub mod process;
pub mod races;
pub mod random;
pub mod report;
mod roles;
pub mod scenario;
pub mod sim;
pub mod task;
pub mod time;
pub mod trace;
pub mod trap;
pub mod witness;
pub mod world;
