//! Deferred instances: how they are put to sleep, and how what they wait for wakes them.
//!
//! ```text
//!  dispatcher (a `wait:` task) ─┐                       ┌─ Timers: due instants and deadlines, in pages
//!  report (exit 100)           ─┴─► trigger row (token) ┼─ Watcher: owned rows, looked at again and again
//!                                                       └─ a person: approve, reject
//!                                            └────────► settle: one compare-and-set, once
//! ```
//!
//! A trigger is in the store from the commit that defers its instance to the one that wakes it, with its
//! definition and what its looks remember; a triggerer keeps nothing that it could lose. Every end of a
//! wait goes through [`settle`]: under the instance's lock the trigger must still be there and the
//! instance still `deferred` under its token, so of two triggerers, a person and a cancel exactly one
//! wins (I16), and whatever takes the instance out of `deferred` takes the trigger away (I13).
//!
//! [`Timers`] needs no owner and is run by schedulers too: no timer and no `timeout` waits for a
//! triggerer. [`Watcher`] takes rows by lease, and takes over those of triggerers whose job is over.

mod sleep;
mod timers;
mod wake;
mod watch;

pub use timers::Timers;
pub use watch::{Looker, Watcher};

pub(crate) use sleep::{Asleep, begins, of_task, trigger};
pub(crate) use wake::{Waking, settle};

/// Who wakes an instance, in the log.
pub(crate) const TRIGGERER: &str = "triggerer";
