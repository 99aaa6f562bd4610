//! Runs, newest first, with the counts of their task instances.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::state::{RunState, TiState};
use fencepost_core::time::Timestamp;

/// Which runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// See [`super::words`].
    pub states: String,
    /// Empty: any.
    pub run_type: String,
    /// The beginning of their ids.
    pub prefix: String,
    /// Logical dates from the first instant on and before the second.
    pub dates: Option<(Timestamp, Timestamp)>,
}

/// A place in a list: (due or triggered at, key).
pub type Place = (Timestamp, i64);

const RUN_PAGE_OF_DAG: Stmt = Stmt::same(
    "run_page_of_dag",
    "SELECT run_pk, run_after FROM run
     WHERE dag_id = $1 AND (run_after, run_pk) < ($2, $3)
       AND ($4 = '' OR $4 LIKE '%,' || state || ',%')
       AND ($5 = '' OR run_type = $5)
       AND ($6 = '' OR substr(run_id, 1, length($6)) = $6)
       AND ($7 = CAST(0 AS BIGINT) OR (logical_date >= $8 AND logical_date < $9))
     ORDER BY run_after DESC, run_pk DESC LIMIT $10",
);

/// Keys of a DAG's runs, the last due first, before a place in that order.
pub async fn page_of_dag(
    tx: &Tx,
    dag_id: &str,
    before: Place,
    filter: &RunFilter,
    limit: u32,
) -> Result<Vec<Place>, StoreError> {
    let (from, to) = filter.dates.unwrap_or_default();
    let values = values![
        dag_id,
        before.0,
        before.1,
        &filter.states,
        &filter.run_type,
        &filter.prefix,
        filter.dates.is_some(),
        from,
        to,
        limit,
    ];
    tx.query(&RUN_PAGE_OF_DAG, values).await?.into_iter().map(place).collect()
}

const RUN_PAGE: Stmt = Stmt::same(
    "run_page",
    "SELECT run_pk, run_after FROM run
     WHERE run_pk < $1
       AND ($2 = '' OR $2 LIKE '%,' || state || ',%')
       AND ($3 = '' OR run_type = $3)
       AND ($4 = '' OR substr(run_id, 1, length($4)) = $4)
       AND ($5 = CAST(0 AS BIGINT) OR (logical_date >= $6 AND logical_date < $7))
     ORDER BY run_pk DESC LIMIT $8",
);

/// Keys of runs of all DAGs, the last made first, before a key.
pub async fn page(
    tx: &Tx,
    before: i64,
    filter: &RunFilter,
    limit: u32,
) -> Result<Vec<Place>, StoreError> {
    let (from, to) = filter.dates.unwrap_or_default();
    let values = values![
        before,
        &filter.states,
        &filter.run_type,
        &filter.prefix,
        filter.dates.is_some(),
        from,
        to,
        limit,
    ];
    tx.query(&RUN_PAGE, values).await?.into_iter().map(place).collect()
}

fn place(row: Row) -> Result<Place, StoreError> {
    let mut c = row.columns("run");
    let run_pk = c.int()?;
    Ok((c.time()?, run_pk))
}

/// How many instances of a run are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCount {
    pub run_pk: i64,
    pub state: TiState,
    pub count: u32,
}

const RUN_TASK_COUNTS: Stmt = Stmt::same(
    "run_task_counts",
    "SELECT run_pk, state, COUNT(*) FROM task_instance WHERE run_pk = $1
     GROUP BY run_pk, state ORDER BY state LIMIT 20",
);

/// The instances of some runs, by state.
pub async fn task_counts(tx: &Tx, run_pks: &[i64]) -> Result<Vec<TaskCount>, StoreError> {
    let sets = run_pks.iter().map(|pk| values![*pk]).collect();
    let rows = tx.query_many(&RUN_TASK_COUNTS, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            let (run_pk, state) = (c.int()?, c.named(TiState::parse)?);
            Ok(TaskCount { run_pk, state, count: c.number()? })
        })
        .collect()
}

const RUN_LAST_EVENT: Stmt = Stmt::same(
    "run_last_event",
    "SELECT run_pk, seq FROM event WHERE run_pk = $1 ORDER BY seq DESC LIMIT 1",
);

/// The highest event number of some runs: (run, number).
pub async fn last_events(tx: &Tx, run_pks: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
    let sets = run_pks.iter().map(|pk| values![*pk]).collect();
    let rows = tx.query_many(&RUN_LAST_EVENT, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("event");
            Ok((c.int()?, c.int()?))
        })
        .collect()
}

/// A run as one dot of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dot {
    pub dag_id: String,
    pub run_id: String,
    pub state: RunState,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

const RUN_DOTS: Stmt = Stmt::same(
    "run_dots",
    "SELECT dag_id, run_id, state, started_at, ended_at FROM run
     WHERE dag_id = $1 ORDER BY run_after DESC, run_pk DESC LIMIT $2",
);

/// The last runs of some DAGs, newest first, up to `each` of each.
pub async fn dots(tx: &Tx, dag_ids: &[&str], each: u32) -> Result<Vec<Dot>, StoreError> {
    let sets = dag_ids.iter().map(|dag_id| values![*dag_id, each]).collect();
    let rows = tx.query_many(&RUN_DOTS, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("run");
            Ok(Dot {
                dag_id: c.text()?,
                run_id: c.text()?,
                state: c.named(RunState::parse)?,
                started_at: c.opt_time()?,
                ended_at: c.opt_time()?,
            })
        })
        .collect()
}

const RUN_COUNT_ACTIVE: Stmt = Stmt::same(
    "run_count_active",
    "SELECT (SELECT COUNT(*) FROM run WHERE dag_id = $1 AND state = 'queued')
          + (SELECT COUNT(*) FROM run WHERE dag_id = $1 AND state = 'running')",
);

/// Runs of a DAG that have not ended.
pub async fn count_active(tx: &Tx, dag_id: &str) -> Result<u32, StoreError> {
    let row = tx.query_opt(&RUN_COUNT_ACTIVE, values![dag_id]).await?;
    row.unwrap_or(Row(vec![])).columns("run").number()
}

pub(in crate::query) const STATEMENTS: &[Stmt] =
    &[RUN_PAGE_OF_DAG, RUN_PAGE, RUN_TASK_COUNTS, RUN_LAST_EVENT, RUN_DOTS, RUN_COUNT_ACTIVE];
