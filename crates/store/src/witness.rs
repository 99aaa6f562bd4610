//! What becomes of this process's transactions, for whoever counts it and says it.
//!
//! A line of the log is witnessed once its commit is acknowledged, by the process that wrote it. One
//! whose reply was lost may be in the store and is witnessed by nobody: counters of a process are for
//! watching, the log is for proving.

use crate::StoreError;
use crate::query::event::Event;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that is witnessed.
#[derive(Debug, Clone, Copy)]
pub enum Sign<'a> {
    /// The store has answered.
    Answered,
    /// These lines are committed. Of changes of task instances only the states are given.
    Committed(&'a [Event]),
    Failed(&'a StoreError),
}

type Told = dyn Fn(Sign<'_>) + Send + Sync;

/// Whoever is told, in the thread that it happened in: it must not wait for anything.
#[derive(Clone, Default)]
pub struct Witness(Option<Arc<Told>>);

impl Witness {
    /// Tells `told`.
    pub fn new(told: impl Fn(Sign<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(crate) fn tell(&self, sign: Sign<'_>) {
        if let Some(told) = &self.0 {
            told(sign);
        }
    }

    /// Tells how something went, and hands it on.
    pub(crate) fn judged<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &done {
            self.tell(Sign::Failed(error));
        }
        done
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Witness(on)" } else { "Witness(off)" })
    }
}

/// Lines of a transaction that has not committed yet.
#[derive(Debug, Default)]
pub(crate) struct Noted(Mutex<Vec<Event>>);

impl Noted {
    pub(crate) fn add(&self, witness: &Witness, events: &[Event]) {
        if witness.0.is_some() {
            let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            own.extend(events.iter().map(noted));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<Event> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Task instances change by the thousand: their texts are not copied.
fn noted(event: &Event) -> Event {
    match event.kind {
        "ti_state" if event.to != Some("held") => {
            Event { kind: event.kind, from: event.from, to: event.to, ..Event::default() }
        }
        _ => event.clone(),
    }
}
