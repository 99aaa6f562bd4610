//! The faults, and the plan of them that follows from a seed.

use crate::random::Random;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal $spans:expr),+ $(,)?) => {
        /// What is done to an installation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $variant),+ }
        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Its name on the command line and in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
            /// How long it lasts: one of these, in milliseconds. With a lease of 6 s and a fence at 4 s
            /// they lie on either side of both.
            const fn spans(self) -> &'static [u64] {
                match self { $(Self::$variant => &$spans),+ }
            }
        }
    };
}

kinds! {
    /// SIGTERM: it ends in order, and is started again at once. A worker leaves to its shims what does not
    /// end in time.
    EndScheduler = "scheduler-term" [3_000],
    EndServer = "server-term" [3_000],
    EndWorker = "worker-term" [4_000],
    /// SIGKILL; it is started again after the span.
    KillScheduler = "scheduler-kill" [0, 3_000, 9_000],
    KillServer = "server-kill" [0, 3_000, 9_000],
    /// Likewise, in the same home: before and after the fence, and after the lease.
    KillWorker = "worker-kill" [0, 2_000, 4_700, 9_000],
    /// A worker and all its shims.
    KillWorkerAndShims = "worker-and-shims-kill" [0, 0, 2_000, 9_000],
    KillShim = "shim-kill" [0],
    /// SIGSTOP, and SIGCONT after the span.
    StopShim = "shim-stop" [1_500, 8_000],
    StopScheduler = "scheduler-stop" [2_000, 9_000],
    StopServer = "server-stop" [2_000, 9_000],
    StopWorker = "worker-stop" [1_500, 3_000, 8_000, 12_000],
    /// Between worker and servers nothing passes; what was sent arrives when it is over.
    CutWorker = "worker-cut" [1_500, 4_700, 5_300, 9_000],
    /// Its connections end and are refused.
    RefuseWorker = "worker-refused" [2_000, 4_700, 9_000],
    DelayWorker = "worker-delay" [3_000, 8_000],
    /// What it asks is done, and it does not hear so.
    LoseAnswers = "worker-lost-answers" [2_000, 8_000],
    HalfOpenWorker = "worker-half-open" [2_000, 8_000],
    /// The same between a scheduler or server and the store.
    CutStore = "store-cut" [2_000, 9_000],
    DelayStore = "store-delay" [4_000],
    LoseStoreAnswers = "store-lost-answers" [1_000, 3_000],
    /// No server is there.
    NoServers = "servers-away" [2_500, 8_000],
    RestartStore = "store-restart" [0],
    StopStore = "store-stop" [1_500, 2_800, 10_000, 18_000],
    /// It dies at once, and recovers when it is started after the span.
    CrashStore = "store-crash" [0, 2_000],
    EndSessions = "store-sessions-end" [0],
    /// Somebody else has all its connections.
    FillStore = "store-full" [3_000, 8_000],
    /// More processes than cores are busy.
    BusyCpu = "cpu-busy" [5_000],
    /// The disk of a worker's home is full.
    FillDisk = "disk-full" [2_000, 7_000],
    /// A standby takes the store's place that lacks what was committed during the span.
    Promote = "promotion" [300, 1_000, 2_500],
    /// A worker stands still, somebody removes its home's lock and starts another one in the home, and then
    /// the first goes on beside it.
    TwoInOneHome = "two-in-one-home" [1_500, 3_000, 8_000],
}

impl Kind {
    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// It is about the whole store: two of these are not done at once.
    pub const fn is_of_store(self) -> bool {
        matches!(
            self,
            Self::RestartStore
                | Self::StopStore
                | Self::CrashStore
                | Self::EndSessions
                | Self::FillStore
                | Self::Promote
        )
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One fault, as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// Whom it meets, of those who are there.
    pub pick: u64,
    pub span_ms: u64,
}

/// What is done at once, and how long nothing is done then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub faults: Vec<Fault>,
    pub rest_ms: u64,
}

/// The endless plan of a seed: every kind comes once in a round, alone or with another.
#[derive(Debug, Clone)]
pub struct Plan {
    random: Random,
    kinds: Vec<Kind>,
    pairs: bool,
    round: Vec<Kind>,
}

impl Plan {
    /// The plan of a seed; without `pairs` each fault comes alone.
    pub fn new(seed: u64, kinds: &[Kind], pairs: bool) -> Self {
        Self { random: Random::new(seed), kinds: kinds.to_owned(), pairs, round: Vec::new() }
    }

    fn draw(&mut self) -> Option<Fault> {
        if self.round.is_empty() {
            self.round.clone_from(&self.kinds);
        }
        let kind = *self.random.one_of(&self.round)?;
        self.round.retain(|other| *other != kind);
        let span_ms = *self.random.one_of(kind.spans())?;
        Some(Fault { kind, pick: self.random.next(), span_ms })
    }

    /// The next step; `None` if there is nothing to do.
    pub fn next_step(&mut self) -> Option<Step> {
        let mut faults = vec![self.draw()?];
        if self.pairs && self.random.between(0, 1) == 1 {
            let second = self.draw()?;
            if second.kind.is_of_store() && faults[0].kind.is_of_store() {
                self.round.push(second.kind);
            } else {
                faults.push(second);
            }
        }
        Some(Step { faults, rest_ms: self.random.between(300, 2_500) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed_and_names_every_kind() {
        let steps = |seed| {
            let mut plan = Plan::new(seed, Kind::ALL, true);
            (0..60).filter_map(|_| plan.next_step()).collect::<Vec<Step>>()
        };
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
        let all: Vec<Fault> = steps(7).into_iter().flat_map(|step| step.faults).collect();
        for kind in Kind::ALL {
            assert!(all.iter().any(|fault| fault.kind == *kind), "{kind} never comes");
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
        let pairs = steps(7).into_iter().filter(|step| step.faults.len() == 2);
        assert!(pairs.clone().count() > 10);
        assert!(pairs.clone().all(|step| !step.faults.iter().all(|f| f.kind.is_of_store())));
        assert!(Plan::new(1, &[], true).next_step().is_none());
    }
}
