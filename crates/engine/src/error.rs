//! Errors of passes and operations.

use fencepost_store::{StoreError, StoreErrorKind};

/// What failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no DAG version with the key {0}")]
    NoVersion(i64),
    #[error("the DAG version with the key {version_pk} cannot be read: {why}")]
    BadVersion { version_pk: i64, why: String },
    /// The request cannot be carried out; the text says why and what to do.
    #[error("{0}")]
    Refused(Refusal),
}

impl EngineError {
    /// Whether the job that acts may not write any more.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Store(error) if error.kind == StoreErrorKind::Fenced)
    }
    /// Whether tokens wait for a new epoch.
    pub fn is_epoch_over(&self) -> bool {
        matches!(self, Self::Store(error) if error.kind == StoreErrorKind::EpochOver)
    }
    /// What is wrong with one DAG version: it stops only itself (I22). Any other error is handed on.
    pub fn of_one_version(self) -> Result<String, Self> {
        match self {
            Self::BadVersion { .. } | Self::NoVersion(_) => Ok(self.to_string()),
            Self::Store(_) | Self::Refused(_) => Err(self),
        }
    }
}

/// Why a person's request is refused. Each maps to one problem code of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no DAG `{0}`")]
    NoDag(String),
    #[error("DAG `{dag_id}` has no run `{run_id}`")]
    NoRun { dag_id: String, run_id: String },
    #[error("run `{run_id}` has no task `{task_id}`")]
    NoTask { run_id: String, task_id: String },
    #[error("there is no attempt `{0}`")]
    NoAttempt(String),
    #[error("DAG `{0}` is inactive: its file is gone")]
    Inactive(String),
    #[error("run `{run_id}` of `{dag_id}` exists already")]
    RunExists { dag_id: String, run_id: String },
    #[error("{0}")]
    Invalid(String),
    #[error("{what} is {state} already")]
    AlreadyTerminal { what: String, state: String },
    #[error("{what} is {state}: cancel it first")]
    StillActive { what: String, state: String },
    #[error("home {home_id} has had registration {last} since: number {presented} is over")]
    StaleHome { home_id: String, presented: i64, last: i64 },
    #[error("{worker} is {state}: {mend}")]
    WorkerActive { worker: String, state: String, mend: &'static str },
    #[error("there is no worker `{0}`")]
    NoWorker(String),
    #[error("there is no backfill {0}")]
    NoBackfill(i64),
    #[error("there is no asset `{0}`: no DAG names it")]
    NoAsset(String),
    #[error("a backfill of `{0}` is under way: wait for it, or cancel it")]
    BackfillUnderWay(String),
    #[error("there is no callback `{0}`")]
    NoCallback(String),
    #[error("there is no pool `{0}`")]
    NoPool(String),
    #[error("pool `{0}` is in use, or is the default pool")]
    PoolInUse(String),
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
