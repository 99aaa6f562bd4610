//! Homes of workers: which registration in each was the last.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;

const HOME_TAKE: Stmt = Stmt::same(
    "home_take",
    "INSERT INTO home (home_id, registration, job_id) VALUES ($1, $2, $3)
     ON CONFLICT (home_id) DO UPDATE SET registration = $2, job_id = $3
     WHERE home.registration < $2 OR home.job_id = $3",
);
const HOME_REGISTRATION: Stmt =
    Stmt::same("home_registration", "SELECT registration FROM home WHERE home_id = $1");

/// Writes down that this job is the home's last registration, with its number; `false` if a later
/// one is known. Registrations of one home wait for each other here.
pub async fn take(
    tx: &Tx,
    home_id: &str,
    registration: i64,
    job: JobId,
) -> Result<bool, StoreError> {
    Ok(tx.execute(&HOME_TAKE, values![home_id, registration, job]).await? == 1)
}

/// The number of the last registration; 0 if none is known.
pub async fn registration(tx: &Tx, home_id: &str) -> Result<i64, StoreError> {
    let row = tx.query_opt(&HOME_REGISTRATION, values![home_id]).await?;
    row.map_or(Ok(0), |row| row.columns("home").int())
}

pub(super) const STATEMENTS: &[Stmt] = &[HOME_TAKE, HOME_REGISTRATION];
