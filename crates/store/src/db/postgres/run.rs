//! A transaction on a connection: its statements, its end.

use super::codec::{self, Column};
use super::connect::{PgOptions, Wire};
use super::pool::Lane;
use super::wrong;
use crate::db::stmt::{Batch, Stmt};
use crate::db::{Row, Value};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::{Span, Timestamp};
use futures_util::{StreamExt as _, future};
use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

type Answer = (Vec<Row>, Vec<u64>);

/// Sets of values that are under way at once on a connection.
const IN_FLIGHT: usize = 512;
/// Sets of values in one batched statement.
const BATCH_MAX: usize = 1_000;
/// The same, where it answers rows that it locks: a process that is stopped while such an answer is on
/// its way must not keep the server waiting with the locks, so an answer fits the line's buffers.
const LOCKED_MAX: usize = 100;

/// Until when a transaction may go on, by a clock that also counts while this process is stopped.
#[derive(Clone)]
pub(super) struct Limit {
    elapsed: Arc<dyn Fn() -> Span + Send + Sync>,
    end: Span,
}

impl Limit {
    pub(super) fn from_now(options: &PgOptions) -> Self {
        let elapsed = Arc::clone(&options.elapsed);
        let end = Span::from_micros(elapsed().as_micros() + options.transaction.as_micros());
        Self { elapsed, end }
    }

    /// What is left; `None`: nothing.
    fn left(&self) -> Option<Duration> {
        let left = self.end.as_micros() - (self.elapsed)().as_micros();
        (left > 0).then(|| Span::from_micros(left).to_std())
    }

    /// The work's answer, if it comes in time.
    async fn within<T>(limit: Option<&Self>, work: impl Future<Output = T>) -> Option<T> {
        let Some(limit) = limit else { return Some(work.await) };
        let answer = tokio::time::timeout(limit.left()?, work).await.ok()?;
        limit.left().map(|_| answer)
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({})", self.end)
    }
}

fn late(op: &'static str) -> StoreError {
    let message = "the transaction took longer than it may in total: its connection is closed";
    StoreError::new(StoreErrorKind::Unavailable, op, message)
}

/// A transaction. Dropped, it is rolled back.
#[derive(Debug)]
pub(in crate::db) struct Session {
    wire: Option<Arc<Wire>>,
    lane: Lane,
    /// Loading statements take their locks.
    locks: bool,
    /// The first failure: after it the server refuses everything, and a commit would be none.
    failed: Mutex<Option<StoreError>>,
    permit: Option<OwnedSemaphorePermit>,
    limit: Option<Limit>,
}

impl Session {
    pub(super) fn new(wire: Arc<Wire>, lane: Lane, locks: bool, limit: Option<Limit>) -> Self {
        let wire = Some(wire);
        Self { wire, lane, locks, failed: Mutex::default(), permit: None, limit }
    }

    pub(super) fn holding(mut self, permit: OwnedSemaphorePermit) -> Self {
        self.permit = Some(permit);
        self
    }

    pub(super) fn is_broken(&self) -> bool {
        self.wire.as_ref().is_none_or(|wire| wire.client.is_closed())
    }

    /// Begins, and reads the clock, in one trip.
    pub(super) async fn begin(&self, begin: &str, clock: &'static str) -> Result<Timestamp, Error> {
        let Some(wire) = &self.wire else { return Ok(Timestamp::default()) };
        let clock = wire.prepared(clock, "").await?;
        let begun = wire.client.batch_execute(begin);
        let read = wire.client.query_one_scalar::<i64, _>(&clock, &[]);
        let (begun, read) = future::join(begun, read).await;
        begun?;
        read.map(Timestamp::from_micros)
    }

    pub(in crate::db) async fn run(
        &self,
        op: &'static str,
        stmt: Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Answer, StoreError> {
        if let Some(first) = &*self.failure() {
            return Err(ended(op, first));
        }
        // If this future is dropped, what became of the statement is not known.
        let abandoned = format!("{}: its answer was not waited for", stmt.name);
        *self.failure() = Some(StoreError::new(StoreErrorKind::Unavailable, op, abandoned));
        let answer = match &self.wire {
            Some(wire) => {
                let work = run(wire, stmt, self.locks, &sets);
                let Some(answer) = Limit::within(self.limit.as_ref(), work).await else {
                    *self.failure() = Some(late(op));
                    return Err(late(op));
                };
                answer
            }
            None => Ok(Answer::default()),
        };
        let answer = answer.map_err(|error| {
            let mut error = wrong(op, &error);
            error.message = format!("{}: {}", stmt.name, error.message);
            error
        });
        *self.failure() = answer.as_ref().err().cloned();
        answer
    }

    pub(in crate::db) async fn commit(mut self, op: &'static str) -> Result<(), StoreError> {
        if let Some(first) = &*self.failure() {
            return Err(ended(op, first));
        }
        let Some(wire) = self.wire.clone() else { return Ok(()) };
        let work = wire.client.batch_execute("COMMIT");
        // Without an answer in time it is not known whether it is done.
        let Some(answer) = Limit::within(self.limit.as_ref(), work).await else {
            return Err(late(op));
        };
        answer.map_err(|error| wrong(op, &error))?;
        self.wire = None;
        self.lane.take_back(wire);
        Ok(())
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<StoreError>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_late = self.limit.as_ref().is_some_and(|limit| limit.left().is_none());
        // One that is late is closed with its last handle, and the server rolls it back.
        if let Some(wire) = self.wire.take().filter(|_| !is_late) {
            self.lane.roll_back(wire);
        }
    }
}

/// What a session is told after its first failure.
fn ended(op: &'static str, first: &StoreError) -> StoreError {
    let message = format!("the transaction has failed before: {}", first.message);
    // A rule of the schema was broken by the first statement, not by this one.
    let is_own = first.kind != StoreErrorKind::Constraint;
    StoreError::new(if is_own { first.kind } else { StoreErrorKind::Unavailable }, op, message)
}

async fn run(wire: &Wire, stmt: Stmt, locks: bool, sets: &[Vec<Value>]) -> Result<Answer, Error> {
    let mut whole = Answer::default();
    let batch = stmt.batch.filter(|batch| sets.len() > 1 && differ(batch, sets));
    if let Some(batch) = batch {
        let lock = if locks { stmt.lock } else { "" };
        let statement = wire.prepared(batch.text, lock).await?;
        for some in sets.chunks(if lock.is_empty() { BATCH_MAX } else { LOCKED_MAX }) {
            let (rows, changed) = at_once(&wire.client, &statement, some).await?;
            whole.0.extend(rows);
            whole.1.extend(changed);
        }
        return Ok(whole);
    }
    let statement = wire.prepared(stmt.postgres, if locks { stmt.lock } else { "" }).await?;
    for some in sets.chunks(IN_FLIGHT) {
        for answer in in_a_row(&wire.client, &statement, some).await {
            let (rows, changed) = answer?;
            whole.0.extend(rows);
            whole.1.push(changed);
        }
    }
    Ok(whole)
}

/// No two sets are about the same row.
fn differ(batch: &Batch, sets: &[Vec<Value>]) -> bool {
    let mut seen = BTreeSet::new();
    batch.keys == 0 || sets.iter().all(|set| seen.insert(&set[..batch.keys.min(set.len())]))
}

/// One statement for all sets: each array is a column of them.
async fn at_once(
    client: &Client,
    statement: &Statement,
    sets: &[Vec<Value>],
) -> Result<Answer, Error> {
    let width = statement.params().len();
    let columns: Vec<Column<'_>> = (0..width)
        .map(|column| {
            Column(sets.iter().map(|set| set.get(column).unwrap_or(&Value::Null)).collect())
        })
        .collect();
    let params = columns.iter().map(|column| column as &(dyn ToSql + Sync));
    let mut answers = pin!(client.query_raw(statement, params).await?);
    if statement.columns().is_empty() {
        while answers.next().await.transpose()?.is_some() {}
        return Ok((Vec::new(), vec![1; sets.len()]));
    }
    let (mut rows, mut changed) = (Vec::new(), vec![0; sets.len()]);
    while let Some(found) = answers.next().await.transpose()? {
        let mut row = codec::row(&found)?;
        let Value::Int(ord) = row.0.remove(0) else { continue };
        let place = usize::try_from(ord - 1).ok().and_then(|place| changed.get_mut(place));
        if let Some(place) = place {
            *place += 1;
        }
        if !row.0.is_empty() {
            rows.push(row);
        }
    }
    Ok((rows, changed))
}

/// All sets are sent, in order, before the first answer is waited for.
async fn in_a_row(
    client: &Client,
    statement: &Statement,
    sets: &[Vec<Value>],
) -> Vec<Result<(Vec<Row>, u64), Error>> {
    let mut pending: Vec<_> =
        sets.iter().map(|set| Box::pin(one(client, statement, set))).collect();
    let first: Vec<Poll<_>> = future::poll_fn(|cx| {
        Poll::Ready(pending.iter_mut().map(|one| Pin::new(one).poll(cx)).collect())
    })
    .await;
    let mut answers = Vec::with_capacity(sets.len());
    for (one, first) in pending.into_iter().zip(first) {
        answers.push(match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => one.await,
        });
    }
    answers
}

async fn one(
    client: &Client,
    statement: &Statement,
    values: &[Value],
) -> Result<(Vec<Row>, u64), Error> {
    let params = values.iter().map(|value| value as &(dyn ToSql + Sync));
    let mut answers = pin!(client.query_raw(statement, params).await?);
    let mut rows = Vec::new();
    while let Some(found) = answers.next().await.transpose()? {
        rows.push(codec::row(&found)?);
    }
    let changed = answers.rows_affected().unwrap_or(rows.len() as u64);
    Ok((rows, changed))
}
