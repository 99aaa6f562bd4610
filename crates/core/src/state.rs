//! The states of runs, task instances, attempts and jobs, and their names.
//!
//! One name per state, the same in the store, the API and the pages. Which change is legal is in
//! [`crate::lifecycle`].

use core::fmt;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The name in the store, the API and the pages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
            /// The value of that name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
    };
}

named! {
    /// Where a task instance stands.
    TiState {
        /// Its upstreams are not done.
        None = "none",
        /// It may be queued as soon as the limits allow.
        Scheduled = "scheduled",
        /// An attempt exists and waits for a worker, or for its start.
        Queued = "queued",
        Running = "running",
        /// A trigger watches for it; no process, no slot.
        Deferred = "deferred",
        /// A timer brings it back.
        UpForRetry = "up_for_retry",
        /// Cleared while it ran: its processes are being ended.
        Restarting = "restarting",
        /// Nothing runs until a person or evidence decides.
        Held = "held",
        Success = "success",
        Failed = "failed",
        Skipped = "skipped",
        UpstreamFailed = "upstream_failed",
        Removed = "removed",
    }
}

impl TiState {
    /// Whether nothing more happens to it by itself.
    pub const fn is_finished(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Failed | Self::Skipped | Self::UpstreamFailed | Self::Removed
        )
    }
    /// Whether an attempt of it may have processes or a place in a queue.
    pub const fn has_attempt(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Restarting)
    }
}

named! {
    /// Where a DAG run stands.
    RunState {
        Queued = "queued",
        Running = "running",
        Success = "success",
        Failed = "failed",
        Cancelled = "cancelled",
        /// The slot passed its `start_deadline`: it has no task instances.
        Missed = "missed",
    }
}

impl RunState {
    /// Whether the run is over.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::Cancelled | Self::Missed)
    }
}

named! {
    /// Where an attempt stands; an ended one has an [`Outcome`].
    AttemptState {
        Queued = "queued",
        Claimed = "claimed",
        Running = "running",
        /// A stop was asked for; its processes may still run.
        Stopping = "stopping",
        /// Lost, still the current attempt: it waits for evidence or a person.
        LostOpen = "lost_open",
        Ended = "ended",
    }
}

named! {
    /// How an attempt ended.
    Outcome {
        Success = "success",
        Failed = "failed",
        Skipped = "skipped",
        Deferred = "deferred",
        Lost = "lost",
        Fenced = "fenced",
        Cancelled = "cancelled",
        Cleared = "cleared",
        /// Proved not to have started.
        NeverRan = "never_ran",
        /// Handed back by a worker that drains.
        Released = "released",
    }
}

named! {
    /// Where a process of Fencepost stands.
    JobState {
        Running = "running",
        Draining = "draining",
        Stopped = "stopped",
        Lost = "lost",
    }
}

named! {
    /// What a job does.
    JobKind {
        Scheduler = "scheduler",
        Worker = "worker",
        Server = "server",
        Triggerer = "triggerer",
    }
}

named! {
    /// Why a run exists.
    RunType {
        Scheduled = "scheduled",
        Manual = "manual",
        Backfill = "backfill",
        AssetTriggered = "asset_triggered",
    }
}

named! {
    /// Why an attempt was made.
    Why {
        First = "first",
        Retry = "retry",
        /// It replaces one that was lost, handed back or never started.
        Replaces = "replaces",
        Cleared = "cleared",
        Resumed = "resumed",
    }
}

named! {
    /// Which budget an attempt's end was charged to.
    CountedAs {
        None = "none",
        User = "user",
        Infra = "infra",
    }
}

named! {
    /// Why we stop what runs.
    StopReason {
        Cancel = "cancel",
        Clear = "clear",
        Mark = "mark",
        DagrunTimeout = "dagrun_timeout",
        FailFast = "fail_fast",
        Kill = "kill",
    }
}

named! {
    /// Where a backfill stands.
    BackfillState {
        /// Its slots are made into runs, and these run.
        Running = "running",
        /// It makes no more; what runs is being stopped.
        Cancelling = "cancelling",
        /// Every slot is done with.
        Completed = "completed",
        /// Nothing of it runs any more.
        Cancelled = "cancelled",
    }
}

named! {
    /// What a backfill does with a slot that has a run already.
    Reprocess {
        /// It stays as it is.
        None = "none",
        /// It runs again if it failed or was cancelled.
        Failed = "failed",
        /// It runs again if it is over.
        Completed = "completed",
    }
}

named! {
    /// What a backfill has done with a slot.
    SlotAction {
        Created = "created",
        Rerun = "rerun",
        /// A run is there, and `reprocess_behavior` leaves it.
        Kept = "kept",
        /// A run is there and not over: it is left alone.
        InFlight = "in_flight",
    }
}
