//! Connections that wait for their next transaction.

use super::connect::{PgOptions, Wire, connect};
use super::run::Limit;
use super::url::Target;
use super::{Session, standing, wrong};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Timestamp;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What the transactions of a lane may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::db) enum Use {
    Write,
    Read,
}

impl Use {
    /// A reader sees one snapshot. A writer sees what is committed and locks what it decides on.
    const fn begin(self) -> &'static str {
        match self {
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }
}

/// Not the beginning of the transaction as PostgreSQL's now(), which may be before a wait. A standby has no
/// time for us: what it says of the rows may be of yesterday.
const CLOCK: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL \
                     ELSE (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint END";

/// How long the answer to a ROLLBACK is waited for by who needs a connection.
const RETURN_MAX: Duration = Duration::from_millis(200);

/// A connection whose ROLLBACK is not answered yet.
type Returning = BoxFuture<'static, Option<Arc<Wire>>>;

/// A number of connections for one use. Cheap to clone.
#[derive(Clone)]
pub(in crate::db) struct Lane(Arc<Shared>);

struct Shared {
    target: Target,
    options: PgOptions,
    use_: Use,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Arc<Wire>>>,
    returning: Mutex<Vec<Returning>>,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lane({:?}, {})", self.0.use_, self.0.target.shown())
    }
}

impl Lane {
    pub(in crate::db) fn new(target: Target, options: PgOptions, use_: Use) -> Self {
        let count = match use_ {
            Use::Write => options.writers,
            Use::Read => options.readers,
        };
        let permits = Arc::new(Semaphore::new(count.max(1)));
        let (idle, returning) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { target, options, use_, permits, idle, returning }))
    }

    /// Begins a transaction; with the server's time.
    pub(in crate::db) async fn session(
        &self,
        op: &'static str,
    ) -> Result<(Session, Timestamp), StoreError> {
        let closed = |error| StoreError::new(StoreErrorKind::Unavailable, op, error);
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(closed)?;
        loop {
            let waiting = self.waiting().await;
            let is_used = waiting.is_some();
            let wire = match waiting {
                Some(wire) => wire,
                None => Arc::new(connect(&self.0.target, &self.0.options).await?),
            };
            let locks = self.0.use_ == Use::Write && self.0.options.locks;
            // From here on the session gives it back, also if this future is dropped.
            let limit = (self.0.use_ == Use::Write).then(|| Limit::from_now(&self.0.options));
            let session = Session::new(wire, self.clone(), locks, limit);
            match session.begin(self.0.use_.begin(), CLOCK).await {
                Ok(Some(now)) => return Ok((session.holding(permit), now)),
                // A failover behind the same address: the next connection may find the primary.
                Ok(None) => {
                    session.close();
                    if !is_used {
                        return Err(standing::a_standby(&self.0.target, op));
                    }
                }
                // It broke while nobody looked, as all do when the server is started again.
                Err(_) if is_used && session.is_broken() => {}
                Err(error) => return Err(wrong(op, &error)),
            }
        }
    }

    /// A connection that is ready, if there is one.
    async fn waiting(&self) -> Option<Arc<Wire>> {
        loop {
            if let Some(wire) = lock(&self.0.idle).pop() {
                if !wire.client.is_closed() {
                    return Some(wire);
                }
                continue;
            }
            let returning = lock(&self.0.returning).pop()?;
            // One that does not come back soon is closed with its future.
            if let Ok(Some(wire)) = tokio::time::timeout(RETURN_MAX, returning).await {
                return Some(wire);
            }
        }
    }

    /// Takes a connection back whose transaction is over.
    pub(super) fn take_back(&self, wire: Arc<Wire>) {
        lock(&self.0.idle).push(wire);
    }

    /// Takes a connection back whose transaction may be open: it is rolled back, and used again
    /// once the server has said so.
    pub(super) fn roll_back(&self, wire: Arc<Wire>) {
        if wire.client.is_closed() {
            return;
        }
        let mut returning: Returning = Box::pin(async move {
            let answer = wire.client.batch_execute("ROLLBACK").await;
            answer.is_ok().then_some(wire)
        });
        // The first look at it sends the request: the locks are not kept until somebody comes.
        match (&mut returning).now_or_never() {
            Some(Some(wire)) => self.take_back(wire),
            Some(None) => {}
            None => lock(&self.0.returning).push(returning),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
