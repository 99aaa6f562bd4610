//! The safety guards: each line of defence of 1-semantics sections 2 to 5 by its name.
//!
//! The code at a guard asks `guards.on(Guard::...)`. All of them are on, always: switching one off
//! exists only under the feature `guard-switches`, for the tests and the simulator, which show that
//! without any one of them something breaks. A guard that nothing breaks without would be dead code.

use core::fmt;

macro_rules! guards {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// A line of defence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard { $($(#[$doc])* $variant),+ }
        impl Guard {
            /// Every guard.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Its name on the command line and in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
            /// The guard of that name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

guards! {
    /// A scheduler's writing transaction begins with the assertion that its lease is not over.
    OwnLease = "own_lease",
    /// A declaration compares the renewal that was observed with the one in the row.
    DeclareCompareAndSet = "declare_compare_and_set",
    /// A declaration locks the job's row, so that a renewal waits for it and a claim of it too.
    DeclareRowLock = "declare_row_lock",
    /// In the declaring statement the store's own clock agrees that the lease is over.
    StoreClock = "store_clock",
    /// A start is accepted only with the current token.
    StartToken = "start_token",
    /// A terminal report is accepted only with the current token.
    FinishToken = "finish_token",
    /// Claims, starts and take-overs need an owner that is not lost.
    OwnerAlive = "owner_alive",
    /// A lease is over only after a whole TTL of observation.
    FullTtl = "full_ttl",
    /// An observer that stumbles declares nothing.
    FitToJudge = "fit_to_judge",
    /// Many expiries at once wait one more TTL.
    Brake = "brake",
    /// A holder stops acting, and its tasks end, before its lease does.
    LocalDeadline = "local_deadline",
    /// Absence is proved by taking the attempt's lock and writing an outcome under it.
    AbsenceUnderLock = "absence_under_lock",
    /// Only the owner that a shim's page names pushes its deadline.
    OwnerWord = "owner_word",
    /// An inventory that is older than a claim or a start says nothing about it.
    InventoryNumber = "inventory_number",
    /// A caller with an older epoch gets no tokens, no dispatch and no claims.
    Epoch = "epoch",
    /// After a change of the epoch every worker reconciles before anything is dispatched.
    EpochReconciliation = "epoch_reconciling",
    /// A registration that a later one of its home has overtaken registers nothing.
    RegisterOrder = "register_order",
    /// A delayed or repeated beat renews nothing.
    BeatOrder = "beat_order",
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which guards are on: all of them, except where a test switched one off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guards {
    off: u32,
}

impl Guards {
    /// Every guard is on.
    pub const fn all() -> Self {
        Self { off: 0 }
    }

    /// Whether a guard is on.
    pub const fn on(self, guard: Guard) -> bool {
        self.off & (1 << guard as u32) == 0
    }

    /// These guards without one of them: for tests and the simulator only.
    #[cfg(feature = "guard-switches")]
    pub const fn without(self, guard: Guard) -> Self {
        Self { off: self.off | (1 << guard as u32) }
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off: Vec<&Guard> = Guard::ALL.iter().filter(|guard| !self.on(**guard)).collect();
        if off.is_empty() { f.write_str("Guards(all)") } else { write!(f, "Guards(off: {off:?})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_has_its_own_bit_and_name() {
        assert!(Guard::ALL.len() <= 32);
        for guard in Guard::ALL {
            assert!(Guards::all().on(*guard));
            assert_eq!(Guard::parse(guard.as_str()), Some(*guard));
        }
        assert_eq!(Guard::parse("nothing"), None);
    }

    #[cfg(feature = "guard-switches")]
    #[test]
    fn one_is_switched_off_and_the_others_stay() {
        for guard in Guard::ALL {
            let guards = Guards::all().without(*guard);
            assert!(Guard::ALL.iter().all(|other| guards.on(*other) == (other != guard)));
        }
    }
}
