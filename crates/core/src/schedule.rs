//! When a DAG runs by itself: slots of cron expressions and intervals, catch-up, data intervals.

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

/// The rule that makes slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Only when somebody triggers it.
    Manual,
    /// One or more cron expressions (`@daily` and its like as written); their slots are merged.
    Cron(Vec<String>),
    /// A fixed interval.
    Every(Span),
    /// Once.
    At(Timestamp),
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
