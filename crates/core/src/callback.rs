//! Callbacks: what is told to the outside after a change of state, and to whom.
//!
//! Which change calls whom is decided here, from the same words as the transition log, so a callback can
//! neither say something else than the state (a failure while retries remain) nor be forgotten by one of
//! the places that change states. What a callback says is kept as the file wrote it, and read again
//! ([`Callback::read`]) once its templates are rendered.

mod deadline;
mod read;

pub use deadline::{Deadline, When};
pub use read::{
    CallbackError, DEADLINE_KEYS, KINDS, check_deadline, keys_of, kind_of, read_deadline,
};

use crate::retry::RetryPolicy;
use crate::time::Span;
use serde_json::Value;
use std::collections::BTreeMap;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occasion {
    Success,
    Failure,
    /// Another attempt follows, of the next try or in a lost one's place.
    Retry,
    /// An attempt was lost.
    Lost,
    Skipped,
    /// A run has not finished by its deadline.
    Deadline,
}

impl Occasion {
    /// Every occasion.
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Failure, Self::Retry, Self::Lost, Self::Skipped, Self::Deadline];

    /// Its name in the store and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Retry => "retry",
            Self::Lost => "lost",
            Self::Skipped => "skipped",
            Self::Deadline => "deadline",
        }
    }

    /// The occasion of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|occasion| occasion.as_str() == name)
    }

    /// Its key in the DAG file.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Success => "on_success_callback",
            Self::Failure => "on_failure_callback",
            Self::Retry => "on_retry_callback",
            Self::Lost => "on_lost_callback",
            Self::Skipped => "on_skipped_callback",
            Self::Deadline => "deadline",
        }
    }

    /// Whether a DAG's callbacks for it are about its runs; about its tasks otherwise.
    pub const fn is_of_runs(self) -> bool {
        matches!(self, Self::Success | Self::Failure | Self::Deadline)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Success => 1,
            Self::Failure => 2,
            Self::Retry => 4,
            Self::Lost => 8,
            Self::Skipped => 16,
            Self::Deadline => 32,
        }
    }
}

/// The occasions on which somebody is called: kept in the row of a run or an instance, so that the
/// transaction that changes its state needs to read nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occasions(u8);

impl Occasions {
    /// As stored.
    pub fn from_bits(bits: i64) -> Self {
        Self(u8::try_from(bits & 63).unwrap_or(0))
    }

    /// To be stored.
    pub fn bits(self) -> i64 {
        self.0.into()
    }

    /// Whether it is one of them.
    pub const fn has(self, occasion: Occasion) -> bool {
        self.0 & occasion.bit() != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Occasion> for Occasions {
    fn from_iter<I: IntoIterator<Item = Occasion>>(occasions: I) -> Self {
        Self(occasions.into_iter().fold(0, |bits, occasion| bits | occasion.bit()))
    }
}

/// What is called on which occasion, each callback as the file wrote it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Callbacks(pub BTreeMap<Occasion, Vec<Value>>);

impl Callbacks {
    /// The callbacks of an occasion, in the order of the file.
    pub fn of(&self, occasion: Occasion) -> &[Value] {
        self.0.get(&occasion).map_or(&[], Vec::as_slice)
    }

    /// The occasions that have some.
    pub fn occasions(&self) -> impl Iterator<Item = Occasion> {
        self.0.iter().filter(|(_, called)| !called.is_empty()).map(|(occasion, _)| *occasion)
    }
}

/// The occasions that a line of the transition log is: of an instance (`ti_state`, `attempt_lost`), or of
/// a run (`run_state`, `deadline_passed`). A lost attempt is one, and what is decided about it another.
pub fn raised(kind: &str, from: Option<&str>, to: Option<&str>) -> Vec<Occasion> {
    let by_state = || match to {
        Some("success") => Some(Occasion::Success),
        Some("failed") => Some(Occasion::Failure),
        Some("up_for_retry") => Some(Occasion::Retry),
        Some("skipped") => Some(Occasion::Skipped),
        _ => None,
    };
    let moves = from != to;
    match kind {
        "deadline_passed" => vec![Occasion::Deadline],
        "run_state" | "ti_state" if moves => by_state().into_iter().collect(),
        "attempt_lost" => {
            // One that is held was told of when it was; what is decided about it now is told alone.
            let lost = (from != Some("held")).then_some(Occasion::Lost);
            let decided = match to {
                Some("scheduled") => Some(Occasion::Retry),
                _ if moves => by_state(),
                _ => None,
            };
            lost.into_iter().chain(decided).collect()
        }
        _ => Vec::new(),
    }
}

/// Where something is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Url(String),
    /// The name of a connection.
    Connection(String),
}

/// A callback whose templates are rendered.
#[derive(Debug, Clone, PartialEq)]
pub enum Callback {
    Webhook {
        to: Address,
        method: String,
        headers: Vec<(String, String)>,
        /// `None`: what happened, as JSON.
        body: Option<Value>,
    },
    /// An incoming webhook as Slack has them.
    Slack {
        to: Address,
        text: String,
    },
    Email {
        to: Vec<String>,
        subject: Option<String>,
        body: Option<String>,
        conn: Option<String>,
    },
    TriggerDag {
        dag_id: String,
        conf: Value,
    },
    /// A command on a live worker.
    Run {
        script: String,
    },
}

impl Callback {
    /// Whose slowness must not hold up the others: a host, a connection, a service.
    pub fn target(&self) -> String {
        match self {
            Self::Webhook { to, .. } | Self::Slack { to, .. } => match to {
                Address::Url(url) => host_of(url),
                Address::Connection(name) => format!("conn:{name}"),
            },
            Self::Email { conn: Some(name), .. } => format!("conn:{name}"),
            Self::Email { .. } => "email".into(),
            Self::TriggerDag { .. } => "trigger_dag".into(),
            Self::Run { .. } => "run".into(),
        }
    }
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.to_ascii_lowercase()
}

/// How long it is tried to deliver a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After so many attempts nobody tries any more.
    pub tries: u32,
    /// Nor when it is older than this.
    pub age: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Self { tries: 20, age: Span::from_hours(24) }
    }
}

impl Patience {
    /// The wait before the next attempt after `failed` ones; `None`: it is given up.
    pub fn next(&self, failed: u32, age: Span, random: u64) -> Option<Span> {
        if failed >= self.tries {
            return None;
        }
        let policy = RetryPolicy {
            retries: self.tries,
            retry_delay: Span::from_secs(5),
            exponential_backoff: true,
            max_retry_delay: Some(Span::from_hours(1)),
        };
        let delay = policy.delay(failed, random);
        (age.as_micros().saturating_add(delay.as_micros()) <= self.age.as_micros()).then_some(delay)
    }
}
