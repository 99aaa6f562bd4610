//! What a deferred task instance waits for, and what an end of that waiting means.
//!
//! Data flow: the `wait` of a task (its templates rendered when it is queued) or the file that a
//! process leaves with exit code 100 is read by [`Waiting::read`]; the transaction that defers the
//! instance writes it as a row, the *trigger*, under the token of the attempt that it ends. Then
//!
//! - a timer falls due (the wait's own instant, or the deadline of the whole wait): fired in pages
//!   by whoever runs the pass, no owner needed;
//! - a condition that has to be looked at (`file`, `http`, `sql`, another run) is owned by one triggerer,
//!   which looks every `poke_interval` and writes down what it saw ([`Look`], [`next_look`]);
//! - a person answers (`approval`).
//!
//! Each of these is one [`How`], accepted once by a compare-and-set on (trigger, instance
//! `deferred`, token) in the store; [`end`] says where it leads. A wait of a `wait:` task is its
//! result; a process is resumed in the same try, and told what happened.
//!
//! Absent on purpose: looking (files, sockets, the store), and retries: a wait that cannot be looked at
//! is looked at again until its `timeout`.

mod local;
mod read;

pub use read::{KEYS, WaitError, render};

use crate::lifecycle::TiEvent;
use crate::time::{Span, Timestamp};
use serde_json::{Map, Value, json};

/// How often a condition is looked at where nothing is said.
pub const POKE_INTERVAL: Span = Span::from_secs(60);
/// The shortest `poke_interval`.
pub const POKE_SHORTEST: Span = Span::from_secs(1);
/// After looks that failed the next ones come ever later, up to so many intervals.
const BACKOFF_MOST: u32 = 8;

/// A wait with its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub wait: Wait,
    pub poke_interval: Span,
    /// From the first deferral of the try.
    pub timeout: Option<Span>,
    /// Too late or in vain: skipped instead of failed.
    pub soft_fail: bool,
    /// What the process wants back when it resumes.
    pub context: Value,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// An instant: also what `time` and `interval` become.
    Until(Timestamp),
    /// A file or directory on the triggerer's machine.
    File(String),
    Http(Http),
    Sql(Sql),
    External(External),
    /// An event of an asset at or after an instant.
    Asset {
        name: String,
        since: Timestamp,
    },
    Approval(Approval),
}

/// A request that must be answered in a certain way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Status codes that are awaited.
    pub status: Vec<u16>,
    /// JSON pointers into the answer and the value that must stand there.
    pub json: Vec<(String, Value)>,
}

/// A question to a database whose answer must be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    pub query: String,
    /// The name of a connection.
    pub conn: String,
}

/// Another run, or a task of it, that must have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    pub dag_id: String,
    /// `None`: the whole run.
    pub task_id: Option<String>,
    pub which: Which,
    pub allowed_states: Vec<String>,
    pub failed_states: Vec<String>,
}

/// Which run of the other DAG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    RunId(String),
    LogicalDate(Timestamp),
}

/// A person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub subject: String,
    pub body: String,
    /// A rejection fails the task instead of skipping it.
    pub fail_on_reject: bool,
}

/// What a wait is read against: where and when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begins {
    pub now: Timestamp,
    /// Of the DAG: what `time` is local to.
    pub timezone: String,
    /// Of the run: what an external run is looked up by if nothing else is said.
    pub logical_date: Option<Timestamp>,
}

impl Wait {
    /// A word for tables.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Until(_) => "timer",
            Self::File(_) => "file",
            Self::Http(_) => "http",
            Self::Sql(_) => "sql",
            Self::External(External { task_id: Some(_), .. }) => "external_task",
            Self::External(_) => "external_run",
            Self::Asset { .. } => "asset",
            Self::Approval(_) => "approval",
        }
    }

    /// Whether somebody has to look at it again and again.
    pub const fn is_looked_at(&self) -> bool {
        match self {
            Self::File(_)
            | Self::Http(_)
            | Self::Sql(_)
            | Self::External(_)
            | Self::Asset { .. } => true,
            Self::Until(_) | Self::Approval(_) => false,
        }
    }

    /// In words, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Until(at) => format!("waits until {at}"),
            Self::File(path) => format!("waits for the file {path}"),
            Self::Http(http) => format!("waits for {} to answer {:?}", http.url, http.status),
            Self::Sql(sql) => {
                format!("waits for the answer of {} to be true: {}", sql.conn, sql.query)
            }
            Self::External(other) => {
                let run = match &other.which {
                    Which::RunId(id) => id.clone(),
                    Which::LogicalDate(at) => format!("the run of {at}"),
                };
                let task = other.task_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
                let states = other.allowed_states.join(" or ");
                format!("waits for {} {run}{task} to be {states}", other.dag_id)
            }
            Self::Asset { name, since } => format!("waits for an event of {name} since {since}"),
            Self::Approval(approval) => format!("waits for a person: {}", approval.subject),
        }
    }
}

impl Waiting {
    /// When it is over whatever becomes of it: `since` is when the try was deferred first.
    pub fn deadline(&self, since: Timestamp) -> Option<Timestamp> {
        self.timeout.map(|timeout| since.plus(timeout))
    }

    /// The first instant at which a timer of it falls due.
    pub fn due_at(&self, deadline: Option<Timestamp>) -> Option<Timestamp> {
        match self.wait {
            Wait::Until(at) => Some(deadline.map_or(at, |deadline| deadline.min(at))),
            Wait::File(_)
            | Wait::Http(_)
            | Wait::Sql(_)
            | Wait::External(_)
            | Wait::Asset { .. }
            | Wait::Approval(_) => deadline,
        }
    }

    /// How a timer that has fallen due ends it: by its own instant if that has come, else too late.
    pub fn ring(&self, now: Timestamp) -> How {
        match self.wait {
            Wait::Until(at) if at <= now => How::Met(json!({ "until": at.to_string() })),
            Wait::Until(_)
            | Wait::File(_)
            | Wait::Http(_)
            | Wait::Sql(_)
            | Wait::External(_)
            | Wait::Asset { .. }
            | Wait::Approval(_) => How::TimedOut,
        }
    }
}

/// What a look at a condition saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    NotYet,
    Met(Value),
    /// It can never be met any more.
    Failed(String),
    /// It could not be looked at.
    Trouble(String),
}

/// How a wait ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    Met(Value),
    Failed(String),
    TimedOut,
    Rejected {
        by: String,
        reason: Option<String>,
        fails: bool,
    },
    /// A `wait:` whose templates cannot be rendered, or that says nothing sensible then.
    Unusable(String),
}

impl How {
    /// The word in tables and events.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Met(_) => "event",
            Self::Failed(_) => "wait_failed",
            Self::TimedOut => "wait_timeout",
            Self::Rejected { .. } => "rejected",
            Self::Unusable(_) => "template_error",
        }
    }

    /// What a resumed process finds in its event file.
    pub fn event(&self, kind: &str, context: &Value, now: Timestamp) -> Value {
        let mut out = Map::new();
        out.insert("kind".into(), json!(kind));
        out.insert("at".into(), json!(now.to_string()));
        let (status, detail) = match self {
            Self::Met(data) => ("success", data.clone()),
            Self::Failed(why) | Self::Unusable(why) => ("failed", json!(why)),
            Self::TimedOut => ("timeout", Value::Null),
            Self::Rejected { by, reason, .. } => {
                ("rejected", json!({ "approved": false, "by": by, "reason": reason }))
            }
        };
        out.insert("status".into(), json!(status));
        out.insert("data".into(), detail);
        if !context.is_null() {
            out.insert("context".into(), context.clone());
        }
        Value::Object(out)
    }
}

/// Where the end of a wait leads. `resumes`: a process waits for it, and is told; else it is the
/// instance's result. A wait that took too long fails for good: its timeout was the budget.
pub const fn end(how: &How, resumes: bool, soft_fail: bool) -> TiEvent {
    let in_vain = if soft_fail { TiEvent::EventSkip } else { TiEvent::EventFail };
    match how {
        How::Met(_) | How::Failed(_) | How::Rejected { .. } if resumes => TiEvent::Resume,
        How::Met(_) => TiEvent::EventSuccess,
        How::Rejected { fails: false, .. } => TiEvent::EventSkip,
        How::Rejected { .. } | How::Unusable(_) => TiEvent::EventFail,
        How::Failed(_) | How::TimedOut => in_vain,
    }
}

/// What a trigger remembers of its looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    pub looks: u32,
    /// Failed looks in a row.
    pub troubles: u32,
    /// What the last one said.
    pub last: String,
}

impl Memory {
    /// As stored.
    pub fn to_json(&self) -> Value {
        json!({ "looks": self.looks, "troubles": self.troubles, "last": self.last })
    }

    /// As it was stored; what cannot be read is forgotten.
    pub fn from_json(stored: &Value) -> Self {
        let number = |name: &str| {
            stored.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok())
        };
        Self {
            looks: number("looks").unwrap_or(0),
            troubles: number("troubles").unwrap_or(0),
            last: stored.get("last").and_then(Value::as_str).unwrap_or_default().into(),
        }
    }

    /// After another look that did not end the wait.
    #[must_use]
    pub fn after(&self, look: &Look) -> Self {
        let (troubles, last) = match look {
            Look::Trouble(why) => (self.troubles.saturating_add(1), why.clone()),
            Look::NotYet | Look::Met(_) | Look::Failed(_) => (0, "not yet".into()),
        };
        Self { looks: self.looks.saturating_add(1), troubles, last }
    }
}

/// When to look again: after the interval, later and later while looks fail, spread by up to a
/// tenth so that many that began together do not look together for ever.
pub fn next_look(now: Timestamp, interval: Span, memory: &Memory, random: u64) -> Timestamp {
    let factor = 1_u32 << memory.troubles.min(BACKOFF_MOST.ilog2());
    let wait = interval.max(POKE_SHORTEST).times(factor.into());
    let tenth = wait.as_micros() / 10;
    let spread = i64::try_from(random % u64::try_from(tenth.max(1)).unwrap_or(1)).unwrap_or(0);
    now.plus(wait).plus(Span::from_micros(spread))
}
