//! Logs of attempts that ended long ago, piece by piece in the order of tokens, which is that of dispatch.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;

/// A piece of a log, and what decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldPiece {
    /// Token, segment, offset.
    pub place: (i64, i64, i64),
    pub size: u64,
    /// `None`: there is no such attempt any more.
    pub attempt: Option<OfAttempt>,
}

/// The attempt that a piece is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfAttempt {
    pub state: AttemptState,
    pub queued_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

const RETENTION_LOGS: Stmt = Stmt::same(
    "retention_logs",
    "SELECT l.token, l.segment, l.at_offset, l.size, a.state, a.queued_at, a.ended_at
     FROM attempt_log l LEFT JOIN attempt a ON a.token = l.token
     WHERE (l.token, l.segment, l.at_offset) > ($1, $2, $3)
     ORDER BY l.token, l.segment, l.at_offset LIMIT $4",
);
const RETENTION_LOG_DROP: Stmt = Stmt::same(
    "retention_log_drop",
    "DELETE FROM attempt_log WHERE token = $1 AND segment = $2 AND at_offset = $3",
);

/// Pieces after a place.
pub async fn pieces(
    tx: &Tx,
    after: (i64, i64, i64),
    limit: u32,
) -> Result<Vec<OldPiece>, StoreError> {
    let values = values![after.0, after.1, after.2, limit];
    let rows = tx.query(&RETENTION_LOGS, values).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("attempt_log");
            let (place, size) = ((c.int()?, c.int()?, c.int()?), c.number()?);
            let (state, queued_at) = (c.opt_named(AttemptState::parse)?, c.opt_time()?);
            let ended_at = c.opt_time()?;
            let attempt = state.zip(queued_at).map(|(state, queued_at)| OfAttempt {
                state,
                queued_at,
                ended_at,
            });
            Ok(OldPiece { place, size, attempt })
        })
        .collect()
}

/// Removes pieces; how many.
pub async fn drop_pieces(tx: &Tx, pieces: &[&OldPiece]) -> Result<u64, StoreError> {
    let set = |piece: &&OldPiece| values![piece.place.0, piece.place.1, piece.place.2];
    let sets = pieces.iter().map(set).collect();
    Ok(tx.execute_many(&RETENTION_LOG_DROP, sets).await?.into_iter().sum())
}

pub(super) const STATEMENTS: &[Stmt] = &[RETENTION_LOGS, RETENTION_LOG_DROP];
