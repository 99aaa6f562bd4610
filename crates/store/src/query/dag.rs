//! DAGs, their versions, and the mistakes of files that could not be read.

mod present;

pub use present::{present_elsewhere, set_present};

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

/// A DAG's row.
#[derive(Debug, Clone, PartialEq)]
pub struct DagRow {
    pub dag_id: String,
    pub version: i64,
    pub version_pk: i64,
    pub is_paused: bool,
    pub is_active: bool,
    pub fileloc: String,
    pub owner: String,
    pub tags: serde_json::Value,
    pub description: String,
    /// The schedule as people read it.
    pub schedule: String,
    pub max_active_runs: i64,
    pub max_active_tasks: i64,
    pub slot_cursor: Option<Timestamp>,
    pub next_slot_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub paused_by: Option<String>,
}

macro_rules! columns {
    () => {
        "dag_id, version, version_pk, is_paused, is_active, fileloc, owner, tags, description, \
         schedule, max_active_runs, max_active_tasks, slot_cursor, next_slot_at, created_at, \
         updated_at, paused_by"
    };
}

fn decode(row: Row) -> Result<DagRow, StoreError> {
    let mut c: Columns = row.columns("dag");
    Ok(DagRow {
        dag_id: c.text()?,
        version: c.int()?,
        version_pk: c.int()?,
        is_paused: c.flag()?,
        is_active: c.flag()?,
        fileloc: c.text()?,
        owner: c.text()?,
        tags: c.json()?,
        description: c.text()?,
        schedule: c.text()?,
        max_active_runs: c.int()?,
        max_active_tasks: c.int()?,
        slot_cursor: c.opt_time()?,
        next_slot_at: c.opt_time()?,
        created_at: c.time()?,
        updated_at: c.time()?,
        paused_by: c.opt_text()?,
    })
}

const DAG_GET: Stmt =
    Stmt::same("dag_get", concat!("SELECT ", columns!(), " FROM dag WHERE dag_id = $1"));

/// The DAG of that name.
pub async fn get(tx: &Tx, dag_id: &str) -> Result<Option<DagRow>, StoreError> {
    tx.query_opt(&DAG_GET, values![dag_id]).await?.map(decode).transpose()
}

const DAG_LOCK: Stmt =
    Stmt::same("dag_lock", concat!("SELECT ", columns!(), " FROM dag WHERE dag_id = $1"))
        .locking(" FOR UPDATE");
const DAG_TAKE: Stmt =
    Stmt::same("dag_take", concat!("SELECT ", columns!(), " FROM dag WHERE dag_id = $1"))
        .locking(" FOR UPDATE SKIP LOCKED");

/// The DAG of that name, locked: its limits (`max_active_runs`, `max_active_tasks`) and its schedule's
/// place are its lock's.
pub async fn lock(tx: &Tx, dag_id: &str) -> Result<Option<DagRow>, StoreError> {
    tx.query_opt(&DAG_LOCK, values![dag_id]).await?.map(decode).transpose()
}

/// Locks the DAG of that name, unless somebody else has it in hand.
pub async fn take(tx: &Tx, dag_id: &str) -> Result<Option<DagRow>, StoreError> {
    tx.query_opt(&DAG_TAKE, values![dag_id]).await?.map(decode).transpose()
}

const DAG_LOCK_FILES: Stmt = Stmt::split(
    "dag_lock_files",
    "SELECT 0",
    "SELECT CASE WHEN pg_advisory_xact_lock(1684104560) IS NULL THEN 0::bigint ELSE 1 END",
);

/// Waits until nobody else takes DAG files: rows that do not exist yet have no lock of their own.
pub async fn lock_files(tx: &Tx) -> Result<(), StoreError> {
    tx.query(&DAG_LOCK_FILES, vec![]).await.map(drop)
}

const DAG_LIST: Stmt = Stmt::same(
    "dag_list",
    concat!("SELECT ", columns!(), " FROM dag WHERE dag_id > $1 ORDER BY dag_id LIMIT $2"),
);

/// DAGs by name, after a name.
pub async fn list(tx: &Tx, after: &str, limit: u32) -> Result<Vec<DagRow>, StoreError> {
    tx.query(&DAG_LIST, values![after, limit]).await?.into_iter().map(decode).collect()
}

const DAG_DUE: Stmt = Stmt::same(
    "dag_due",
    concat!(
        "SELECT ",
        columns!(),
        " FROM dag WHERE is_active = 1 AND is_paused = 0 AND next_slot_at IS NOT NULL
            AND next_slot_at <= $1 ORDER BY next_slot_at LIMIT $2"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// DAGs with a slot that is due.
pub async fn due(tx: &Tx, limit: u32) -> Result<Vec<DagRow>, StoreError> {
    tx.query(&DAG_DUE, values![tx.now(), limit]).await?.into_iter().map(decode).collect()
}

const DAG_NEXT_DUE: Stmt = Stmt::same(
    "dag_next_due",
    "SELECT MIN(next_slot_at) FROM dag
     WHERE is_active = 1 AND is_paused = 0 AND next_slot_at IS NOT NULL",
);

/// When the next slot of any DAG is due.
pub async fn next_due(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&DAG_NEXT_DUE, vec![]).await? else { return Ok(None) };
    row.columns("dag").opt_time()
}

const DAG_ADVANCE: Stmt = Stmt::same(
    "dag_advance",
    "UPDATE dag SET slot_cursor = $2, next_slot_at = $3
     WHERE dag_id = $1 AND COALESCE(slot_cursor, 0) = COALESCE($4, CAST(0 AS BIGINT))",
);

/// Moves the schedule's place on, from the place that was read.
pub async fn advance(
    tx: &Tx,
    dag_id: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    next_slot_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let changed = tx.execute(&DAG_ADVANCE, values![dag_id, to, next_slot_at, from]).await?;
    Ok(changed == 1)
}

const DAG_UPSERT: Stmt = Stmt::same(
    "dag_upsert",
    concat!(
        "INSERT INTO dag (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
           ON CONFLICT (dag_id) DO UPDATE SET version = excluded.version,
             version_pk = excluded.version_pk, is_active = excluded.is_active,
             fileloc = excluded.fileloc, owner = excluded.owner, tags = excluded.tags,
             description = excluded.description, schedule = excluded.schedule,
             max_active_runs = excluded.max_active_runs,
             max_active_tasks = excluded.max_active_tasks,
             slot_cursor = excluded.slot_cursor, next_slot_at = excluded.next_slot_at,
             updated_at = excluded.updated_at, keep_runs = NULL"
    ),
);

/// Writes a DAG's row; `is_paused` of an existing one stays.
pub async fn upsert(tx: &Tx, dag: &DagRow) -> Result<(), StoreError> {
    let values = values![
        &dag.dag_id,
        dag.version,
        dag.version_pk,
        dag.is_paused,
        dag.is_active,
        &dag.fileloc,
        &dag.owner,
        &dag.tags,
        &dag.description,
        &dag.schedule,
        dag.max_active_runs,
        dag.max_active_tasks,
        dag.slot_cursor,
        dag.next_slot_at,
        dag.created_at,
        dag.updated_at,
        dag.paused_by.clone(),
    ];
    tx.execute(&DAG_UPSERT, values).await.map(drop)
}

const DAG_PAUSE: Stmt = Stmt::same(
    "dag_pause",
    "UPDATE dag SET is_paused = $2, paused_by = $3, next_slot_at = $4, slot_cursor = $5,
        updated_at = $6 WHERE dag_id = $1",
);

/// Pauses or unpauses, with the place of the schedule that follows from it.
pub async fn pause(
    tx: &Tx,
    dag: &DagRow,
    is_paused: bool,
    by: Option<&str>,
) -> Result<(), StoreError> {
    let values = values![&dag.dag_id, is_paused, by, dag.next_slot_at, dag.slot_cursor, tx.now()];
    tx.execute(&DAG_PAUSE, values).await.map(drop)
}

const DAG_DEACTIVATE: Stmt = Stmt::same(
    "dag_deactivate",
    "UPDATE dag SET is_active = 0, updated_at = $2 WHERE fileloc = $1 AND is_active = 1
     AND dag_id NOT IN ($3, $4) RETURNING dag_id",
);

/// Makes the DAGs of a file inactive, but for those of it now: one, or one and its companion. The names of
/// the others.
pub async fn deactivate(tx: &Tx, fileloc: &str, keep: &[&str]) -> Result<Vec<String>, StoreError> {
    let of = |place: usize| keep.get(place).copied().unwrap_or_default();
    let rows = tx.query(&DAG_DEACTIVATE, values![fileloc, tx.now(), of(0), of(1)]).await?;
    rows.into_iter().map(|row| row.columns("dag").text()).collect()
}

const DAG_FILES: Stmt = Stmt::same(
    "dag_files",
    "SELECT DISTINCT fileloc FROM dag WHERE is_active = 1
     UNION SELECT fileloc FROM import_error LIMIT 100000",
);

/// Files that something is known of.
pub async fn files(tx: &Tx) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&DAG_FILES, vec![]).await?;
    rows.into_iter().map(|row| row.columns("dag").text()).collect()
}

/// A version of a DAG, without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    pub version_pk: i64,
    pub dag_id: String,
    pub version: i64,
    pub content_hash: String,
    pub created_at: Timestamp,
}

const VERSION_LIST: Stmt = Stmt::same(
    "version_list",
    "SELECT version_pk, dag_id, version, content_hash, created_at FROM dag_version
     WHERE dag_id = $1 ORDER BY version DESC LIMIT $2",
);

/// The newest versions of a DAG, newest first.
pub async fn versions(tx: &Tx, dag_id: &str, limit: u32) -> Result<Vec<VersionRow>, StoreError> {
    let rows = tx.query(&VERSION_LIST, values![dag_id, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("dag_version");
            Ok(VersionRow {
                version_pk: c.int()?,
                dag_id: c.text()?,
                version: c.int()?,
                content_hash: c.text()?,
                created_at: c.time()?,
            })
        })
        .collect()
}

const VERSION_INSERT: Stmt = Stmt::same(
    "version_insert",
    "INSERT INTO dag_version (dag_id, version, content_hash, ir, source, created_at)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING version_pk",
);

/// What a version is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion<'a> {
    pub dag_id: &'a str,
    pub version: i64,
    pub content_hash: &'a str,
    pub ir: &'a serde_json::Value,
    pub source: &'a str,
}

/// Writes a version; its key.
pub async fn insert_version(tx: &Tx, v: NewVersion<'_>) -> Result<i64, StoreError> {
    let values = values![v.dag_id, v.version, v.content_hash, v.ir, v.source, tx.now()];
    let row = tx.query_opt(&VERSION_INSERT, values).await?;
    row.unwrap_or(Row(vec![])).columns("dag_version").int()
}

/// The contents of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionContent {
    pub dag_id: String,
    pub version: i64,
    pub ir: serde_json::Value,
    pub source: String,
}

const VERSION_CONTENT: Stmt = Stmt::same(
    "version_content",
    "SELECT dag_id, version, ir, source FROM dag_version WHERE version_pk = $1",
);

/// The contents of a version.
pub async fn content(tx: &Tx, version_pk: i64) -> Result<Option<VersionContent>, StoreError> {
    let Some(row) = tx.query_opt(&VERSION_CONTENT, values![version_pk]).await? else {
        return Ok(None);
    };
    let mut c = row.columns("dag_version");
    Ok(Some(VersionContent {
        dag_id: c.text()?,
        version: c.int()?,
        ir: c.json()?,
        source: c.text()?,
    }))
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportError {
    pub fileloc: String,
    /// The diagnostics, as `validate -o json` prints them.
    pub errors: serde_json::Value,
    pub at: Timestamp,
}

const IMPORT_ERROR_SET: Stmt = Stmt::same(
    "import_error_set",
    "INSERT INTO import_error (fileloc, errors, at) VALUES ($1, $2, $3)
     ON CONFLICT (fileloc) DO UPDATE SET errors = $2, at = $3",
);
const IMPORT_ERROR_CLEAR: Stmt =
    Stmt::same("import_error_clear", "DELETE FROM import_error WHERE fileloc = $1");
const IMPORT_ERROR_LIST: Stmt = Stmt::same(
    "import_error_list",
    "SELECT fileloc, errors, at FROM import_error ORDER BY fileloc LIMIT $1",
);

const IMPORT_ERROR_GET: Stmt = Stmt::same(
    "import_error_get",
    "SELECT fileloc, errors, at FROM import_error WHERE fileloc = $1",
);

fn import_error_row(row: Row) -> Result<ImportError, StoreError> {
    let mut c = row.columns("import_error");
    Ok(ImportError { fileloc: c.text()?, errors: c.json()?, at: c.time()? })
}

/// What is wrong with a file.
pub async fn import_error(tx: &Tx, fileloc: &str) -> Result<Option<ImportError>, StoreError> {
    tx.query_opt(&IMPORT_ERROR_GET, values![fileloc]).await?.map(import_error_row).transpose()
}

/// Writes what is wrong with a file, or that nothing is.
pub async fn set_import_error(
    tx: &Tx,
    fileloc: &str,
    errors: Option<&serde_json::Value>,
) -> Result<(), StoreError> {
    match errors {
        Some(errors) => tx.execute(&IMPORT_ERROR_SET, values![fileloc, errors, tx.now()]).await,
        None => tx.execute(&IMPORT_ERROR_CLEAR, values![fileloc]).await,
    }
    .map(drop)
}

/// Files with mistakes.
pub async fn import_errors(tx: &Tx, limit: u32) -> Result<Vec<ImportError>, StoreError> {
    let rows = tx.query(&IMPORT_ERROR_LIST, values![limit]).await?;
    rows.into_iter().map(import_error_row).collect()
}

pub(super) const STATEMENTS: &[Stmt] = &[
    DAG_GET,
    DAG_LOCK,
    DAG_TAKE,
    DAG_LOCK_FILES,
    DAG_LIST,
    DAG_DUE,
    DAG_NEXT_DUE,
    DAG_ADVANCE,
    DAG_UPSERT,
    DAG_PAUSE,
    DAG_DEACTIVATE,
    DAG_FILES,
    present::DAG_FILE_OWN,
    present::DAG_FILE_PUT,
    present::DAG_FILE_DROP,
    present::DAG_FILE_ELSEWHERE,
    present::DAG_FILE_PRUNE,
    VERSION_LIST,
    VERSION_INSERT,
    VERSION_CONTENT,
    IMPORT_ERROR_SET,
    IMPORT_ERROR_CLEAR,
    IMPORT_ERROR_LIST,
    IMPORT_ERROR_GET,
];
