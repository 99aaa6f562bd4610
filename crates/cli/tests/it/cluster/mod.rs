//! Many processes on PostgreSQL, as people run them: real processes, real signals, a real server.

mod death;
mod drain;
mod fleet;
mod health;
mod keep;
mod kill9;
mod outage;
mod promotion;
mod refusals;
mod rolling;
mod signals;
mod world;
