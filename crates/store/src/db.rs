//! Statements, values, rows and transactions: what the queries are written in.

mod hint;
mod postgres;
mod sqlite;
mod stmt;
mod value;

pub use hint::{Hint, Topic};
pub use postgres::PgOptions;
pub(crate) use postgres::{
    Target, Wire as PgWire, connect as pg_connect, dial as pg_dial, wrong as pg_error,
};
pub use sqlite::{MemoryDb, Replica, Way};
pub use stmt::{Batch, Stmt};
pub use value::{Columns, Row, Value};

use crate::error::{StoreError, StoreErrorKind};
use crate::migrate;
use crate::query::event::Event;
use crate::query::lease;
use crate::witness::{Noted, Sign, Witness};
use fencepost_core::hook::{HookVerdict, Hooks};
use fencepost_core::id::JobId;
use fencepost_core::time::Timestamp;
pub use postgres::Hints;
use postgres::Postgres;
pub(crate) use sqlite::{connect as sqlite_connect, wrong as sqlite_error};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The store's clock: the wall clock of its host, or a simulated one.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl StoreClock {
    /// A clock read by `read`.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
    /// The instant.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreClock")
    }
}

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    driver: Driver,
    clock: StoreClock,
    hooks: Hooks,
    witness: Witness,
    /// Whose lease each writing transaction asserts first.
    own: Option<(JobId, u32)>,
}

#[derive(Debug, Clone)]
enum Driver {
    Sqlite { writer: sqlite::Lane, reader: sqlite::Lane },
    Memory(sqlite::Inline),
    Postgres(Arc<Postgres>),
}

/// Where a session is.
#[derive(Debug)]
enum Session {
    Sqlite(sqlite::Session),
    Memory(sqlite::InlineSession),
    Postgres(postgres::Session),
}

impl Store {
    /// Opens the SQLite file (making it if it is new), migrates it, and checks its version.
    ///
    /// A file that needs a migration is copied beside itself first (`NAME.bak-vN`).
    pub fn open_sqlite(path: &Path, clock: StoreClock, hooks: Hooks) -> Result<Self, StoreError> {
        migrate::migrate_sqlite(path, clock.now())?;
        let writer = sqlite::Lane::writer(path)?;
        let reader = sqlite::Lane::readers(path, 2)?;
        Ok(Self::of(Driver::Sqlite { writer, reader }, clock, hooks))
    }

    /// A handle of one simulated process on a database in memory that others share with it.
    pub fn open_memory(db: &MemoryDb, clock: StoreClock, hooks: Hooks, way: Option<Way>) -> Self {
        let driver = Driver::Memory(sqlite::Inline::new(db.clone(), way));
        Self::of(driver, clock, hooks)
    }

    fn of(driver: Driver, clock: StoreClock, hooks: Hooks) -> Self {
        Self { driver, clock, hooks, witness: Witness::default(), own: None }
    }

    /// Opens a PostgreSQL store, which must be migrated already ([`crate::migrate_postgres`]): a role
    /// never changes the schema under the others.
    pub async fn open_postgres(
        url: &str,
        options: PgOptions,
        hooks: Hooks,
    ) -> Result<Self, StoreError> {
        let postgres = Arc::new(Postgres::open(url, options).await?);
        let clock = postgres.clock();
        Ok(Self::of(Driver::Postgres(postgres), clock, hooks))
    }

    /// The installation that a SQLite file belongs to; `None` if there is no file, or it is fresh.
    /// The file is only read.
    pub fn installation_of(path: &Path) -> Option<String> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = rusqlite::Connection::open_with_flags(path, flags).ok()?;
        let text = "SELECT installation_id FROM installation WHERE one = 1";
        connection.query_row(text, [], |row| row.get(0)).ok()
    }

    /// Begins a transaction that may write. On SQLite one runs at a time, and commits that wait for
    /// each other share one sync of the disk; on PostgreSQL each sees what is committed, statement
    /// by statement, and locks the rows that it decides on.
    pub async fn begin(&self, op: &'static str) -> Result<Tx, StoreError> {
        let tx = self.witness.judged(self.open(op, true).await)?;
        if let Some((job, epoch)) = self.own
            && !lease::assert_own(&tx, job, epoch).await?
        {
            let message = format!("job {job} is not running in epoch {epoch}");
            let fenced = StoreError::new(StoreErrorKind::Fenced, op, message);
            return self.witness.judged(Err(fenced));
        }
        Ok(tx)
    }

    /// The same store, whose transactions are witnessed.
    pub fn witnessed(&self, witness: Witness) -> Self {
        Self { witness, ..self.clone() }
    }

    /// The same store for a job: every transaction that may write begins with the assertion that the
    /// job runs, in this epoch, and fails as [`StoreErrorKind::Fenced`] otherwise. Nobody can declare
    /// the job lost while such a transaction is open.
    pub fn guarded(&self, job: JobId, epoch: u32) -> Self {
        Self { own: Some((job, epoch)), ..self.clone() }
    }

    /// Begins a transaction that only reads: one snapshot, beside the writers.
    pub async fn read(&self, op: &'static str) -> Result<Tx, StoreError> {
        self.witness.judged(self.open(op, false).await)
    }

    async fn open(&self, op: &'static str, writes: bool) -> Result<Tx, StoreError> {
        if self.hooks.pass(op, "begin") != HookVerdict::Go {
            return Err(StoreError::new(StoreErrorKind::Unavailable, op, "failed by a hook"));
        }
        let (session, now) = match &self.driver {
            Driver::Sqlite { writer, reader } => {
                let session = if writes { writer } else { reader }.session(op).await?;
                (Session::Sqlite(session), self.clock.now())
            }
            Driver::Memory(inline) => {
                (Session::Memory(inline.session(op, writes).await?), self.clock.now())
            }
            Driver::Postgres(postgres) => {
                let (session, now) = postgres.session(op, writes).await?;
                (Session::Postgres(session), now)
            }
        };
        self.witness.tell(Sign::Answered);
        let (hooks, witness) = (self.hooks.clone(), self.witness.clone());
        Ok(Tx { op, session, now, hooks, witness, noted: Noted::default(), turn: Mutex::new(()) })
    }

    /// The store's clock. On PostgreSQL an estimate for waits; what is kept comes from [`Tx::now`].
    pub fn clock(&self) -> &StoreClock {
        &self.clock
    }

    /// Whether other processes may use this store at the same time.
    pub const fn is_shared(&self) -> bool {
        matches!(self.driver, Driver::Postgres(_))
    }

    /// Hints to other processes that there may be something to do. Never waits; may be lost.
    pub fn hint(&self, topic: Topic) {
        if let Driver::Postgres(postgres) = &self.driver {
            postgres.hint(topic);
        }
    }

    /// The hints of other processes; `None` where there can be no other.
    pub fn hints(&self) -> Option<Hints> {
        match &self.driver {
            Driver::Sqlite { .. } | Driver::Memory(_) => None,
            Driver::Postgres(postgres) => Some(postgres.hints()),
        }
    }
}

/// A transaction. Dropped without a commit, it is rolled back; after an error of a statement it can
/// only be dropped.
///
/// Statements that are asked for at once (`try_join!`) run in the order in which they are asked for,
/// and none waits for the answer to the one before it.
#[derive(Debug)]
pub struct Tx {
    op: &'static str,
    session: Session,
    now: Timestamp,
    hooks: Hooks,
    witness: Witness,
    noted: Noted,
    /// Who sends a statement has it: first come, first sent.
    turn: Mutex<()>,
}

impl Tx {
    /// The store's time at the beginning of this transaction.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Rows of one statement.
    pub async fn query(&self, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        Ok(self.run(stmt, vec![values]).await?.0)
    }

    /// The first row, if there is one.
    pub async fn query_opt(
        &self,
        stmt: &Stmt,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(stmt, values).await?.into_iter().next())
    }

    /// The rows of one statement with many sets of values, one after the other.
    pub async fn query_many(
        &self,
        stmt: &Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Vec<Row>, StoreError> {
        Ok(self.run(stmt, sets).await?.0)
    }

    /// How many rows a statement changed.
    pub async fn execute(&self, stmt: &Stmt, values: Vec<Value>) -> Result<u64, StoreError> {
        Ok(self.run(stmt, vec![values]).await?.1.into_iter().sum())
    }

    /// How many rows each set of values changed.
    pub async fn execute_many(
        &self,
        stmt: &Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Vec<u64>, StoreError> {
        Ok(self.run(stmt, sets).await?.1)
    }

    /// These lines are witnessed once this transaction has committed.
    pub fn note(&self, events: &[Event]) {
        self.noted.add(&self.witness, events);
    }

    async fn run(
        &self,
        stmt: &Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<(Vec<Row>, Vec<u64>), StoreError> {
        self.witness.judged(self.send(stmt, sets).await)
    }

    async fn send(
        &self,
        stmt: &Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<(Vec<Row>, Vec<u64>), StoreError> {
        if sets.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let sets = sets.into_iter().map(|set| set.into_iter().map(Value::storable).collect());
        let sets: Vec<Vec<Value>> = sets.collect();
        let turn = self.turn.lock().await;
        self.pass(stmt.name)?;
        match &self.session {
            Session::Sqlite(session) => {
                let sent = session.send(self.op, *stmt, sets)?;
                drop(turn);
                sent.answer().await
            }
            Session::Memory(session) => session.run(self.op, *stmt, sets).await,
            Session::Postgres(session) => session.run(self.op, *stmt, sets, turn).await,
        }
    }

    /// Commits. After an error it is not known whether it is done, unless the kind says so.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let (witness, noted) = (self.witness.clone(), std::mem::take(&mut self.noted));
        witness.judged(self.finish().await)?;
        let lines = noted.into_lines();
        if !lines.is_empty() {
            witness.tell(Sign::Committed(&lines));
        }
        Ok(())
    }

    async fn finish(self) -> Result<(), StoreError> {
        let (op, hooks) = (self.op, self.hooks);
        let lost = |why: &str| Err(StoreError::new(StoreErrorKind::Unavailable, op, why));
        let before = hooks.pass(op, "before_commit");
        if before == HookVerdict::Fail {
            return lost("failed by a hook");
        }
        match self.session {
            Session::Sqlite(session) => session.commit(op).await?,
            Session::Memory(session) => session.commit(op).await?,
            Session::Postgres(session) => session.commit(op).await?,
        }
        let after = hooks.pass(op, "after_commit");
        if before == HookVerdict::Go && after == HookVerdict::Go {
            Ok(())
        } else {
            lost("the reply was lost")
        }
    }

    fn pass(&self, step: &str) -> Result<(), StoreError> {
        match self.hooks.pass(self.op, step) {
            HookVerdict::Go | HookVerdict::CommittedButUnknown => Ok(()),
            HookVerdict::Fail => {
                Err(StoreError::new(StoreErrorKind::Unavailable, self.op, "failed by a hook"))
            }
        }
    }
}

/// Builds a list of values from anything that is one.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}
pub use values as params;
