//! A connection: how it is made, and what is remembered of it.

use super::tls::Tls;
use super::url::Target;
use super::{guard, wrong};
use crate::db::StoreClock;
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Span;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::{Client, Connection, Socket, Statement};

/// The kernel counts these in whole seconds, and takes no zero.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

/// How a PostgreSQL store is used.
#[derive(Clone)]
pub struct PgOptions {
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// How long the server lets this process hold up others: in one statement, in a pause inside a
    /// transaction, in an answer that it does not read. Well below the scheduler's lease.
    pub guard: Span,
    /// How long a transaction that may write takes at most, in total: below what a scheduler's lease
    /// leaves between its self-fence and its end (6 s of 30 s).
    pub transaction: Span,
    /// Transactions that may write at once.
    pub writers: usize,
    /// Transactions that only read at once.
    pub readers: usize,
    /// A clock that runs evenly, also while the machine sleeps (boot time).
    pub elapsed: Arc<dyn Fn() -> Span + Send + Sync>,
    /// A clock in place of the server's: for tests that move the time.
    pub clock: Option<StoreClock>,
    /// Loading statements take their locks. Always, but in the test that shows what they are for.
    pub locks: bool,
}

impl PgOptions {
    /// Sizes that serve one role.
    pub fn new(application_name: &str, elapsed: impl Fn() -> Span + Send + Sync + 'static) -> Self {
        Self {
            application_name: application_name.into(),
            guard: Span::from_secs(5),
            transaction: Span::from_millis(5_500),
            writers: 8,
            readers: 4,
            elapsed: Arc::new(elapsed),
            clock: None,
            locks: true,
        }
    }

    /// The same for a role whose lease leaves only so much between its self-fence and its end.
    pub fn within(mut self, left: Span) -> Self {
        let part = |of: Span, n: i64| Span::from_micros(of.as_micros() / n * (n - 1));
        self.transaction = self.transaction.min(part(left, 12));
        self.guard = self.guard.min(part(self.transaction, 11));
        self
    }
}

impl fmt::Debug for PgOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgOptions({}, guard {})", self.application_name, self.guard)
    }
}

/// A connection, and the statements that were prepared on it.
pub(crate) struct Wire {
    pub(crate) client: Client,
    prepared: Mutex<BTreeMap<(&'static str, &'static str), Statement>>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A statement, prepared at its first use; `more` is appended to its text.
    pub(super) async fn prepared(
        &self,
        text: &'static str,
        more: &'static str,
    ) -> Result<Statement, tokio_postgres::Error> {
        let known = self.known().get(&(text, more)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.client.prepare(&[text, more].concat()).await?;
        self.known().insert((text, more), made.clone());
        Ok(made)
    }

    fn known(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<(&'static str, &'static str), Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects with what keeps a silent line from being waited for, and sets the session's guards.
pub(crate) async fn connect(target: &Target, options: &PgOptions) -> Result<Wire, StoreError> {
    let (client, connection) = dial(target, options).await?;
    // It ends with the client, or with the line; who waits for an answer is told.
    tokio::spawn(serve(connection));
    let wire = Wire { client, prepared: Mutex::default() };
    guard::set(&wire.client, options).await?;
    Ok(wire)
}

async fn serve(connection: Connection<Socket, super::tls::Stream<Socket>>) {
    // The error reaches every request that is under way.
    let _ = connection.await;
}

/// Connects with a reader of its messages, such as notifications; the caller drives it.
pub(crate) async fn dial(
    target: &Target,
    options: &PgOptions,
) -> Result<(Client, Connection<Socket, super::tls::Stream<Socket>>), StoreError> {
    let mut config = target.config.clone();
    let wait = options.guard.to_std();
    config
        .application_name(&options.application_name)
        .connect_timeout(wait)
        .tcp_user_timeout(wait)
        .keepalives(true)
        .keepalives_idle(wait.max(KEEPALIVE_MIN))
        .keepalives_interval((wait / 3).max(KEEPALIVE_MIN))
        .keepalives_retries(3);
    let tls = Tls::new(&target.trust)?;
    // The library's limit is for the line alone: a server that accepts and then says nothing is
    // not waited for either.
    match tokio::time::timeout(wait * 2, config.connect(tls)).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(error)) => Err(unreached(target, &wrong("connect", &error))),
        Err(_) => {
            let silent = StoreError::new(StoreErrorKind::Unavailable, "connect", "no answer");
            Err(unreached(target, &silent))
        }
    }
}

fn unreached(target: &Target, error: &StoreError) -> StoreError {
    StoreError::new(error.kind, "connect", format!("{}: {}", target.shown(), error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_below_what_the_lease_leaves() {
        let of = |secs| {
            let options = PgOptions::new("t", || Span::ZERO).within(Span::from_secs(secs));
            (options.transaction, options.guard)
        };
        assert_eq!(of(6), (Span::from_millis(5_500), Span::from_secs(5)));
        assert_eq!(of(600), of(6), "a long lease makes nothing slower");
        let (transaction, guard) = of(1);
        assert!(guard < transaction && transaction < Span::from_secs(1), "{guard} {transaction}");
    }
}
