//! Liveness: who may be believed alive, by leases at the level of processes (1-semantics section 2).
//!
//! A [`Holder`] is the side that renews: it knows when it must stop. An [`Observer`] is the side that
//! watches others: it knows when their time is over. Neither ever compares two hosts' clocks: the
//! holder counts from before its beat was sent, the observer from after it saw the beat's effect, so
//! that every observer's whole TTL lies after the holder's own.
//!
//! Deliberately absent: evidence of a death (it needs no lease), and the declaration itself, which the
//! store decides by compare-and-set.

mod brake;
mod fitness;
mod holder;
pub mod inventory;
mod observer;
pub mod reconcile;

pub use fitness::Unfit;
pub use holder::{Beat, Holder, Phase};
pub use observer::{Expired, Observer, ObserverSettings, Reading, Scan, Sight};
