//! The standalone as people run it: real processes, real signals, a real SQLite file.

mod assets;
mod backfill;
mod bad_start;
mod callbacks;
mod containment;
mod contract;
#[cfg(feature = "crash-points")]
mod crash_points;
mod deferral;
mod demos;
mod full_disk;
mod groups;
mod http_tasks;
mod kill9;
mod local_run;
mod long_example;
mod pizza;
mod python;
mod restart;
mod secrets;
mod waits_for_sql;
pub(crate) mod world;
