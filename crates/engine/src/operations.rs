//! What people and workers ask for: each one transaction, decided by the core, applied by
//! compare-and-set, with its lines in the transition log.

pub mod answer;
pub mod assets;
pub mod attempt_calls;
pub mod backfill;
pub mod beat;
pub mod callbacks;
pub mod claim;
pub mod clear;
pub mod confirm_dead;
pub mod dag_files;
pub mod held;
pub mod inspect;
pub mod logs;
pub mod mark;
pub(crate) mod owner;
pub mod pools;
pub(crate) mod ramp;
pub mod register;
pub mod report;
pub mod run_control;
pub mod start;
pub mod stop;
pub mod take_over;
pub mod trigger;
pub mod workers;

use crate::error::{EngineError, Refusal};
use fencepost_store::Tx;
use fencepost_store::query::run::{self, Run};

/// The answer to a statement about one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    Refused(Refused, String),
}

/// Why a statement about an attempt is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Superseded,
    Fenced,
    Cancelled,
    NotRunning,
    RunningElsewhere,
}

impl Refused {
    /// The word of the API and of the transition log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Fenced => "fenced",
            Self::Cancelled => "cancelled",
            Self::NotRunning => "not_running",
            Self::RunningElsewhere => "running_elsewhere",
        }
    }
}

/// The run of that name, or the refusal that says which part is unknown.
pub async fn find_run(tx: &Tx, dag_id: &str, run_id: &str) -> Result<Run, EngineError> {
    if let Some(found) = run::get(tx, dag_id, run_id).await? {
        return Ok(found);
    }
    let known = fencepost_store::query::dag::get(tx, dag_id).await?.is_some();
    Err(if known {
        Refusal::NoRun { dag_id: dag_id.into(), run_id: run_id.into() }.into()
    } else {
        Refusal::NoDag(dag_id.into()).into()
    })
}
