//! Tortures an installation of real processes, and judges what it left.
//!
//! [`installation`] is a PostgreSQL server, schedulers, servers and workers with cables between them;
//! [`person`] keeps runs under way, whose tasks ([`task`]) write down what they do; [`nemesis`] does the
//! faults of a seed's plan. [`check`] reads what was written down and the store's rows, and nothing
//! else: it does not know how the roles were built or started.

pub mod check;
pub mod clock;
pub mod course;
pub mod dags;
pub mod disk;
pub mod dump;
pub mod fault;
pub mod guards;
pub mod installation;
pub mod ledger;
pub mod nemesis;
pub mod person;
pub mod proxy;
pub mod random;
pub mod record;
pub mod roles;
pub mod sink;
pub mod task;

/// Says something to whoever watches.
#[expect(clippy::print_stderr, reason = "a command-line program tells how far it is")]
pub fn say(line: &str) {
    eprintln!("{line}");
}
