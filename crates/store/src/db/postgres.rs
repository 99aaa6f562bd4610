//! The PostgreSQL driver: connections of its own, one transaction at a time on each.
//!
//! A session holds its connection until it is committed or rolled back. A connection is used again
//! only after the server has said so; one of which that is not known is closed. Statements are
//! prepared once per connection, and the sets of values of one call are sent without waiting for
//! each other's answers.

mod codec;
mod connect;
mod failure;
mod guard;
mod hints;
mod pool;
mod run;
mod standing;
mod tls;
mod url;

pub use connect::PgOptions;
pub(crate) use connect::{Wire, connect, dial};
pub(crate) use failure::wrong;
pub use hints::Hints;
pub(super) use run::Session;
pub(crate) use url::Target;

use super::StoreClock;
use super::hint::Topic;
use crate::error::StoreError;
use crate::migrate;
use fencepost_core::time::{Span, Timestamp};
use hints::Notifier;
use pool::{Lane, Use};
use std::sync::{Arc, Mutex, PoisonError};

/// An open store of this driver.
#[derive(Debug)]
pub(super) struct Postgres {
    target: Target,
    options: PgOptions,
    writer: Lane,
    reader: Lane,
    notifier: Arc<Notifier>,
    reading: Arc<Mutex<Reading>>,
}

/// The server's time as it was read last, and when that was by a clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    server: Timestamp,
    elapsed: Span,
}

impl Postgres {
    pub(super) async fn open(url: &str, options: PgOptions) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        guard::verify(&target, &options).await?;
        standing::verify(&target, &options).await?;
        migrate::check_open(&target, &options).await?;
        let writer = Lane::new(target.clone(), options.clone(), Use::Write);
        let reader = Lane::new(target.clone(), options.clone(), Use::Read);
        let notifier = Notifier::start(target.clone(), options.clone());
        let it = Self { target, options, writer, reader, notifier, reading: Arc::default() };
        // Its clock is read before anybody asks for it.
        it.session("open", false).await?;
        Ok(it)
    }

    pub(super) async fn session(
        &self,
        op: &'static str,
        writes: bool,
    ) -> Result<(Session, Timestamp), StoreError> {
        let before = (self.options.elapsed)();
        let lane = if writes { &self.writer } else { &self.reader };
        let (session, server) = lane.session(op).await?;
        if let Some(clock) = &self.options.clock {
            return Ok((session, clock.now()));
        }
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.elapsed <= before {
            *reading = Reading { server, elapsed: (self.options.elapsed)() };
        }
        drop(reading);
        Ok((session, server))
    }

    /// The last reading and what has passed since.
    pub(super) fn clock(&self) -> StoreClock {
        if let Some(clock) = &self.options.clock {
            return clock.clone();
        }
        let (reading, elapsed) = (Arc::clone(&self.reading), Arc::clone(&self.options.elapsed));
        StoreClock::new(move || {
            let last = *reading.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = elapsed().as_micros() - last.elapsed.as_micros();
            last.server.plus(Span::from_micros(passed.max(0)))
        })
    }

    pub(super) fn hint(&self, topic: Topic) {
        self.notifier.hint(topic);
    }

    pub(super) fn hints(&self) -> Hints {
        self.notifier.listener(self.target.clone(), self.options.clone())
    }
}
