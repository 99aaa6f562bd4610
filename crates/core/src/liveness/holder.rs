//! The holder's arithmetic: it counts from *before* it sent the last beat that was acknowledged.

use crate::guard::{Guard, Guards};
use crate::lease::Lease;
use crate::time::BootInstant;

/// Where a holder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It may act.
    Acting,
    /// It starts nothing more, and its tasks are being ended.
    Fencing,
    /// Everything that it had is gone; others may act now.
    Over,
}

/// A beat on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beat {
    /// Beats are numbered by their sender: a late or repeated one renews nothing.
    pub seq: i64,
    sent: BootInstant,
}

/// One job's lease, as the job itself sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    lease: Lease,
    guards: Guards,
    seq: i64,
    /// The instant before the last acknowledged beat was sent.
    t0: BootInstant,
}

impl Holder {
    /// A holder that was registered by a request sent at `sent`.
    pub const fn new(lease: Lease, sent: BootInstant, guards: Guards) -> Self {
        Self { lease, guards, seq: 0, t0: sent }
    }

    /// The next beat, to be sent now.
    pub const fn beat(&mut self, now: BootInstant) -> Beat {
        self.seq += 1;
        Beat { seq: self.seq, sent: now }
    }

    /// A beat was acknowledged as a renewal. One that is older than the last changes nothing.
    pub fn acknowledged(&mut self, beat: Beat) {
        self.t0 = self.t0.max(beat.sent);
    }

    /// Whether it counts at all what its lease leaves it.
    pub const fn has_deadline(&self) -> bool {
        self.guards.on(Guard::LocalDeadline)
    }

    /// What it may do now.
    pub fn phase(&self, now: BootInstant) -> Phase {
        if !self.has_deadline() || now < self.fences_at() {
            Phase::Acting
        } else if now < self.ends_at() {
            Phase::Fencing
        } else {
            Phase::Over
        }
    }

    /// When it stops acting unless another beat is acknowledged.
    pub const fn fences_at(&self) -> BootInstant {
        self.t0.plus(self.lease.self_fence)
    }

    /// By when everything that it had is gone.
    pub const fn ends_at(&self) -> BootInstant {
        self.t0.plus(self.lease.lease_ttl.less(self.lease.margin))
    }

    /// The instant that its lease counts from.
    pub const fn t0(&self) -> BootInstant {
        self.t0
    }

    /// Its settings.
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LeaseSettings;
    use crate::time::Span;

    fn at(secs: i64) -> BootInstant {
        BootInstant::from_micros(secs * 1_000_000)
    }

    fn holder(guards: Guards) -> Holder {
        let settings = LeaseSettings {
            lease_ttl: Span::from_secs(30),
            heartbeat_interval: Span::from_secs(5),
            self_fence: None,
            kill_grace: None,
            margin: None,
        };
        Holder::new(settings.check().unwrap(), at(100), guards)
    }

    #[test]
    fn it_counts_from_before_the_beat_was_sent() {
        let mut holder = holder(Guards::all());
        let beat = holder.beat(at(105));
        assert_eq!(holder.phase(at(123)), Phase::Acting);
        assert_eq!(
            holder.phase(at(124)),
            Phase::Fencing,
            "a beat without an answer renews nothing"
        );
        holder.acknowledged(beat);
        assert_eq!((holder.t0(), holder.phase(at(128))), (at(105), Phase::Acting));
        assert_eq!(holder.phase(at(129)), Phase::Fencing);
        assert_eq!(holder.phase(at(133)), Phase::Fencing);
        assert_eq!(holder.phase(at(134)), Phase::Over);
    }

    #[test]
    fn an_old_answer_takes_nothing_back() {
        let mut holder = holder(Guards::all());
        let (first, second) = (holder.beat(at(105)), holder.beat(at(110)));
        assert!(first.seq < second.seq);
        holder.acknowledged(second);
        holder.acknowledged(first);
        assert_eq!(holder.t0(), at(110));
    }

    #[cfg(feature = "guard-switches")]
    #[test]
    fn without_its_local_deadline_it_never_stops() {
        let holder = holder(Guards::all().without(Guard::LocalDeadline));
        assert_eq!(holder.phase(at(1_000_000)), Phase::Acting);
    }
}
