//! The places of a DAG's running runs (`max_active_runs`).

use super::{Run, decode};
use crate::{Row, Stmt, StoreError, Tx, values};

pub(super) const RUN_STARTABLE_DAGS: Stmt = Stmt::same(
    "run_startable_dags",
    "SELECT d.dag_id, d.max_active_runs,
            (SELECT COUNT(*) FROM run a WHERE a.dag_id = d.dag_id AND a.state = 'running'
                AND a.backfill_pk IS NULL)
     FROM dag d WHERE d.is_paused = 0 AND d.dag_id > $1
        AND EXISTS (SELECT 1 FROM run q WHERE q.dag_id = d.dag_id AND q.state = 'queued'
                       AND q.paused = 0 AND q.backfill_pk IS NULL)
     ORDER BY d.dag_id LIMIT $2",
);

/// A DAG with queued runs, and how many may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Startable {
    pub dag_id: String,
    pub max_active_runs: i64,
    pub active: i64,
}

pub(super) const RUN_ACTIVE_COUNT: Stmt = Stmt::same(
    "run_active_count",
    "SELECT COUNT(*) FROM run WHERE dag_id = $1 AND state = 'running'
        AND backfill_pk IS NULL",
);

/// How many runs are running that count in the limit of their DAG.
pub async fn count_active(tx: &Tx, dag_id: &str) -> Result<i64, StoreError> {
    let row = tx.query_opt(&RUN_ACTIVE_COUNT, values![dag_id]).await?;
    row.unwrap_or(Row(vec![])).columns("run").int()
}

/// DAGs with queued runs, by name.
pub async fn startable(tx: &Tx, after: &str, limit: u32) -> Result<Vec<Startable>, StoreError> {
    let rows = tx.query(&RUN_STARTABLE_DAGS, values![after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("dag");
            Ok(Startable { dag_id: c.text()?, max_active_runs: c.int()?, active: c.int()? })
        })
        .collect()
}

/// A running run `$run` in which nothing can run until the run before it does: it holds no place.
macro_rules! waits_for_past {
    ($run:literal) => {
        concat!(
            "(EXISTS (SELECT 1 FROM task_instance w WHERE w.recheck = 2 AND w.run_pk = ",
            $run,
            ".run_pk) AND NOT EXISTS (SELECT 1 FROM task_instance t WHERE t.run_pk = ",
            $run,
            ".run_pk AND (t.forward_due = 1 OR t.recheck = 1 OR t.state IN ('scheduled',
                'queued', 'running', 'deferred', 'up_for_retry', 'restarting', 'held'))))"
        )
    };
}

pub(super) const RUN_PLACES: Stmt = Stmt::same(
    "run_places",
    concat!(
        "SELECT d.max_active_runs,
                (SELECT COUNT(*) FROM run a WHERE a.dag_id = d.dag_id AND a.state = 'running'
                    AND a.backfill_pk IS NULL AND NOT ",
        waits_for_past!("a"),
        "),
                (SELECT COUNT(*) FROM run o WHERE o.run_pk = $2 AND o.backfill_pk IS NULL AND ",
        waits_for_past!("o"),
        ") FROM dag d WHERE d.dag_id = $1"
    ),
);

/// The places of a DAG's running runs, as a run of it sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub max_active_runs: i64,
    /// Running runs that do not only wait for the one before them.
    pub taken: i64,
    /// The run that asks only waits.
    pub own_waits: bool,
}

/// The places of a DAG, for one of its runs (0: for none).
pub async fn places(tx: &Tx, dag_id: &str, run_pk: i64) -> Result<Option<Places>, StoreError> {
    let Some(row) = tx.query_opt(&RUN_PLACES, values![dag_id, run_pk]).await? else {
        return Ok(None);
    };
    let mut c = row.columns("run");
    let (max_active_runs, taken, own_waits) = (c.int()?, c.int()?, c.flag()?);
    Ok(Some(Places { max_active_runs, taken, own_waits }))
}

pub(super) const RUN_OLDER_THAN_WAITING: Stmt = Stmt::same(
    "run_older_than_waiting",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND state = 'queued' AND paused = 0 AND made = 1
            AND backfill_pk IS NULL
            AND EXISTS (SELECT 1 FROM run n WHERE n.dag_id = $1 AND n.state = 'running'
                AND n.logical_date > run.logical_date AND ",
        waits_for_past!("n"),
        ") ORDER BY logical_date LIMIT 1"
    ),
)
.locking(" FOR UPDATE OF run SKIP LOCKED");

/// The oldest cleared run of a DAG that a newer, running one may be waiting for.
pub async fn older_than_waiting(tx: &Tx, dag_id: &str) -> Result<Option<Run>, StoreError> {
    tx.query_opt(&RUN_OLDER_THAN_WAITING, values![dag_id]).await?.map(decode).transpose()
}
