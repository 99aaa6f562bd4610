//! Many processes on PostgreSQL, as people run them: real processes, real signals, a real server.

mod crowd;
mod damaged;
mod death;
mod drain;
mod estate;
mod fleet;
mod frozen;
mod health;
mod keep;
mod kill9;
mod outage;
mod promotion;
mod refusals;
mod rolling;
mod session;
mod shares;
mod shims;
mod signals;
mod triggerers;
mod world;
