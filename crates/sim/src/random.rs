//! The only randomness of a simulated world: streams of numbers that follow from its seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A stream (SplitMix64). Clones draw from the same one; forks have their own, so that what one
/// part draws does not move the others.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    state: Arc<Mutex<u64>>,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of a seed.
    pub fn of(seed: u64) -> Self {
        Self { seed, state: Arc::new(Mutex::new(seed.wrapping_mul(STEP))) }
    }

    /// Another stream of the same seed, by name.
    pub fn fork(&self, name: &str) -> Self {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self::of(name.bytes().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next 64 bits.
    pub fn bits(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(STEP);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number under `end`; 0 if there is none.
    pub fn below(&self, end: usize) -> usize {
        usize::try_from(self.bits() % (end.max(1) as u64)).unwrap_or(0)
    }

    /// True so many times of 1,000.
    pub fn chance(&self, of_thousand: u64) -> bool {
        self.bits() % 1_000 < of_thousand
    }

    /// From `least` to `most` milliseconds.
    pub fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.bits() % (most.saturating_sub(least) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_stream_and_forks_do_not_move_it() {
        let (one, other) = (Random::of(7), Random::of(7));
        one.fork("network").bits();
        assert_eq!(one.bits(), other.bits());
        assert_ne!(one.fork("a").bits(), one.fork("b").bits());
        assert_eq!(one.fork("a").bits(), other.fork("a").bits());
        assert_ne!(Random::of(1).bits(), Random::of(2).bits());
    }
}
