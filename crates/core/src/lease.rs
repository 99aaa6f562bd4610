//! The arithmetic of a lease: which settings can keep the promise that a lost attempt is gone
//! before its replacement starts (1-semantics section 2.3).

use crate::time::Span;

/// The settings of a holder's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSettings {
    pub lease_ttl: Span,
    pub heartbeat_interval: Span,
    /// After the last acknowledged beat the holder stops acting; default 80 % of the TTL.
    pub self_fence: Option<Span>,
    pub kill_grace: Option<Span>,
    /// Default: the larger of 1 s and 5 % of the TTL.
    pub margin: Option<Span>,
}

/// Settings with their defaults filled in, which keep the inequalities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    pub lease_ttl: Span,
    pub heartbeat_interval: Span,
    pub self_fence: Span,
    pub kill_grace: Span,
    pub margin: Span,
}

/// Settings that cannot keep the promise; each names both keys and the value to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    #[error(
        "heartbeat_interval {interval} is more than a third of self_fence {self_fence}: \
         write heartbeat_interval = \"{mend}\" or less"
    )]
    SlowBeat { interval: Span, self_fence: Span, mend: Span },
    /// `mend`: a shorter grace that would do, if one can.
    #[error(
        "self_fence {self_fence} + kill_grace {kill_grace} + margin {margin} is more than \
         lease_ttl {ttl}: write lease_ttl = \"{ttl_mend}\" or more{}",
        .mend.map_or_else(String::new, |mend| format!(", or kill_grace = \"{mend}\" or less"))
    )]
    LateKill {
        self_fence: Span,
        kill_grace: Span,
        margin: Span,
        ttl: Span,
        mend: Option<Span>,
        ttl_mend: Span,
    },
    #[error("lease_ttl {ttl} is too short: write lease_ttl = \"{mend}\" or more")]
    ShortTtl { ttl: Span, mend: Span },
}

const LONGEST_GRACE: Span = Span::from_secs(30);
/// Longer ones are not looked for.
const LONGEST_TTL: Span = Span::from_hours(24 * 365);

impl LeaseSettings {
    /// Fills in the defaults and checks `self_fence + kill_grace + margin <= lease_ttl` and
    /// `heartbeat_interval <= self_fence / 3`.
    pub fn check(&self) -> Result<Lease, LeaseError> {
        let ttl = self.lease_ttl;
        let shortest = Span::from_secs(2);
        if ttl < shortest {
            return Err(LeaseError::ShortTtl { ttl, mend: shortest });
        }
        let (self_fence, margin) = self.parts_of(ttl);
        let left = ttl.less(self_fence).less(margin);
        let kill_grace = self.kill_grace.unwrap_or(left.min(LONGEST_GRACE).max(Span::ZERO));
        if self_fence.plus(kill_grace).plus(margin) > ttl {
            return Err(LeaseError::LateKill {
                self_fence,
                kill_grace,
                margin,
                ttl,
                mend: Some(left).filter(|left| *left > Span::ZERO),
                ttl_mend: self.enough(kill_grace),
            });
        }
        let most = self_fence.over(3);
        if self.heartbeat_interval > most {
            let interval = self.heartbeat_interval;
            let mend = if most < Span::from_secs(1) { most } else { most.in_secs() };
            return Err(LeaseError::SlowBeat { interval, self_fence, mend });
        }
        let heartbeat_interval = self.heartbeat_interval;
        Ok(Lease { lease_ttl: ttl, heartbeat_interval, self_fence, kill_grace, margin })
    }

    /// Self-fence and margin of a lease of that length.
    fn parts_of(&self, ttl: Span) -> (Span, Span) {
        let percent = |n: i64| ttl.over(100).times(n);
        let margin = self.margin.unwrap_or(percent(5).max(Span::from_secs(1)));
        (self.self_fence.unwrap_or(percent(80)), margin)
    }

    /// The least whole seconds that leave room for that grace: the other parts grow with them.
    fn enough(&self, kill_grace: Span) -> Span {
        let fits = |secs: i64| {
            let (self_fence, margin) = self.parts_of(Span::from_secs(secs));
            self_fence.plus(margin).plus(kill_grace) <= Span::from_secs(secs)
        };
        let (mut short, mut long) = (self.lease_ttl.as_secs(), LONGEST_TTL.as_secs());
        while long - short > 1 {
            let middle = short + (long - short) / 2;
            if fits(middle) { long = middle } else { short = middle }
        }
        Span::from_secs(long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(ttl: i64, beat: i64) -> LeaseSettings {
        LeaseSettings {
            lease_ttl: Span::from_secs(ttl),
            heartbeat_interval: Span::from_secs(beat),
            self_fence: None,
            kill_grace: None,
            margin: None,
        }
    }

    #[test]
    fn the_defaults_of_the_documentation_hold() {
        let worker = settings(300, 5).check().unwrap();
        assert_eq!(worker.self_fence, Span::from_secs(240));
        assert_eq!(worker.margin, Span::from_secs(15));
        assert_eq!(worker.kill_grace, Span::from_secs(30));
        let scheduler = settings(30, 5).check().unwrap();
        assert_eq!(scheduler.kill_grace, Span::from_millis(4_500));
    }

    #[test]
    fn a_refusal_names_the_value_to_write() {
        let text = settings(30, 30).check().unwrap_err().to_string();
        assert!(text.contains("heartbeat_interval = \"8s\""), "{text}");
        let late = LeaseSettings { kill_grace: Some(Span::from_secs(60)), ..settings(30, 5) };
        let text = late.check().unwrap_err().to_string();
        assert!(text.contains("kill_grace = \"4s500ms\"") && text.contains("lease_ttl"), "{text}");
        let text = settings(20, 6).check().unwrap_err().to_string();
        assert!(text.contains("heartbeat_interval = \"5s\""), "{text}");
    }

    #[test]
    fn the_value_that_a_refusal_names_is_accepted() {
        for (ttl, kill_grace) in [(20, Some(10)), (3, None), (4, None), (300, Some(120))] {
            let grace = kill_grace.map(Span::from_secs);
            let early = LeaseSettings { kill_grace: grace, ..settings(ttl, 1) };
            let LeaseError::LateKill { ttl_mend, mend, .. } = early.check().unwrap_err() else {
                panic!("{ttl} is not refused for its grace");
            };
            let check = |settings: LeaseSettings| settings.check();
            check(LeaseSettings { lease_ttl: ttl_mend, ..early }).unwrap();
            let shorter = Span::from_secs(ttl_mend.as_secs() - 1);
            check(LeaseSettings { lease_ttl: shorter, ..early }).unwrap_err();
            if let Some(mend) = mend {
                check(LeaseSettings { kill_grace: Some(mend), ..early }).unwrap();
            }
        }
    }

    #[test]
    fn whatever_passes_ends_before_the_lease() {
        for ttl in 1..400 {
            for beat in [1, 5, 30] {
                if let Ok(lease) = settings(ttl, beat).check() {
                    let end = lease.self_fence.plus(lease.kill_grace).plus(lease.margin);
                    assert!(end <= lease.lease_ttl && lease.kill_grace >= Span::ZERO);
                }
            }
        }
    }
}
