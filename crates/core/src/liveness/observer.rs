//! The observer's arithmetic: a lease is over once a whole TTL of *observed* silence has passed on the
//! observer's own clock.
//!
//! Time counts only between two successful readings that lie no more than two scans apart; every doubt
//! (see [`Unfit`]) adds nothing, so a doubt can only delay. A worker is heard through the servers, so
//! its silence counts only where a server or another worker was heard meanwhile; such time is credited
//! once that is known, unless it came too late (a third of the worker's TTL): then all of them were
//! away, and the silence was not the worker's own.

use super::brake;
use super::fitness::{self, Last, Unfit};
use crate::guard::{Guard, Guards};
use crate::id::JobId;
use crate::state::JobKind;
use crate::time::{BootInstant, Span, Timestamp};
use std::collections::BTreeMap;

/// How an observer observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObserverSettings {
    pub scan_interval: Span,
    /// A store that is away for longer than one beat makes everything observed before worthless.
    pub heartbeat_interval: Span,
    /// `mass_loss_threshold`, in percent of the live workers.
    pub mass_loss_percent: u32,
    pub guards: Guards,
}

/// One job's lease as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub job: JobId,
    pub kind: JobKind,
    pub ttl: Span,
    pub renew_seq: i64,
    pub renewed_at: Timestamp,
    /// It left in order, and left what runs to its shims.
    pub detached: bool,
}

/// A successful reading of all leases.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// Before it was asked for.
    pub started: BootInstant,
    /// After the answer came.
    pub ended: BootInstant,
    pub store_now: Timestamp,
    pub epoch: u32,
    pub readings: &'a [Reading],
}

/// A lease that is over, to be declared by compare-and-set on (job, renew_seq).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expired {
    pub job: JobId,
    pub renew_seq: i64,
    pub ttl: Span,
    /// How long its silence was observed.
    pub window: Span,
    /// It died alone: not one of many, and not detached. Only such a death is a sign of poison.
    pub alone: bool,
}

/// What a reading showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    pub expired: Vec<Expired>,
    /// Jobs that were braked just now: an alert.
    pub braked: Vec<JobId>,
    /// How many wait out the one TTL more that the brake gives them.
    pub waiting: usize,
    /// Why nothing could be judged.
    pub unfit: Option<Unfit>,
    /// For how long this epoch was observed without a break, in the time that counts.
    pub epoch: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Watched {
    seq: i64,
    kind: JobKind,
    ttl: Span,
    detached: bool,
    /// Where the next interval begins.
    anchor: BootInstant,
    window: Span,
    /// Silence of a worker that counts once a server is heard again.
    pending: Span,
    braked: bool,
}

/// Watches leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observer {
    settings: ObserverSettings,
    last: Option<Last>,
    failed: bool,
    watched: BTreeMap<JobId, Watched>,
    /// When a server or a worker was heard last.
    heard: Option<BootInstant>,
    /// Workers found expired, here or by another observer, and when: they count as silent for one TTL
    /// more.
    gone: BTreeMap<JobId, (BootInstant, Span)>,
    /// How long this epoch was observed.
    epoch: Span,
}

impl Observer {
    /// An observer that has seen nothing yet.
    pub const fn new(settings: ObserverSettings) -> Self {
        Self {
            settings,
            last: None,
            failed: false,
            watched: BTreeMap::new(),
            heard: None,
            gone: BTreeMap::new(),
            epoch: Span::ZERO,
        }
    }

    /// A reading failed.
    pub const fn failed(&mut self) {
        self.failed = true;
    }

    /// How often to read: `scan_interval`.
    pub const fn set_scan_interval(&mut self, interval: Span) {
        self.settings.scan_interval = interval;
    }

    /// Takes a reading; what it shows.
    pub fn scan(&mut self, scan: &Scan<'_>) -> Sight {
        if !self.settings.guards.on(Guard::FullTtl) {
            return at_a_glance(scan);
        }
        let is_guarded = self.settings.guards.on(Guard::FitToJudge);
        let mut fitness = fitness::judge(self.last.as_ref(), self.failed, scan, &self.settings);
        if !is_guarded {
            fitness = fitness::Fitness { unfit: None, forget: false };
        }
        if fitness.forget {
            self.watched.clear();
            self.heard = None;
            self.epoch = Span::ZERO;
        }
        let counts = fitness.unfit.is_none();
        if let (Some(last), true) = (self.last, counts) {
            self.epoch = self.epoch.plus(scan.started.since(last.ended).max(Span::ZERO));
        }
        self.last = Some(Last::of(scan));
        self.failed = false;
        let was_heard = self.look(scan, counts);
        if was_heard || !is_guarded {
            self.credit(scan.started);
        }
        let mut sight = Sight { unfit: fitness.unfit, epoch: self.epoch, ..Sight::default() };
        if counts {
            self.judge(scan.started, &mut sight);
        }
        sight
    }

    /// Updates what is known of each job; whether a server or a worker was heard.
    fn look(&mut self, scan: &Scan<'_>, counts: bool) -> bool {
        let mut was_heard = false;
        // Of what is read first it is not known when it renewed.
        let is_first = self.watched.is_empty();
        let mut next = BTreeMap::new();
        for reading in scan.readings {
            let known = self.watched.get(&reading.job).filter(|w| w.seq == reading.renew_seq);
            let watched = if let Some(known) = known {
                known.aged(scan, counts)
            } else {
                let is_voice = matches!(reading.kind, JobKind::Server | JobKind::Worker);
                was_heard |= is_voice && !is_first;
                Watched::new(reading, scan.ended)
            };
            next.insert(reading.job, Watched { detached: reading.detached, ..watched });
        }
        let before = core::mem::replace(&mut self.watched, next);
        // Declared by another observer, more likely than not: it counts as silent here too.
        for (job, watched) in before.iter().filter(|(job, _)| !self.watched.contains_key(job)) {
            if watched.is_worker() && watched.window.plus(watched.pending) >= watched.ttl.over(2) {
                self.gone.entry(*job).or_insert((scan.started, watched.ttl));
            }
        }
        was_heard
    }

    /// Somebody was heard through the servers: what passed since then was the silent ones' own.
    fn credit(&mut self, now: BootInstant) {
        let gap = self.heard.map(|heard| now.since(heard));
        let is_guarded = self.settings.guards.on(Guard::FitToJudge);
        for watched in self.watched.values_mut() {
            // Before the first voice all of them may have been away, however long.
            if gap.is_some_and(|gap| gap <= watched.ttl.over(3)) || !is_guarded {
                watched.window = watched.window.plus(watched.pending);
            }
            watched.pending = Span::ZERO;
        }
        self.heard = Some(now);
    }

    fn judge(&mut self, now: BootInstant, sight: &mut Sight) {
        self.gone.retain(|_, (at, ttl)| now.since(*at) <= *ttl);
        let is_mass = self.is_mass();
        for (job, watched) in &mut self.watched {
            if watched.window < watched.ttl {
                continue;
            }
            let brakes = watched.is_worker() && is_mass && self.settings.guards.on(Guard::Brake);
            if brakes && !watched.braked {
                watched.braked = true;
                sight.braked.push(*job);
            }
            if watched.braked && watched.window < watched.ttl.times(2) {
                sight.waiting += 1;
                continue;
            }
            let alone = watched.is_worker() && !is_mass && !watched.braked;
            let Watched { seq: renew_seq, ttl, window, .. } = *watched;
            sight.expired.push(Expired { job: *job, renew_seq, ttl, window, alone });
            if watched.is_worker() {
                // Each time anew: its declaration may be refused for long, and it is gone from then on.
                self.gone.insert(*job, (now, ttl));
            }
        }
    }

    /// Whether so many workers are silent for half their TTL, or gone since less than one, that the
    /// fault is more likely elsewhere.
    fn is_mass(&self) -> bool {
        let workers = || self.watched.values().filter(|watched| watched.is_worker());
        let gone = self.gone.keys().filter(|job| !self.watched.contains_key(job)).count();
        let silent = workers().filter(|watched| watched.window >= watched.ttl.over(2)).count();
        brake::is_mass(silent + gone, workers().count() + gone, self.settings.mass_loss_percent)
    }
}

/// What is left without the guard of a full TTL of observation: the stored instant alone.
fn at_a_glance(scan: &Scan<'_>) -> Sight {
    let over = |r: &&Reading| scan.store_now >= r.renewed_at.plus(r.ttl);
    let expired = scan.readings.iter().filter(over).map(|r| Expired {
        job: r.job,
        renew_seq: r.renew_seq,
        ttl: r.ttl,
        window: scan.store_now.since(r.renewed_at),
        alone: r.kind == JobKind::Worker && !r.detached,
    });
    let epoch = Span::from_micros(i64::MAX);
    Sight { expired: expired.collect(), epoch, ..Sight::default() }
}

impl Watched {
    const fn new(reading: &Reading, ended: BootInstant) -> Self {
        Self {
            seq: reading.renew_seq,
            kind: reading.kind,
            ttl: reading.ttl,
            detached: reading.detached,
            anchor: ended,
            window: Span::ZERO,
            pending: Span::ZERO,
            braked: false,
        }
    }

    /// The same renewal was read again.
    fn aged(&self, scan: &Scan<'_>, counts: bool) -> Self {
        if !counts {
            return Self { anchor: scan.ended, ..*self };
        }
        let more = scan.started.since(self.anchor).max(Span::ZERO);
        // A detached one too: its successor registers through a server.
        let (window, pending) = if matches!(self.kind, JobKind::Worker) {
            (self.window, self.pending.plus(more))
        } else {
            (self.window.plus(more), self.pending)
        };
        Self { anchor: scan.started, window, pending, ..*self }
    }

    const fn is_worker(&self) -> bool {
        matches!(self.kind, JobKind::Worker) && !self.detached
    }
}
