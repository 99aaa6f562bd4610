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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    #[error(
        "self_fence {self_fence} + kill_grace {kill_grace} + margin {margin} is more than \
         lease_ttl {ttl}: write kill_grace = \"{mend}\" or less, or lease_ttl = \"{ttl_mend}\""
    )]
    LateKill {
        self_fence: Span,
        kill_grace: Span,
        margin: Span,
        ttl: Span,
        mend: Span,
        ttl_mend: Span,
    },
    #[error("lease_ttl {ttl} is too short: write lease_ttl = \"{mend}\" or more")]
    ShortTtl { ttl: Span, mend: Span },
}

const LONGEST_GRACE: Span = Span::from_secs(30);

impl LeaseSettings {
    /// Fills in the defaults and checks `self_fence + kill_grace + margin <= lease_ttl` and
    /// `heartbeat_interval <= self_fence / 3`.
    pub fn check(&self) -> Result<Lease, LeaseError> {
        let ttl = self.lease_ttl;
        let shortest = Span::from_secs(2);
        if ttl < shortest {
            return Err(LeaseError::ShortTtl { ttl, mend: shortest });
        }
        let percent = |n: i64| Span::from_micros(ttl.as_micros() / 100 * n);
        let self_fence = self.self_fence.unwrap_or(percent(80));
        let margin = self.margin.unwrap_or(percent(5).max(Span::from_secs(1)));
        let left = Span::from_micros(ttl.as_micros() - self_fence.as_micros() - margin.as_micros());
        let kill_grace = self.kill_grace.unwrap_or(left.min(LONGEST_GRACE).max(Span::ZERO));
        if self_fence.plus(kill_grace).plus(margin) > ttl {
            return Err(LeaseError::LateKill {
                self_fence,
                kill_grace,
                margin,
                ttl,
                mend: left.max(Span::ZERO),
                ttl_mend: self_fence.plus(kill_grace).plus(margin),
            });
        }
        let mend = Span::from_micros(self_fence.as_micros() / 3);
        if self.heartbeat_interval > mend {
            let interval = self.heartbeat_interval;
            return Err(LeaseError::SlowBeat { interval, self_fence, mend });
        }
        let heartbeat_interval = self.heartbeat_interval;
        Ok(Lease { lease_ttl: ttl, heartbeat_interval, self_fence, kill_grace, margin })
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
