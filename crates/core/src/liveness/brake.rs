//! The brake: many deaths at once are more often one mistake of the observer's than many deaths.

/// Fewer than this are never many.
const LEAST: usize = 3;

/// Whether `silent` of `live` workers are a mass loss. `percent` is `mass_loss_threshold`.
pub(super) const fn is_mass(silent: usize, live: usize, percent: u32) -> bool {
    live >= LEAST && silent >= LEAST && silent * 100 >= live * percent as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_at_least_three_are_many() {
        assert!(is_mass(3, 3, 50) && is_mass(3, 6, 50) && is_mass(50, 100, 50));
        assert!(!is_mass(2, 2, 50) && !is_mass(2, 3, 50) && !is_mass(3, 7, 50));
        assert!(!is_mass(49, 100, 50) && is_mass(49, 100, 40) && !is_mass(0, 0, 0));
    }
}
