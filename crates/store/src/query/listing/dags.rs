//! Versions of a DAG, files with mistakes, DAGs with a schedule.

use crate::query::dag::{ImportError, VersionRow};
use crate::{Row, Stmt, StoreError, Tx, values};

const VERSION_PAGE: Stmt = Stmt::same(
    "version_page",
    "SELECT version_pk, dag_id, version, content_hash, created_at FROM dag_version
     WHERE dag_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3",
);
const VERSION_GET: Stmt = Stmt::same(
    "version_get",
    "SELECT version_pk, dag_id, version, content_hash, created_at FROM dag_version
     WHERE dag_id = $1 AND version = $2",
);
const VERSION_NUMBER: Stmt = Stmt::same(
    "version_number",
    "SELECT version_pk, version FROM dag_version WHERE version_pk = $1",
);

fn version(row: Row) -> Result<VersionRow, StoreError> {
    let mut c = row.columns("dag_version");
    Ok(VersionRow {
        version_pk: c.int()?,
        dag_id: c.text()?,
        version: c.int()?,
        content_hash: c.text()?,
        created_at: c.time()?,
    })
}

/// Versions of a DAG below a number, newest first.
pub async fn versions(
    tx: &Tx,
    dag_id: &str,
    below: i64,
    limit: u32,
) -> Result<Vec<VersionRow>, StoreError> {
    let rows = tx.query(&VERSION_PAGE, values![dag_id, below, limit]).await?;
    rows.into_iter().map(version).collect()
}

/// The version of that number.
pub async fn version_of(
    tx: &Tx,
    dag_id: &str,
    number: i64,
) -> Result<Option<VersionRow>, StoreError> {
    tx.query_opt(&VERSION_GET, values![dag_id, number]).await?.map(version).transpose()
}

/// The numbers of some versions: (key, number).
pub async fn version_numbers(tx: &Tx, keys: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
    let sets = keys.iter().map(|key| values![*key]).collect();
    pairs(tx.query_many(&VERSION_NUMBER, sets).await?)
}

const VERSION_RUNS: Stmt = Stmt::same(
    "version_runs",
    "SELECT version_pk, COUNT(*) FROM run WHERE dag_id = $1 GROUP BY version_pk LIMIT 100000",
);

/// How many runs are pinned to each version of a DAG: (key, runs).
pub async fn version_runs(tx: &Tx, dag_id: &str) -> Result<Vec<(i64, i64)>, StoreError> {
    pairs(tx.query(&VERSION_RUNS, values![dag_id]).await?)
}

fn pairs(rows: Vec<Row>) -> Result<Vec<(i64, i64)>, StoreError> {
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("dag_version");
            Ok((c.int()?, c.int()?))
        })
        .collect()
}

const IMPORT_ERROR_PAGE: Stmt = Stmt::same(
    "import_error_page",
    "SELECT i.fileloc, i.errors, i.at,
            (SELECT MIN(d.dag_id) FROM dag d WHERE d.fileloc = i.fileloc AND d.is_active = 1)
     FROM import_error i WHERE i.fileloc > $1 ORDER BY i.fileloc LIMIT $2",
);

/// Files with mistakes after a file, each with the DAG whose last good version goes on.
pub async fn import_errors(
    tx: &Tx,
    after: &str,
    limit: u32,
) -> Result<Vec<(ImportError, Option<String>)>, StoreError> {
    let rows = tx.query(&IMPORT_ERROR_PAGE, values![after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("import_error");
            let error = ImportError { fileloc: c.text()?, errors: c.json()?, at: c.time()? };
            Ok((error, c.opt_text()?))
        })
        .collect()
}

const IMPORT_ERROR_FILES: Stmt =
    Stmt::same("import_error_files", "SELECT fileloc FROM import_error WHERE fileloc = $1");

/// Those of some files that have mistakes.
pub async fn broken(tx: &Tx, files: &[&str]) -> Result<Vec<String>, StoreError> {
    let sets = files.iter().map(|file| values![*file]).collect();
    let rows = tx.query_many(&IMPORT_ERROR_FILES, sets).await?;
    rows.into_iter().map(|row| row.columns("import_error").text()).collect()
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[
    VERSION_PAGE,
    VERSION_GET,
    VERSION_NUMBER,
    VERSION_RUNS,
    IMPORT_ERROR_PAGE,
    IMPORT_ERROR_FILES,
];
