//! What is known of attempts after their end: the incident in which they were lost, and whether their
//! processes may still run.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::{JobId, Token};

pub(super) const ATTEMPT_LINK: Stmt = Stmt::same(
    "attempt_link",
    "UPDATE attempt SET incident = (SELECT id FROM incident WHERE job_id = $2),
        may_run = CASE WHEN outcome = 'lost'
            AND $3 LIKE '%,' || COALESCE(containment, 'group') || ',%' THEN 1 ELSE 0 END
     WHERE token = $1",
)
.batched(
    1,
    "UPDATE attempt a SET incident = (SELECT i.id FROM incident i WHERE i.job_id = u.job_id), \
        may_run = CASE WHEN a.outcome = 'lost' \
        AND u.levels LIKE '%,' || COALESCE(a.containment, 'group') || ',%' THEN 1 ELSE 0 END \
        FROM unnest($1::bigint[], $2::text[], $3::text[]) \
        WITH ORDINALITY AS u(token, job_id, levels, ord) WHERE a.token = u.token RETURNING u.ord",
);

/// They were lost in the incident of that job. At one of these levels of containment (`,group,`) the way
/// in which that is known says nothing about their processes.
pub async fn link(
    tx: &Tx,
    tokens: &[Token],
    job: JobId,
    doubtful_levels: &str,
) -> Result<(), StoreError> {
    let sets = tokens.iter().map(|token| values![*token, job, doubtful_levels]).collect();
    tx.execute_many(&ATTEMPT_LINK, sets).await.map(drop)
}

pub(super) const ATTEMPT_GONE: Stmt =
    Stmt::same("attempt_gone", "UPDATE attempt SET may_run = 0 WHERE token = $1 AND may_run = 1");

/// Their processes are known to be gone; for each whether that was not known before.
pub async fn gone(tx: &Tx, tokens: &[Token]) -> Result<Vec<bool>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    let changed = tx.execute_many(&ATTEMPT_GONE, sets).await?;
    Ok(changed.into_iter().map(|changed| changed == 1).collect())
}

pub(super) const ATTEMPT_GONE_OF: Stmt = Stmt::same(
    "attempt_gone_of",
    "UPDATE attempt SET may_run = 0 WHERE may_run = 1 AND job_id = $1",
);

/// The processes of everything that a job has left are known to be gone.
pub async fn gone_of(tx: &Tx, job: JobId) -> Result<u64, StoreError> {
    tx.execute(&ATTEMPT_GONE_OF, values![job]).await
}

pub(super) const ATTEMPT_DOUBTFUL: Stmt =
    Stmt::same("attempt_doubtful", "SELECT token FROM attempt WHERE token = $1 AND may_run = 1");

/// Those of them that have ended while their processes may still run.
pub async fn doubtful(tx: &Tx, tokens: &[Token]) -> Result<Vec<Token>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    let rows = tx.query_many(&ATTEMPT_DOUBTFUL, sets).await?;
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

pub(super) const ATTEMPT_DOUBTS: Stmt = Stmt::same(
    "attempt_doubts",
    "SELECT token FROM attempt WHERE may_run = 1 ORDER BY token LIMIT $1",
);

/// Every attempt that has ended while its processes may still run.
pub async fn doubts(tx: &Tx, limit: u32) -> Result<Vec<Token>, StoreError> {
    let rows = tx.query(&ATTEMPT_DOUBTS, values![limit]).await?;
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

pub(super) const ATTEMPT_OF_INCIDENT: Stmt = Stmt::same(
    "attempt_of_incident",
    "SELECT token FROM attempt WHERE incident = $1 AND incident IS NOT NULL AND token > $2
     ORDER BY token LIMIT $3",
);

/// What was lost in an incident, after a token.
pub async fn of_incident(
    tx: &Tx,
    incident: i64,
    after: i64,
    limit: u32,
) -> Result<Vec<Token>, StoreError> {
    let rows = tx.query(&ATTEMPT_OF_INCIDENT, values![incident, after, limit]).await?;
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

pub(super) const ATTEMPT_UNCERTAIN: Stmt = Stmt::same(
    "attempt_uncertain",
    "SELECT CAST((SELECT COUNT(*) FROM attempt m WHERE m.may_run = 1 AND m.incident = $1)
        + (SELECT COUNT(*) FROM attempt a WHERE a.job_id = $2 AND a.state = 'lost_open') AS BIGINT)",
);

/// How many of an incident may still run.
pub async fn uncertain(tx: &Tx, incident: i64, job: JobId) -> Result<i64, StoreError> {
    let row = tx.query_opt(&ATTEMPT_UNCERTAIN, values![incident, job]).await?;
    row.map_or(Ok(0), |row| row.columns("attempt").int())
}

pub(super) const ATTEMPT_REPLACED: Stmt = Stmt::same(
    "attempt_replaced",
    "SELECT b.replaces, b.token FROM attempt a JOIN attempt b ON b.run_pk = a.run_pk
        AND b.task_index = a.task_index AND b.map_index = a.map_index AND b.replaces = a.token
     WHERE a.token = $1",
);

/// What replaced them: (the lost one, its successor).
pub async fn replaced_by(tx: &Tx, tokens: &[Token]) -> Result<Vec<(Token, Token)>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    let rows = tx.query_many(&ATTEMPT_REPLACED, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("attempt");
            Ok((c.token()?, c.token()?))
        })
        .collect()
}
