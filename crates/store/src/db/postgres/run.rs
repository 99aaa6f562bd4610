//! A transaction on a connection: its statements, its end.

use super::codec::{self, Column};
use super::connect::{PgOptions, Wire};
use super::pool::Lane;
use super::wrong;
use crate::db::stmt::{Batch, Stmt};
use crate::db::{Row, Value};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::{Span, Timestamp};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, future};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{MutexGuard, OwnedSemaphorePermit};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

type Answer = (Vec<Row>, Vec<u64>);
/// What is asked of the server, once it is looked at first.
type Asked<'a> = BoxFuture<'a, Result<Answer, Error>>;

/// Sets of values that are under way at once on a connection.
const IN_FLIGHT: usize = 512;
/// Sets of values in one batched statement.
const BATCH_MAX: usize = 1_000;
/// The same, where it answers rows that it locks: a process that is stopped while such an answer is on
/// its way must not keep the server waiting with the locks, so two such answers fit the line's buffers,
/// and the next is asked for when one is here.
const LOCKED_MAX: usize = 75;

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

    /// Begins, and reads the clock, in one trip. `None`: this is a standby.
    pub(super) async fn begin(
        &self,
        begin: &str,
        clock: &'static str,
    ) -> Result<Option<Timestamp>, Error> {
        let Some(wire) = &self.wire else { return Ok(None) };
        let clock = wire.prepared(clock, "").await?;
        let begun = wire.client.batch_execute(begin);
        let read = wire.client.query_one_scalar::<Option<i64>, _>(&clock, &[]);
        let (begun, read) = future::join(begun, read).await;
        match (begun, read) {
            // It refuses to begin what may write.
            (_, Ok(None)) => Ok(None),
            (begun, read) => {
                begun?;
                Ok(read?.map(Timestamp::from_micros))
            }
        }
    }

    /// The connection is of no use: it is closed, and the server rolls back what there is.
    pub(super) fn close(mut self) {
        self.wire = None;
    }

    /// Runs a statement; `turn` is given back when it is sent.
    pub(in crate::db) async fn run(
        &self,
        op: &'static str,
        stmt: Stmt,
        sets: Vec<Vec<Value>>,
        turn: MutexGuard<'_, ()>,
    ) -> Result<Answer, StoreError> {
        if let Some(first) = &*self.failure() {
            return Err(ended(op, first));
        }
        let mut waiting = Waiting { session: self, op, stmt, is_over: false };
        let answer = match &self.wire {
            Some(wire) => {
                let work = run(wire, stmt, self.locks, &sets, turn);
                Limit::within(self.limit.as_ref(), work).await
            }
            None => Some(Ok(Answer::default())),
        };
        waiting.is_over = true;
        let failed = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => {
                let mut error = wrong(op, &error);
                error.message = format!("{}: {}", stmt.name, error.message);
                error
            }
            None => late(op),
        };
        let mut first = self.failure();
        // One that was sent before the first failure was known only tells of that.
        let told = first.as_ref().map_or_else(|| failed.clone(), |first| ended(op, first));
        first.get_or_insert(failed);
        Err(told)
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

/// A statement whose answer is waited for. If that ends early, what became of it is not known.
struct Waiting<'a> {
    session: &'a Session,
    op: &'static str,
    stmt: Stmt,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let why = format!("{}: its answer was not waited for", self.stmt.name);
            let abandoned = StoreError::new(StoreErrorKind::Unavailable, self.op, why);
            self.session.failure().get_or_insert(abandoned);
        }
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

async fn run(
    wire: &Wire,
    stmt: Stmt,
    locks: bool,
    sets: &[Vec<Value>],
    turn: MutexGuard<'_, ()>,
) -> Result<Answer, Error> {
    let lock = if locks { stmt.lock } else { "" };
    let batch = stmt.batch.filter(|batch| sets.len() > 1 && differ(batch, sets));
    if let Some(batch) = batch {
        let statement = wire.prepared(batch.text, lock).await?;
        let (most, in_flight) =
            if lock.is_empty() { (BATCH_MAX, IN_FLIGHT) } else { (LOCKED_MAX, 1) };
        let mut parts: Vec<Asked<'_>> = Vec::new();
        for some in sets.chunks(most) {
            parts.push(Box::pin(at_once(&wire.client, &statement, some)));
        }
        return in_a_row(parts, in_flight, turn).await;
    }
    let statement = wire.prepared(stmt.postgres, lock).await?;
    let mut each: Vec<Asked<'_>> = Vec::with_capacity(sets.len());
    for set in sets {
        each.push(Box::pin(one(&wire.client, &statement, set)));
    }
    in_a_row(each, IN_FLIGHT, turn).await
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

/// So many are sent, in order, before the first answer is waited for, and then as many again. When the
/// last is sent, the turn is given back.
async fn in_a_row(
    mut work: Vec<Asked<'_>>,
    in_flight: usize,
    turn: MutexGuard<'_, ()>,
) -> Result<Answer, Error> {
    let (mut whole, mut turn) = (Answer::default(), Some(turn));
    while !work.is_empty() {
        let left = work.split_off(in_flight.min(work.len()));
        let mut pending = std::mem::replace(&mut work, left);
        let first: Vec<Poll<_>> = future::poll_fn(|cx| {
            Poll::Ready(pending.iter_mut().map(|one| one.as_mut().poll(cx)).collect())
        })
        .await;
        if work.is_empty() {
            turn = None;
        }
        for (one, first) in pending.into_iter().zip(first) {
            let answer = match first {
                Poll::Ready(answer) => answer,
                Poll::Pending => one.await,
            };
            let (rows, changed) = answer?;
            whole.0.extend(rows);
            whole.1.extend(changed);
        }
    }
    drop(turn);
    Ok(whole)
}

async fn one(client: &Client, statement: &Statement, values: &[Value]) -> Result<Answer, Error> {
    let params = values.iter().map(|value| value as &(dyn ToSql + Sync));
    let mut answers = pin!(client.query_raw(statement, params).await?);
    let mut rows = Vec::new();
    while let Some(found) = answers.next().await.transpose()? {
        rows.push(codec::row(&found)?);
    }
    let changed = answers.rows_affected().unwrap_or(rows.len() as u64);
    Ok((rows, vec![changed]))
}
