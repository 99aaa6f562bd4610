//! Colours that colour-blind people can tell apart (Okabe and Ito's), and the look of states.
//!
//! A colour never carries a meaning alone: each state has an icon and its word.

/// What a piece of text is, rather than which colour it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Paint {
    #[default]
    Plain,
    Strong,
    /// Beside the point.
    Dim,
    Good,
    Bad,
    /// A person should look.
    Alert,
    /// It is going on.
    Active,
    /// It waits.
    Waiting,
}

impl Paint {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Good => "38;5;36",
            Self::Bad => "38;5;166",
            Self::Alert => "1;38;5;175",
            Self::Active => "38;5;74",
            Self::Waiting => "38;5;178",
        }
    }

    /// The text in that colour, if colours are on.
    pub(crate) fn apply(self, text: &str, colour: bool) -> String {
        if !colour || self == Self::Plain || text.is_empty() {
            return text.into();
        }
        format!("\x1b[{}m{text}\x1b[0m", self.code())
    }
}

/// The icon and the paint of a state or an outcome; words that this build does not know are plain.
pub(crate) fn look(word: &str) -> (&'static str, Paint) {
    match word {
        "success" | "ok" | "passed" => ("✔", Paint::Good),
        "failed" | "down" | "error" => ("✘", Paint::Bad),
        "upstream_failed" => ("⊘", Paint::Bad),
        "lost" | "lost_open" => ("‼", Paint::Bad),
        "held" => ("⚑", Paint::Alert),
        "running" => ("▶", Paint::Active),
        "claimed" => ("◔", Paint::Active),
        "stopping" | "restarting" => ("◼", Paint::Waiting),
        "queued" => ("◷", Paint::Waiting),
        "scheduled" => ("◌", Paint::Waiting),
        "deferred" => ("⧗", Paint::Waiting),
        "up_for_retry" => ("↻", Paint::Waiting),
        "degraded" | "warn" => ("!", Paint::Waiting),
        "skipped" => ("↷", Paint::Dim),
        "cancelled" | "cleared" => ("⊗", Paint::Dim),
        "missed" => ("⌀", Paint::Alert),
        "fenced" => ("⛔", Paint::Alert),
        "none" => ("○", Paint::Dim),
        "removed" | "never_ran" | "released" | "ended" => ("–", Paint::Dim),
        _ => ("•", Paint::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::state::{AttemptState, Outcome, RunState, TiState};

    #[test]
    fn every_state_has_a_look_of_its_own() {
        let words = (TiState::ALL.iter().map(|s| s.as_str()))
            .chain(RunState::ALL.iter().map(|s| s.as_str()))
            .chain(AttemptState::ALL.iter().map(|s| s.as_str()))
            .chain(Outcome::ALL.iter().map(|s| s.as_str()));
        for word in words {
            assert_ne!(look(word).0, "•", "{word}");
        }
        assert_eq!(look("of a newer server"), ("•", Paint::Plain));
    }

    #[test]
    fn paint_is_applied_only_when_colours_are_on() {
        assert_eq!(Paint::Good.apply("x", false), "x");
        assert_eq!(Paint::Good.apply("x", true), "\u{1b}[38;5;36mx\u{1b}[0m");
        assert_eq!(Paint::Plain.apply("x", true), "x");
    }
}
