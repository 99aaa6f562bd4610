//! Attempts by token: of all DAGs, or of the instances of a task.

use crate::query::task_instance::TiKey;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// Which attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptFilter {
    /// See [`super::words`].
    pub states: String,
    pub dag_id: String,
    pub worker: String,
}

macro_rules! page {
    ($states:literal, $token:literal) => {
        concat!(
            "SELECT token FROM attempt WHERE ",
            $states,
            " AND ",
            $token,
            " > $1 AND $2 LIKE '%,' || state || ',%'
              AND ($3 = '' OR dag_id = $3) AND ($4 = '' OR worker = $4)
              ORDER BY ",
            $token,
            " LIMIT $5"
        )
    };
}

/// What has not ended is few, and has partial indexes; `+token` keeps the planner from walking the
/// whole history in the order of tokens instead.
const ATTEMPT_PAGES: [Stmt; 3] = [
    Stmt::same("attempt_page_queued", page!("state = 'queued'", "+token")),
    Stmt::same(
        "attempt_page_open",
        page!("state IN ('claimed', 'running', 'stopping', 'lost_open')", "+token"),
    ),
    Stmt::same("attempt_page_ended", page!("state = 'ended'", "token")),
];

/// Attempts in order of tokens, after one. A filter without states finds nothing.
pub async fn page(
    tx: &Tx,
    after: i64,
    filter: &AttemptFilter,
    limit: u32,
) -> Result<Vec<Token>, StoreError> {
    let wants = |states: &[&str]| states.iter().any(|s| filter.states.contains(&format!(",{s},")));
    let wanted = [
        wants(&["queued"]),
        wants(&["claimed", "running", "stopping", "lost_open"]),
        wants(&["ended"]),
    ];
    let mut found = Vec::new();
    for (stmt, _) in ATTEMPT_PAGES.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        let values = values![after, &filter.states, &filter.dag_id, &filter.worker, limit];
        found.extend(tokens(tx.query(stmt, values).await?)?);
    }
    found.sort_unstable();
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

const ATTEMPT_PAGE_OF_TI: Stmt = Stmt::same(
    "attempt_page_of_ti",
    "SELECT token FROM attempt
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND token > $4
     ORDER BY token LIMIT $5",
);

/// Attempts of an instance, after a token.
pub async fn of_ti(tx: &Tx, ti: TiKey, after: i64, limit: u32) -> Result<Vec<Token>, StoreError> {
    let values = values![ti.run_pk, ti.task_index, ti.map_index, after, limit];
    tokens(tx.query(&ATTEMPT_PAGE_OF_TI, values).await?)
}

const ATTEMPT_PAGE_OF_TASK: Stmt = Stmt::same(
    "attempt_page_of_task",
    "SELECT token FROM attempt WHERE run_pk = $1 AND task_index = $2 AND token > $3
     ORDER BY token LIMIT $4",
);

/// Attempts of all instances of a task, after a token.
pub async fn of_task(
    tx: &Tx,
    run_pk: i64,
    task_index: u32,
    after: i64,
    limit: u32,
) -> Result<Vec<Token>, StoreError> {
    let values = values![run_pk, task_index, after, limit];
    tokens(tx.query(&ATTEMPT_PAGE_OF_TASK, values).await?)
}

fn tokens(rows: Vec<Row>) -> Result<Vec<Token>, StoreError> {
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

const ATTEMPT_REFUSED: Stmt = Stmt::same(
    "attempt_refused",
    "SELECT token, COUNT(*) FROM event
     WHERE token = $1 AND token > 0 AND kind = 'write_refused' GROUP BY token",
);

/// Late writes that were refused: (attempt, how many), of those that have any.
pub async fn refused(tx: &Tx, tokens: &[Token]) -> Result<Vec<(Token, u32)>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    let rows = tx.query_many(&ATTEMPT_REFUSED, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("event");
            Ok((c.token()?, c.number()?))
        })
        .collect()
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[
    ATTEMPT_PAGES[0],
    ATTEMPT_PAGES[1],
    ATTEMPT_PAGES[2],
    ATTEMPT_PAGE_OF_TI,
    ATTEMPT_PAGE_OF_TASK,
    ATTEMPT_REFUSED,
];
