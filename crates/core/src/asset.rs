//! Assets: what tasks produce (`outlets`), and what a DAG waits for before it runs.
//!
//! An asset is a name, often a URI. A task that succeeds emits an *event* of each of its outlets; the store
//! queues that event for every DAG whose schedule names the asset, and a run of such a DAG is made once
//! the assets with queued events meet its [`Condition`]. A run takes all the events that are queued for its DAG.

use std::collections::BTreeSet;
use std::fmt;

/// Longest name in characters (Airflow's).
pub const NAME_MAX: usize = 1_500;

/// The output of a task that its events carry.
pub const EXTRA_OUTPUT: &str = "asset_extra";
/// Largest extra of an event, in bytes of JSON.
pub const EXTRA_MAX: usize = 16 << 10;

/// Which assets must have new events: `[a, b]`, `{all: [...]}`, `{any: [...]}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Asset(String),
    /// Airflow's `&` (`AssetAll`).
    All(Vec<Self>),
    /// Airflow's `|` (`AssetAny`).
    Any(Vec<Self>),
}

impl Condition {
    /// Whether it holds, given the assets with queued events.
    pub fn is_met(&self, queued: &BTreeSet<String>) -> bool {
        match self {
            Self::Asset(name) => queued.contains(name),
            Self::All(parts) => parts.iter().all(|part| part.is_met(queued)),
            Self::Any(parts) => parts.iter().any(|part| part.is_met(queued)),
        }
    }

    /// What it still waits for; `None`: it holds.
    pub fn missing(&self, queued: &BTreeSet<String>) -> Option<Self> {
        if self.is_met(queued) {
            return None;
        }
        let missing = |parts: &[Self]| -> Vec<Self> {
            parts.iter().filter_map(|part| part.missing(queued)).collect()
        };
        Some(match self {
            Self::Asset(_) => self.clone(),
            Self::All(parts) => alone(missing(parts), Self::All),
            Self::Any(parts) => alone(missing(parts), Self::Any),
        })
    }

    /// Every asset that it names.
    pub fn assets(&self) -> BTreeSet<&str> {
        match self {
            Self::Asset(name) => BTreeSet::from([name.as_str()]),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().flat_map(|part| part.assets()).collect()
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, is_inner: bool) -> fmt::Result {
        let (parts, sign) = match self {
            Self::Asset(name) => return f.write_str(name),
            Self::All(parts) => (parts, " & "),
            Self::Any(parts) => (parts, " | "),
        };
        let has_brackets = is_inner && parts.len() > 1;
        f.write_str(if has_brackets { "(" } else { "" })?;
        for (place, part) in parts.iter().enumerate() {
            f.write_str(if place > 0 { sign } else { "" })?;
            part.write(f, parts.len() > 1)?;
        }
        f.write_str(if has_brackets { ")" } else { "" })
    }
}

/// One part stands for itself.
fn alone(mut parts: Vec<Condition>, of: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            of(parts)
        }
    }
}

/// As Airflow writes it: `orders & (rates | manual_rates)`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

/// A text that names no asset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssetNameError {
    #[error("an asset's name is empty")]
    Empty,
    #[error("an asset's name has at most {NAME_MAX} characters")]
    TooLong,
    #[error("an asset's name neither begins nor ends with a space, and has no control characters")]
    Odd,
}

/// Whether a text can name an asset.
pub fn check_name(name: &str) -> Result<(), AssetNameError> {
    if name.trim().is_empty() {
        return Err(AssetNameError::Empty);
    }
    if name.chars().count() > NAME_MAX {
        return Err(AssetNameError::TooLong);
    }
    if name.trim() != name || name.chars().any(char::is_control) {
        return Err(AssetNameError::Odd);
    }
    Ok(())
}
