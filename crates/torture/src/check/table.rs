//! The verdict for people.

use super::{Promise, Verdict};
use std::fmt;

/// Violations of one promise that are shown.
const SHOWN: usize = 8;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut section = "";
        for ((of, name), count) in &self.counts {
            if *of != section {
                writeln!(f, "{of}")?;
                section = of;
            }
            writeln!(f, "  {name:<42} {count:>8}")?;
        }
        writeln!(f, "recovery time, in leases")?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            match self.at(share) {
                Some(span) => writeln!(f, "  {name:<42} {span:>8.2}")?,
                None => writeln!(f, "  {name:<42} {:>8}", "-")?,
            }
        }
        writeln!(f, "verdict")?;
        for promise in Promise::ALL {
            writeln!(f, "  {:<42} {:>8}", promise.as_str(), self.broken(promise))?;
        }
        for promise in Promise::ALL {
            let found = self.violations.iter().filter(|found| found.promise == promise);
            for violation in found.clone().take(SHOWN) {
                writeln!(f, "VIOLATION {}: {}", promise.as_str(), violation.text)?;
            }
            let more = found.count().saturating_sub(SHOWN);
            if more > 0 {
                writeln!(f, "VIOLATION {}: {more} more", promise.as_str())?;
            }
        }
        Ok(())
    }
}

impl Verdict {
    /// The recovery time that this share of all does not exceed.
    fn at(&self, share: f64) -> Option<f64> {
        let last = self.recovery.len().checked_sub(1)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a length is one"
        )]
        let place = (last as f64 * share).ceil() as usize;
        self.recovery.get(place.min(last)).copied()
    }
}
