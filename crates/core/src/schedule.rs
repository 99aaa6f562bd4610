//! When a DAG runs by itself: slots of cron expressions and intervals, catch-up, data intervals.
//!
//! A *slot* is an instant at which the rule is due. Each slot has exactly one UTC identity, so a
//! repeated local hour never makes two slots of one name, and slots are strictly increasing.
//!
//! A slot belongs to a DAG if `start_date <= logical_date <= end_date`. With `timetable: trigger`
//! the logical date is the slot, with `data_interval` the slot before it; in both,
//! `[interval_start, interval_end)` is the time from the previous slot to this one, so intervals
//! tile time without a gap or an overlap (the first interval may begin before `start_date`).
//!
//! Catch-up is not decided here: the scheduler asks for all due slots or for the newest one.

use crate::asset::Condition;

mod calendar;
mod cron;
mod policy;
mod range;
mod zone;

pub use calendar::{Calendar, slots_after};
pub use cron::{Cron, CronError};
pub use policy::{Overlap, SlotPolicy};
pub use range::read_range;
pub use zone::Zone;

use crate::time::{Span, Timestamp};

/// What `schedule`, `timezone`, `timetable`, `start_date`, `end_date` and `catchup` say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    pub schedule: Schedule,
    /// An IANA name, checked.
    pub timezone: String,
    pub timetable: Timetable,
    pub start_date: Option<Timestamp>,
    pub end_date: Option<Timestamp>,
    pub catchup: Catchup,
}

impl Timing {
    /// A DAG that runs only when somebody triggers it: what a file without `schedule` says.
    pub fn manual() -> Self {
        Self {
            schedule: Schedule::Manual,
            timezone: "UTC".into(),
            timetable: Timetable::Trigger,
            start_date: None,
            end_date: None,
            catchup: Catchup::Newest,
        }
    }
}

/// The rule that makes slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Only when somebody triggers it.
    Manual,
    /// One or more cron expressions (`@daily` and its like as written); their slots are merged.
    Cron(Vec<String>),
    /// A fixed interval, anchored at `start_date` or else at 1970.
    Every(Span),
    /// Once.
    At(Timestamp),
    /// Whenever new events of assets meet the condition.
    Assets(Condition),
}

impl Schedule {
    /// Whether it is due at instants.
    pub const fn has_slots(&self) -> bool {
        !matches!(self, Self::Manual | Self::Assets(_))
    }

    /// The condition over assets, if it is one.
    pub const fn assets(&self) -> Option<&Condition> {
        match self {
            Self::Assets(condition) => Some(condition),
            Self::Manual | Self::Cron(_) | Self::Every(_) | Self::At(_) => None,
        }
    }
}

/// What the logical date of a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timetable {
    /// The slot itself.
    Trigger,
    /// The start of the data interval that ends at the slot.
    DataInterval,
}

/// What happens to slots that were due before anybody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catchup {
    /// Every slot since `start_date`.
    All,
    /// The newest due slot only.
    Newest,
    /// None; from the next slot on.
    Next,
}

/// One instant at which a DAG is due, and the interval of data that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub due_at: Timestamp,
    pub logical_date: Timestamp,
    pub interval_start: Timestamp,
    pub interval_end: Timestamp,
}

/// A `Timing` that no calendar can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error(transparent)]
    Cron(#[from] CronError),
    #[error("unknown time zone `{0}`")]
    UnknownZone(String),
    #[error("an interval of `{0}` is too short; the shortest is 1s")]
    TooShort(Span),
}
