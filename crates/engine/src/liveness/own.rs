//! The role's own lease, as its passes and its heart share it.

use crate::Cx;
use crate::error::EngineError;
use crate::operations::register::{self, Identity};
use fencepost_core::id::JobId;
use fencepost_core::lease::Lease;
use fencepost_core::liveness::{Beat, Holder, Phase};
use fencepost_core::time::{BootInstant, Span};
use fencepost_store::query::job;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A role with a lease of its own.
#[derive(Debug)]
pub struct Own {
    pub job_id: JobId,
    /// The epoch in which it registered.
    pub epoch: u32,
    /// `scheduler:NAME`, for the log.
    pub actor: String,
    state: Mutex<State>,
    /// When the main loop turned last; microseconds of boot time.
    turned_at: AtomicI64,
}

#[derive(Debug)]
struct State {
    holder: Holder,
    /// The store said so.
    is_over: bool,
}

/// Registers a role as a job with a lease, and gives the context that acts for it: each of its writing
/// transactions asserts that the job is not over.
pub async fn enroll(cx: &Cx, who: &Identity, lease: Lease) -> Result<Cx, EngineError> {
    let sent = (cx.env.boottime)();
    let who = Identity { lease_ttl: Some(lease.lease_ttl), ..who.clone() };
    register::register(cx, &who).await?;
    let tx = cx.store.read("own_epoch").await?;
    let epoch = job::get(&tx, who.job_id).await?.map_or(1, |job| job.epoch);
    drop(tx);
    let own = Own {
        job_id: who.job_id,
        epoch,
        actor: format!("{}:{}", who.kind, who.name),
        state: Mutex::new(State {
            holder: Holder::new(lease, sent, cx.settings.guards),
            is_over: false,
        }),
        turned_at: AtomicI64::new(sent.as_micros()),
    };
    Ok(cx.clone().owned(Arc::new(own)))
}

impl Own {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next beat.
    pub fn beat(&self, now: BootInstant) -> Beat {
        self.state().holder.beat(now)
    }

    /// A beat renewed the lease.
    pub fn acknowledged(&self, beat: Beat) {
        self.state().holder.acknowledged(beat);
    }

    /// The store says that the job is over.
    pub fn end(&self) {
        self.state().is_over = true;
    }

    /// What the role may do.
    pub fn phase(&self, now: BootInstant) -> Phase {
        let state = self.state();
        if state.is_over { Phase::Over } else { state.holder.phase(now) }
    }

    /// The settings of its lease.
    pub fn lease(&self) -> Lease {
        *self.state().holder.lease()
    }

    /// The main loop has turned.
    pub fn turned(&self, now: BootInstant) {
        self.turned_at.store(now.as_micros(), Ordering::Relaxed);
    }

    /// How long ago that was.
    pub fn loop_age(&self, now: BootInstant) -> Span {
        let turned_at = BootInstant::from_micros(self.turned_at.load(Ordering::Relaxed));
        now.since(turned_at).max(Span::ZERO)
    }
}
