//! The worker's own lease: what it may still do, and until when the page of an attempt says so.
//!
//! The deadline of every page follows from T0, the instant before the last *acknowledged* beat was
//! sent, never from the time of a push: a worker that is stopped, cut off or dead leaves each of its
//! shims a deadline that lies before the end of its lease. Between `self_fence` and the end, in order:
//! SIGTERM, `kill_grace`, SIGKILL by the shim, and half a margin later the kernel's timer, which needs
//! nobody.

use super::{Active, Settings, Shared};
use crate::outcome::Reason;
use crate::page::Lease as PageLease;
use fencepost_core::lease::Lease;
use fencepost_core::liveness::{Beat, Holder, Phase};
use fencepost_core::time::{BootInstant, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What a worker keeps of its lease.
pub(super) struct Keeper {
    /// `None` in standalone mode.
    holder: Option<Mutex<Holder>>,
    is_over: AtomicBool,
    is_done: AtomicBool,
    told: Notify,
    /// When the main loop turned last, in nanoseconds of the page's clock.
    turned_at: AtomicU64,
}

/// Ends what beats elsewhere once the worker's future is gone.
pub(super) struct Done(pub(super) Arc<Shared>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.lease.is_done.store(true, Ordering::SeqCst);
    }
}

/// An instant of the page's clock.
pub(super) fn instant(now_ns: u64) -> BootInstant {
    BootInstant::from_micros(i64::try_from(now_ns / 1_000).unwrap_or(i64::MAX))
}

/// What the shim leaves between its SIGKILL and the deadline of the page.
pub(super) fn shim_margin(lease: &Lease) -> Span {
    lease.margin.over(2)
}

impl Keeper {
    pub(super) fn new(settings: &Settings) -> Self {
        let now = instant((settings.now_ns)());
        let holder = |lease: Lease| Mutex::new(Holder::new(lease, now, settings.guards));
        Self {
            holder: settings.lease.map(holder),
            is_over: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
            told: Notify::new(),
            turned_at: AtomicU64::new((settings.now_ns)()),
        }
    }

    fn holder(&self) -> Option<MutexGuard<'_, Holder>> {
        Some(self.holder.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next beat of a worker with a lease.
    pub(super) fn beat(&self, now: BootInstant) -> Option<Beat> {
        Some(self.holder()?.beat(now))
    }

    pub(super) fn acknowledged(&self, beat: Beat) {
        if let Some(mut holder) = self.holder() {
            holder.acknowledged(beat);
        }
    }

    /// The store says that the job is over.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// Ready once the job is over.
    pub(super) async fn over(&self) {
        let told = self.told.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        if !self.is_over() {
            told.await;
        }
    }

    pub(super) fn turned(&self, now_ns: u64) {
        self.turned_at.store(now_ns, Ordering::Relaxed);
    }

    pub(super) fn loop_age_ms(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.turned_at.load(Ordering::Relaxed)) / 1_000_000
    }

    fn phase(&self, now: BootInstant) -> Phase {
        if self.is_over() {
            return Phase::Over;
        }
        self.holder().map_or(Phase::Acting, |holder| holder.phase(now))
    }

    /// The deadline that pages get, in nanoseconds; `None` without a lease.
    fn deadline_ns(&self) -> Option<u64> {
        let holder = self.holder().filter(|holder| holder.has_deadline())?;
        let lease = holder.lease();
        let length = lease.self_fence.plus(lease.kill_grace).plus(shim_margin(lease));
        let micros = holder.t0().plus(length).as_micros();
        Some(u64::try_from(micros).unwrap_or(0).saturating_mul(1_000))
    }
}

impl Shared {
    /// Whether its lease lets it claim and start.
    pub(super) fn acts(&self) -> bool {
        self.lease.phase(instant((self.settings.now_ns)())) == Phase::Acting
    }

    /// The lease that attempts of ours get now.
    pub(super) fn lease(&self) -> PageLease {
        let deadline_ns = self.lease.deadline_ns().unwrap_or_else(|| {
            let ttl = u64::try_from(self.settings.orphan_ttl.as_nanos()).unwrap_or(u64::MAX);
            (self.settings.now_ns)().saturating_add(ttl)
        });
        PageLease::of(self.owner(), deadline_ns)
    }

    /// The lease of an attempt: that of its worker, or none with `on_disconnect: keep`.
    pub(super) fn lease_of(&self, keeps: bool) -> PageLease {
        if keeps { PageLease::of(self.owner(), u64::MAX) } else { self.lease() }
    }

    /// What an attempt gets that is not ours: time to end, and no more.
    pub(super) fn spent_lease(&self) -> PageLease {
        let length = self.settings.kill_grace.saturating_add(self.settings.margin);
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let spent = (self.settings.now_ns)().saturating_add(length);
        let own = self.lease();
        PageLease { deadline_ns: spent.min(own.deadline_ns), is_spent: true, ..own }
    }

    /// Ends everything that runs: the lease does not let it go on.
    pub(super) fn fence(&self) {
        self.end_all_for(Reason::SelfFence, false);
    }

    /// Ends everything that runs and is not being ended, or with `kill_now` what does not follow.
    pub(super) fn end_all_for(&self, reason: Reason, kill_now: bool) {
        let spares = |active: &Active| reason == Reason::SelfFence && active.keeps;
        for active in self.active().values_mut().filter(|active| !spares(active)) {
            let is_new = active.stop.is_none() || kill_now;
            if let Some(running) = active.running.as_ref().filter(|_| is_new) {
                running.request_stop(reason, kill_now);
            }
            active.stop.get_or_insert((reason, kill_now));
        }
    }
}

/// Its job is lost: what still runs is ended, and how each ended is reported. (Too late to count for
/// most: the answers say so.) What runs without a lease is left to the next job of this process.
pub(super) async fn end_all(shared: &Arc<Shared>) {
    let is_left = |active: &Active| active.keeps && active.running.is_some();
    loop {
        shared.fence();
        if shared.active().values().all(is_left) {
            return;
        }
        tokio::select! {
            () = shared.changed.notified() => {}
            () = super::pause(super::AFTER_TROUBLE) => {}
        }
    }
}
