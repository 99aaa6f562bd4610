//! The ramp by which recovered work comes back: so many starts a second, evenly spread.
//!
//! Source: 1-semantics section 6. There is one ramp per pool, and it is drawn from by whoever lets an
//! attempt go. It begins at a share of the pool's slots a second, doubles each time that a second's
//! worth of starts has succeeded, and halves when the infrastructure fails them.
//!
//! In no second (from an instant up to, not including, the one a second later) more is let go than the
//! rate of that second. Up to a tenth of it may go at once, so that a high rate needs no claim per start.
//!
//! Deliberately absent: fresh work, which passes beside it; the clock; the row.

use crate::time::{Span, Timestamp};

/// Rates are in thousandths of a start a second.
const ONE: u32 = 1_000;
/// Never slower than one start in 5 s.
const SLOWEST: u32 = ONE / 5;
/// A second's worth may go in so many parts at the most.
const PARTS: u32 = 10;

/// Where a ramp begins and where it ends, for one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Thousandths of a start a second.
    pub initial: u32,
    /// The same.
    pub most: u32,
}

impl Bounds {
    /// `initial_percent` of the pool's slots a second at first, at least 1; then up to `max_rate` a
    /// second, or to the pool's slots.
    pub fn of(slots: i64, initial_percent: u32, max_rate: Option<u32>) -> Self {
        let slots = u32::try_from(slots.max(1)).unwrap_or(u32::MAX);
        let most = max_rate.unwrap_or(slots).max(1).saturating_mul(ONE);
        let initial = slots.saturating_mul(ONE / 100).saturating_mul(initial_percent).max(ONE);
        Self { initial: initial.min(most), most }
    }
}

/// A pool's ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// Thousandths of a start a second.
    pub rate: u32,
    /// When all that was let go is worked off at this rate: the next one may go then.
    pub free_at: Timestamp,
    /// Starts that have succeeded since the rate changed.
    pub good: u32,
}

impl Ramp {
    /// No ramp lets one start wait longer than its slowest pace: what says so was written before the clock was
    /// set back.
    pub const LONGEST: Span = Span::from_secs(5);

    /// When a ramp that is free at an instant lets the next one go; `None`: it is to be asked now.
    pub fn opens_at(free_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        (free_at > now && free_at.since(now) <= Self::LONGEST).then_some(free_at)
    }

    /// A fresh one, from which nothing was drawn yet.
    pub fn begin(bounds: Bounds, now: Timestamp) -> Self {
        Self { rate: bounds.initial, free_at: now.minus(Span::from_secs(1)), good: 0 }
    }

    /// How many of those that want to may go now.
    pub fn draw(&mut self, want: u32, now: Timestamp) -> u32 {
        let (at_once, gap) = (self.at_once(), self.gap());
        let saved = Span::from_micros(gap.as_micros().saturating_mul(i64::from(at_once) - 1));
        // A clock that was set back must not keep everybody waiting for longer than a part takes.
        let latest = now.plus(Span::from_micros(gap.as_micros().saturating_mul(at_once.into())));
        let from = self.free_at.max(now.minus(saved)).min(latest);
        if from > now {
            self.free_at = from;
            return 0;
        }
        let room = now.since(from).as_micros() / gap.as_micros() + 1;
        let drawn = want.min(u32::try_from(room).unwrap_or(u32::MAX));
        let taken = gap.as_micros().saturating_mul(drawn.into());
        self.free_at = from.plus(Span::from_micros(taken));
        drawn
    }

    /// Starts have succeeded.
    pub fn succeeded(&mut self, starts: u32, bounds: Bounds) {
        self.good = self.good.saturating_add(starts);
        if self.good.saturating_mul(ONE) >= self.rate {
            self.rate = self.rate.saturating_mul(2).clamp(SLOWEST, bounds.most.max(SLOWEST));
            self.good = 0;
        }
    }

    /// The infrastructure has failed some starts.
    pub fn failed(&mut self) {
        self.rate = (self.rate / 2).max(SLOWEST);
        self.good = 0;
    }

    /// Starts that may go at once.
    fn at_once(&self) -> u32 {
        (self.rate / ONE / PARTS).max(1)
    }

    /// The time from one start to the next: with those at once the rate is kept in every second.
    fn gap(&self) -> Span {
        let spread = self.rate.saturating_sub((self.at_once() - 1) * ONE).max(SLOWEST);
        Span::from_micros(i64::from(ONE) * 1_000_000 / i64::from(spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nobody_waiting() {
        let slowest = Ramp { rate: SLOWEST, free_at: at(0), good: 0 };
        assert_eq!(slowest.gap(), Ramp::LONGEST);
        let (now, hour) = (at(1_000_000), Span::from_hours(1));
        assert_eq!(Ramp::opens_at(now, now), None);
        assert_eq!(Ramp::opens_at(now.plus(Ramp::LONGEST), now), Some(now.plus(Ramp::LONGEST)));
        assert_eq!(Ramp::opens_at(now.plus(hour), now), None);
        // Asked, it writes down when it does.
        let mut ramp = Ramp { free_at: now.plus(hour), ..slowest };
        assert_eq!(ramp.draw(1, now), 0);
        assert!(Ramp::opens_at(ramp.free_at, now).is_some());
    }

    #[test]
    fn it_begins_at_a_share_of_the_slots_and_never_under_one() {
        assert_eq!(Bounds::of(128, 10, None), Bounds { initial: 12_800, most: 128_000 });
        assert_eq!(Bounds::of(4, 10, None), Bounds { initial: 1_000, most: 4_000 });
        assert_eq!(Bounds::of(128, 10, Some(5)), Bounds { initial: 5_000, most: 5_000 });
        assert_eq!(Bounds::of(0, 10, None), Bounds { initial: 1_000, most: 1_000 });
    }

    #[test]
    fn it_doubles_with_a_seconds_worth_of_starts_up_to_its_bound() {
        let bounds = Bounds::of(8, 25, None);
        let mut ramp = Ramp::begin(bounds, at(0));
        let mut rates = Vec::new();
        for _ in 0..4 {
            rates.push(ramp.rate);
            ramp.succeeded(1, bounds);
            ramp.succeeded(ramp.rate / ONE, bounds);
        }
        assert_eq!(rates, [2_000, 4_000, 8_000, 8_000]);
    }

    #[test]
    fn it_halves_down_to_one_start_in_five_seconds() {
        let mut ramp = Ramp::begin(Bounds::of(10, 10, None), at(0));
        for rate in [500, 250, 200, 200] {
            ramp.failed();
            assert_eq!(ramp.rate, rate);
        }
        assert_eq!(ramp.draw(3, at(0)), 1);
        assert_eq!(ramp.draw(3, at(4_999_999)), 0);
        assert_eq!(ramp.draw(3, at(5_000_000)), 1);
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nobody_for_long() {
        let mut ramp = Ramp::begin(Bounds::of(10, 10, None), at(3_600_000_000));
        assert_eq!(ramp.draw(5, at(3_600_000_000)), 1);
        assert_eq!(ramp.draw(5, at(0)), 0);
        assert_eq!(ramp.draw(5, at(1_000_000)), 1);
    }

    proptest! {
        /// However it is asked, no second has more starts than the highest rate in it.
        #[test]
        fn no_second_has_more_than_the_rate(
            slots in 1_i64..5_000,
            asks in prop::collection::vec((0_i64..400_000, 0_u32..2_000, 0_u8..8), 1..120),
        ) {
            let bounds = Bounds::of(slots, 10, None);
            let mut ramp = Ramp::begin(bounds, at(0));
            let (mut now, mut drawn, mut rates) = (0, Vec::new(), Vec::new());
            for (wait, want, what) in asks {
                now += wait;
                let got = ramp.draw(want, at(now));
                prop_assert!(got <= want);
                drawn.push((now, got));
                rates.push((now, ramp.rate));
                match what {
                    0 => ramp.failed(),
                    1..=3 => ramp.succeeded(got, bounds),
                    _ => {}
                }
                rates.push((now, ramp.rate));
            }
            for (from, _) in &drawn {
                let within = |at: i64| (*from..*from + 1_000_000).contains(&at);
                let count: u32 = drawn.iter().filter(|(at, _)| within(*at)).map(|d| d.1).sum();
                let most = rates.iter().filter(|(at, _)| within(*at)).map(|r| r.1).max();
                let most = most.unwrap_or(0).div_ceil(ONE);
                prop_assert!(count <= most, "{count} from {from}, at most {most}");
            }
        }

        /// Who keeps asking gets the rate, but for a tenth.
        #[test]
        fn who_keeps_asking_gets_it(slots in 1_i64..5_000) {
            let mut ramp = Ramp::begin(Bounds::of(slots, 100, None), at(0));
            let got: u32 = (0..10_000).map(|ms| ramp.draw(u32::MAX, at(ms * 1_000))).sum();
            let whole = u32::try_from(slots).unwrap() * 10;
            prop_assert!(got >= whole / 10 * 8, "{got} of {whole}");
        }
    }
}
