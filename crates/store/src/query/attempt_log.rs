//! Pieces of logs that workers have sent.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Of the worker's file: segments rise, and one that was dropped is missing.
    pub segment: u32,
    /// Bytes of the segment before it.
    pub offset: u64,
    /// Its own bytes.
    pub size: u64,
    /// Received after the attempt was ended by somebody else than its worker.
    pub late: bool,
    /// Base64.
    pub content: String,
}

impl Piece {
    /// Where the next piece of its segment begins.
    pub const fn end(&self) -> (u32, u64) {
        (self.segment, self.offset + self.size)
    }
}

fn decode(row: Row) -> Result<Piece, StoreError> {
    let mut c: Columns = row.columns("attempt_log");
    Ok(Piece {
        segment: c.number()?,
        offset: c.number()?,
        size: c.number()?,
        late: c.int()? != 0,
        content: c.text()?,
    })
}

const ATTEMPT_LOG_PUT: Stmt = Stmt::same(
    "attempt_log_put",
    "INSERT INTO attempt_log (token, segment, at_offset, size, late, content, received_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (token, segment, at_offset) DO NOTHING",
);

/// Keeps pieces; one whose place is taken changes nothing.
pub async fn put(tx: &Tx, pieces: &[(Token, Piece)]) -> Result<(), StoreError> {
    let sets = pieces.iter().map(|(token, piece)| {
        let (offset, size) = (place(piece.offset), place(piece.size));
        values![*token, piece.segment, offset, size, piece.late, &piece.content, tx.now()]
    });
    tx.execute_many(&ATTEMPT_LOG_PUT, sets.collect()).await.map(drop)
}

fn place(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

const ATTEMPT_LOG_LAST: Stmt = Stmt::same(
    "attempt_log_last",
    "SELECT segment, at_offset, size, late, '' FROM attempt_log WHERE token = $1
     ORDER BY segment DESC, at_offset DESC LIMIT 1",
);

/// Where the log of an attempt ends so far; its beginning, if nothing was received.
pub async fn end_of(tx: &Tx, token: Token) -> Result<(u32, u64), StoreError> {
    let last = tx.query_opt(&ATTEMPT_LOG_LAST, values![token]).await?.map(decode).transpose()?;
    Ok(last.map_or((0, 0), |piece| piece.end()))
}

const ATTEMPT_LOG_FROM: Stmt = Stmt::same(
    "attempt_log_from",
    "SELECT segment, at_offset, size, late, content FROM attempt_log
     WHERE token = $1 AND (segment > $2 OR (segment = $2 AND at_offset + size > $3))
     ORDER BY segment, at_offset LIMIT $4",
);

/// Pieces that reach beyond a place, in order.
pub async fn from(
    tx: &Tx,
    token: Token,
    (segment, offset): (u32, u64),
    limit: u32,
) -> Result<Vec<Piece>, StoreError> {
    let values = values![token, segment, place(offset), limit];
    tx.query(&ATTEMPT_LOG_FROM, values).await?.into_iter().map(decode).collect()
}

const ATTEMPT_LOG_NEWEST: Stmt = Stmt::same(
    "attempt_log_newest",
    "SELECT segment, at_offset, size, late, content FROM attempt_log WHERE token = $1
     ORDER BY segment DESC, at_offset DESC LIMIT $2",
);

/// The newest pieces, the newest first.
pub async fn newest(tx: &Tx, token: Token, limit: u32) -> Result<Vec<Piece>, StoreError> {
    tx.query(&ATTEMPT_LOG_NEWEST, values![token, limit]).await?.into_iter().map(decode).collect()
}

const ATTEMPT_LOG_REMOVE: Stmt =
    Stmt::same("attempt_log_remove", "DELETE FROM attempt_log WHERE token = $1");

/// Removes the logs of attempts.
pub async fn remove(tx: &Tx, tokens: &[Token]) -> Result<(), StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    tx.execute_many(&ATTEMPT_LOG_REMOVE, sets).await.map(drop)
}

pub(super) const STATEMENTS: &[Stmt] =
    &[ATTEMPT_LOG_PUT, ATTEMPT_LOG_LAST, ATTEMPT_LOG_FROM, ATTEMPT_LOG_NEWEST, ATTEMPT_LOG_REMOVE];
