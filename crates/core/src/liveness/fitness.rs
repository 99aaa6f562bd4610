//! Whether an observer may judge at all: one that stumbled itself, or whose store did, must not take
//! its own absence for that of others.

use super::observer::{ObserverSettings, Scan};
use crate::time::{BootInstant, Span, Timestamp};
use core::fmt;

/// Why an interval between two readings says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// It is the first reading.
    Fresh,
    /// The observer stood still: more than two scans lie between the readings.
    Late,
    /// The reading itself took longer than a scan.
    Slow,
    /// A reading failed in between.
    Failing,
    /// The store's clock made a step.
    ClockStep,
    /// The installation began a new epoch.
    NewEpoch,
}

impl Unfit {
    /// The word of the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Late => "late",
            Self::Slow => "slow",
            Self::Failing => "failing",
            Self::ClockStep => "clock_step",
            Self::NewEpoch => "new_epoch",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A difference between the two clocks above this is a step and no drift.
const STEP: Span = Span::from_secs(1);

/// What is kept of the last successful reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Last {
    pub(super) started: BootInstant,
    pub(super) ended: BootInstant,
    store_now: Timestamp,
    epoch: u32,
}

impl Last {
    pub(super) const fn of(scan: &Scan<'_>) -> Self {
        let Scan { started, ended, store_now, epoch, .. } = *scan;
        Self { started, ended, store_now, epoch }
    }
}

/// What an interval is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fitness {
    pub(super) unfit: Option<Unfit>,
    /// What was observed before says nothing any more.
    pub(super) forget: bool,
}

/// Judges the interval that ends with `scan`.
pub(super) fn judge(
    last: Option<&Last>,
    failed: bool,
    scan: &Scan<'_>,
    settings: &ObserverSettings,
) -> Fitness {
    let Some(last) = last else { return Fitness { unfit: Some(Unfit::Fresh), forget: true } };
    let took = scan.ended.since(scan.started);
    let gap = scan.started.since(last.started);
    // Nobody could renew while the store was away, so nobody's silence counts.
    let outage = (failed && scan.started.since(last.ended) > settings.heartbeat_interval)
        || took > settings.heartbeat_interval;
    let blur = STEP.plus(took).plus(last.ended.since(last.started));
    let drift = scan.store_now.since(last.store_now).less(gap).as_micros().saturating_abs();
    let unfit = if scan.epoch != last.epoch {
        Some(Unfit::NewEpoch)
    } else if failed {
        Some(Unfit::Failing)
    } else if gap > settings.scan_interval.times(2) {
        Some(Unfit::Late)
    } else if took > settings.scan_interval {
        Some(Unfit::Slow)
    } else if drift > blur.as_micros() {
        Some(Unfit::ClockStep)
    } else {
        None
    };
    Fitness { unfit, forget: outage || unfit == Some(Unfit::NewEpoch) }
}
