//! The twelve trigger rules: from the ends of the upstream task instances to a decision.
//!
//! The counts are kept per (run, task) and grow as upstream instances end, so a decision costs the
//! same however many upstreams there are. The rules are Airflow's, `removed` instances included.

/// When a task may start, given how its upstream instances ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerRule {
    AllSuccess,
    AllFailed,
    AllDone,
    AllDoneMinOneSuccess,
    OneFailed,
    OneSuccess,
    OneDone,
    NoneFailed,
    NoneFailedMinOneSuccess,
    NoneSkipped,
    AllSkipped,
    Always,
}

/// How many upstream instances there are, and how those that ended did so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UpstreamCounts {
    pub total: u32,
    pub success: u32,
    pub failed: u32,
    pub skipped: u32,
    pub upstream_failed: u32,
    pub removed: u32,
}

impl UpstreamCounts {
    /// Instances that ended, in whatever way.
    pub const fn done(&self) -> u32 {
        self.success + self.failed + self.skipped + self.upstream_failed + self.removed
    }
    const fn all_done(&self) -> bool {
        self.done() >= self.total
    }
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Not decided yet.
    Wait,
    Ready,
    Skip,
    UpstreamFailed,
}

impl TriggerRule {
    /// Every rule with its name in files and pages.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::AllSuccess, "all_success"),
        (Self::AllFailed, "all_failed"),
        (Self::AllDone, "all_done"),
        (Self::AllDoneMinOneSuccess, "all_done_min_one_success"),
        (Self::OneFailed, "one_failed"),
        (Self::OneSuccess, "one_success"),
        (Self::OneDone, "one_done"),
        (Self::NoneFailed, "none_failed"),
        (Self::NoneFailedMinOneSuccess, "none_failed_min_one_success"),
        (Self::NoneSkipped, "none_skipped"),
        (Self::AllSkipped, "all_skipped"),
        (Self::Always, "always"),
    ];

    /// The name in files and pages.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(rule, _)| *rule == self).map_or("all_success", |(_, name)| name)
    }

    /// The rule of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(rule, _)| *rule)
    }

    /// What this rule says about a task with these upstreams.
    ///
    /// A failure that makes the rule impossible decides at once; a success that makes it true
    /// does too (`one_success`, `one_failed`, `one_done`). Without upstreams every rule is ready.
    pub fn decide(self, up: &UpstreamCounts) -> Decision {
        use Decision::{Ready, Skip, UpstreamFailed, Wait};
        if up.total == 0 {
            return Ready;
        }
        let broken = up.failed + up.upstream_failed;
        let (success, skipped) = (up.success + up.removed, up.skipped);
        let when_done = |decision| if up.all_done() { decision } else { Wait };
        match self {
            Self::Always => Ready,
            Self::AllDone => when_done(Ready),
            Self::AllSuccess if broken > 0 => UpstreamFailed,
            Self::AllSuccess if skipped > 0 => Skip,
            Self::AllSuccess => when_done(Ready),
            Self::AllFailed if success > 0 || skipped > 0 => Skip,
            Self::AllFailed => when_done(Ready),
            Self::AllSkipped if success > 0 || broken > 0 => Skip,
            Self::AllSkipped => when_done(Ready),
            Self::AllDoneMinOneSuccess if up.success > 0 => when_done(Ready),
            Self::AllDoneMinOneSuccess if broken > 0 => when_done(UpstreamFailed),
            Self::AllDoneMinOneSuccess => when_done(Skip),
            Self::OneFailed if broken > 0 => Ready,
            Self::OneFailed => when_done(Skip),
            Self::OneSuccess if up.success > 0 => Ready,
            Self::OneSuccess if broken > 0 => when_done(UpstreamFailed),
            Self::OneSuccess => when_done(Skip),
            Self::OneDone if up.success + up.failed > 0 => Ready,
            Self::OneDone => when_done(Skip),
            Self::NoneFailed if broken > 0 => UpstreamFailed,
            Self::NoneFailed => when_done(Ready),
            Self::NoneFailedMinOneSuccess if broken > 0 => UpstreamFailed,
            Self::NoneFailedMinOneSuccess if up.success > 0 => when_done(Ready),
            Self::NoneFailedMinOneSuccess => when_done(Skip),
            Self::NoneSkipped if skipped > 0 => Skip,
            Self::NoneSkipped => when_done(Ready),
        }
    }
}
