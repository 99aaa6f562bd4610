//! Retries: how long to wait before the next try, and which failures are worth one.

use crate::time::Span;

/// The user's own budget (`retries` and its delays).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub retries: u32,
    pub retry_delay: Span,
    pub exponential_backoff: bool,
    pub max_retry_delay: Option<Span>,
}

/// One rule of `retry_policy`: which exit codes, and what to do then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryRule {
    pub exit_codes: Vec<u8>,
    pub action: RetryAction,
    pub reason: String,
}

/// What a `retry_policy` rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAction {
    /// No further try.
    Fail,
    /// A try from the `retries` budget, after `delay` if given, else after the usual delay.
    Retry { delay: Option<Span> },
}

impl RetryPolicy {
    /// The wait before the try that follows `failed_tries` failures.
    ///
    /// Constant `retry_delay`, or with `exponential_backoff` "full jitter": uniform between zero
    /// and `retry_delay * 2^(failed_tries - 1)`, capped by `max_retry_delay`, saturating, and never
    /// under one second. `random` is uniform over all of `u64`.
    /// Source of the jitter: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    pub fn delay(&self, failed_tries: u32, random: u64) -> Span {
        if !self.exponential_backoff {
            return self.capped(self.retry_delay);
        }
        let doublings = failed_tries.saturating_sub(1).min(62);
        let ceiling = self.capped(self.retry_delay.times(1_i64 << doublings)).as_micros().max(0);
        let drawn = (i128::from(ceiling) * i128::from(random >> 1)) >> 63;
        let floor = Span::from_secs(1).as_micros().min(ceiling);
        Span::from_micros(i64::try_from(drawn).unwrap_or(ceiling).max(floor))
    }

    fn capped(&self, delay: Span) -> Span {
        self.max_retry_delay.map_or(delay, |cap| delay.min(cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(exponential_backoff: bool) -> RetryPolicy {
        RetryPolicy {
            retries: 5_000,
            retry_delay: Span::from_mins(2),
            exponential_backoff,
            max_retry_delay: Some(Span::from_mins(30)),
        }
    }

    #[test]
    fn the_delay_saturates_and_stays_under_its_cap() {
        for failed in [0, 1, 2, 10, 62, 63, 5_000, u32::MAX] {
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                let delay = policy(true).delay(failed, random);
                assert!(delay >= Span::from_secs(1) && delay <= Span::from_mins(30), "{failed}");
            }
        }
        assert_eq!(policy(false).delay(7, 3), Span::from_mins(2));
    }

    #[test]
    fn thirty_retries_do_not_come_at_one_instant() {
        let delays: std::collections::BTreeSet<_> = (0..30_u64)
            .map(|i| policy(true).delay(3, i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        assert_eq!(delays.len(), 30);
    }

    /// Ten thousand tasks fail in one second: no second has more than three times its share of their retries.
    #[test]
    fn ten_thousand_retries_are_spread_evenly() {
        let policy = RetryPolicy { retry_delay: Span::from_mins(1), ..policy(true) };
        let mut bins = [0_u32; 61];
        let mut random = 1_u64;
        for _ in 0..10_000 {
            // SplitMix64.
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut drawn = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let second = policy.delay(1, drawn ^ (drawn >> 31)).as_secs();
            bins[usize::try_from(second).unwrap_or(60)] += 1;
        }
        let most = bins.iter().max().copied().unwrap_or(0);
        assert!(most <= 3 * 10_000 / 60, "{most} in one second: {bins:?}");
    }
}
