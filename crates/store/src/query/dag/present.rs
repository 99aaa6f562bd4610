//! Which scheduler has which DAG file. Written under [`super::lock_files`].

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;
use std::collections::BTreeSet;

pub(super) const DAG_FILE_OWN: Stmt =
    Stmt::same("dag_file_own", "SELECT fileloc FROM dag_file WHERE job_id = $1");
pub(super) const DAG_FILE_PUT: Stmt = Stmt::same(
    "dag_file_put",
    "INSERT INTO dag_file (job_id, fileloc) VALUES ($1, $2) ON CONFLICT DO NOTHING",
);
pub(super) const DAG_FILE_DROP: Stmt =
    Stmt::same("dag_file_drop", "DELETE FROM dag_file WHERE job_id = $1 AND fileloc = $2");
pub(super) const DAG_FILE_ELSEWHERE: Stmt = Stmt::same(
    "dag_file_elsewhere",
    "SELECT DISTINCT f.fileloc FROM dag_file f JOIN job j ON j.job_id = f.job_id
     WHERE j.state IN ('running', 'draining') AND f.job_id <> $1",
);
pub(super) const DAG_FILE_PRUNE: Stmt = Stmt::same(
    "dag_file_prune",
    "DELETE FROM dag_file WHERE NOT EXISTS (SELECT 1 FROM job j
        WHERE j.job_id = dag_file.job_id AND j.state IN ('running', 'draining'))",
);

/// Writes down which files a scheduler has, all of them.
pub async fn set_present(
    tx: &Tx,
    job: JobId,
    present: &BTreeSet<String>,
) -> Result<(), StoreError> {
    let rows = tx.query(&DAG_FILE_OWN, values![job]).await?;
    let known: BTreeSet<String> = rows.into_iter().map(name).collect::<Result<_, _>>()?;
    let sets = |names: Vec<&String>| names.into_iter().map(|n| values![job, n]).collect();
    tx.execute_many(&DAG_FILE_PUT, sets(present.difference(&known).collect())).await?;
    tx.execute_many(&DAG_FILE_DROP, sets(known.difference(present).collect())).await?;
    Ok(())
}

/// The files that live schedulers have, but for one of them; those of the dead are forgotten.
pub async fn present_elsewhere(tx: &Tx, job: Option<JobId>) -> Result<Vec<String>, StoreError> {
    tx.execute(&DAG_FILE_PRUNE, vec![]).await?;
    let but = job.map(|job| job.to_string()).unwrap_or_default();
    tx.query(&DAG_FILE_ELSEWHERE, values![but]).await?.into_iter().map(name).collect()
}

fn name(row: Row) -> Result<String, StoreError> {
    row.columns("dag_file").text()
}
