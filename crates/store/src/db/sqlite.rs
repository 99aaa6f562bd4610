//! The SQLite driver: threads that own connections and serve sessions one after the other.
//!
//! A session is one transaction. As on the other database, a statement that fails ends it: further
//! statements and the commit are refused, and nothing of it is kept. So does its owner when it
//! drops it or stands still in the middle of it.

mod inline;
mod writer;

pub(super) use inline::{Inline, Session as InlineSession};
pub use inline::{MemoryDb, Replica, Way};

use super::{Row, Stmt, Value};
use crate::error::{StoreError, StoreErrorKind};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a session may stand still between two commands before it is given up: who stops inside
/// a transaction must not stop the others (I28).
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long another process's lock is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Statements that a connection keeps prepared.
const CACHED_STATEMENTS: usize = 256;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;
type Answer = (Vec<Row>, Vec<u64>);

enum Command {
    Run { op: &'static str, stmt: Stmt, sets: Vec<Vec<Value>>, reply: Reply<Answer> },
    Commit { op: &'static str, reply: Reply<()> },
}

struct Opening {
    commands: Receiver<Command>,
    reply: Reply<()>,
    op: &'static str,
}

/// A queue to one or more threads with a connection each.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    openings: Sender<Opening>,
}

/// A transaction at a thread.
#[derive(Debug)]
pub(super) struct Session {
    commands: Sender<Command>,
}

/// A statement that is on its way.
pub(super) struct Sent {
    op: &'static str,
    answer: oneshot::Receiver<Result<Answer, StoreError>>,
}

impl Sent {
    pub(super) async fn answer(self) -> Result<Answer, StoreError> {
        self.answer.await.map_err(|_| gone(self.op))?
    }
}

impl Lane {
    pub(super) fn writer(path: &Path) -> Result<Self, StoreError> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let (openings, queue) = channel();
        spawn("store-writer", move || writer::serve(&connection, &queue))?;
        Ok(Self { openings })
    }

    pub(super) fn readers(path: &Path, count: usize) -> Result<Self, StoreError> {
        let (openings, queue) = channel::<Opening>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..count {
            // A reader of a WAL database still needs to write its shared-memory file.
            let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection
                .pragma_update(None, "query_only", true)
                .map_err(|error| wrong("open", &error))?;
            let queue = Arc::clone(&queue);
            spawn("store-reader", move || {
                loop {
                    let next = queue.lock().map(|queue| queue.recv());
                    let Ok(Ok(opening)) = next else { return };
                    read_session(&connection, opening);
                }
            })?;
        }
        Ok(Self { openings })
    }

    pub(super) async fn session(&self, op: &'static str) -> Result<Session, StoreError> {
        let (commands, queue) = channel();
        let (reply, opened) = oneshot::channel();
        self.openings.send(Opening { commands: queue, reply, op }).map_err(|_| gone(op))?;
        opened.await.map_err(|_| gone(op))??;
        Ok(Session { commands })
    }
}

impl Session {
    pub(super) fn send(
        &self,
        op: &'static str,
        stmt: Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Sent, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Run { op, stmt, sets, reply }).map_err(|_| gone(op))?;
        Ok(Sent { op, answer })
    }

    pub(super) async fn commit(self, op: &'static str) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Commit { op, reply }).map_err(|_| gone(op))?;
        answer.await.map_err(|_| gone(op))?
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    std::thread::Builder::new()
        .name(name.into())
        .stack_size(1 << 20)
        .spawn(work)
        .map(drop)
        .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open", error))
}

/// Opens a connection with the settings that durability and sharing need.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
        connection.pragma_update(None, "cache_size", -8_192)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(connection)
    };
    open().map_err(|error| wrong("open", &error))
}

fn read_session(connection: &Connection, opening: Opening) {
    if let Err(error) = connection.execute_batch("BEGIN") {
        let _ = opening.reply.send(Err(wrong(opening.op, &error)));
        return;
    }
    if opening.reply.send(Ok(())).is_ok() {
        while let Ok(command) = opening.commands.recv_timeout(IDLE_MAX) {
            match command {
                // Nobody waits for a reply that cannot be sent.
                Command::Run { op, stmt, sets, reply } => {
                    let _ = reply.send(run(connection, op, stmt, &sets));
                }
                Command::Commit { reply, .. } => {
                    let _ = reply.send(Ok(()));
                    break;
                }
            }
        }
    }
    // A transaction that only read has nothing to lose.
    let _ = connection.execute_batch("COMMIT");
}

fn run(
    connection: &Connection,
    op: &'static str,
    stmt: Stmt,
    sets: &[Vec<Value>],
) -> Result<Answer, StoreError> {
    let failed = |error: &rusqlite::Error| {
        let mut out = wrong(op, error);
        out.message = format!("{}: {}", stmt.name, out.message);
        out
    };
    // `$n` is a name in SQLite, numbered by first appearance; `?n` is the number itself.
    let text = stmt.text.replace('$', "?");
    let mut prepared = connection.prepare_cached(&text).map_err(|e| failed(&e))?;
    let width = prepared.column_count();
    let (mut rows, mut changed) = (Vec::new(), Vec::new());
    for values in sets {
        if width == 0 {
            let params = rusqlite::params_from_iter(values);
            let count = prepared.execute(params).map_err(|e| failed(&e))?;
            changed.push(u64::try_from(count).unwrap_or(u64::MAX));
            continue;
        }
        let before = rows.len();
        let params = rusqlite::params_from_iter(values);
        let mut found = prepared.query(params).map_err(|e| failed(&e))?;
        while let Some(row) = found.next().map_err(|e| failed(&e))? {
            rows.push(decode(row, width).map_err(|e| failed(&e))?);
        }
        changed.push((rows.len() - before) as u64);
    }
    Ok((rows, changed))
}

fn decode(row: &rusqlite::Row<'_>, width: usize) -> rusqlite::Result<Row> {
    let mut values = Vec::with_capacity(width);
    for column in 0..width {
        values.push(match row.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(n) => Value::Int(n),
            #[expect(clippy::cast_possible_truncation, reason = "sums that SQLite made real")]
            ValueRef::Real(n) => Value::Int(n as i64),
            ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        });
    }
    Ok(Row(values))
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Int(n) => ToSqlOutput::Borrowed(ValueRef::Integer(*n)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// What a session is told after its first failure.
fn ended(op: &'static str, first: &StoreError) -> StoreError {
    let message = format!("the transaction has failed before: {}", first.message);
    // A rule of the schema was broken by the first statement, not by this one.
    let is_own = first.kind != StoreErrorKind::Constraint;
    StoreError::new(if is_own { first.kind } else { StoreErrorKind::Unavailable }, op, message)
}

fn gone(op: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, op, "its session has ended")
}

pub(crate) fn wrong(op: &'static str, error: &rusqlite::Error) -> StoreError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreErrorKind::Constraint,
        Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, op, error)
}
