//! Statements: constants with a name and a text for each database.

/// A statement: its name, which is also its function's and its hook point's, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stmt {
    pub name: &'static str,
    /// What SQLite runs.
    pub text: &'static str,
    /// What PostgreSQL runs.
    pub postgres: &'static str,
    /// On PostgreSQL, in a transaction that may write, this is appended: the lock of the rows that
    /// are decided on. SQLite has one writer and needs none.
    pub lock: &'static str,
    /// On PostgreSQL, all sets of values at once.
    pub batch: Option<Batch>,
    /// What the store in memory runs, where it plays what SQLite has not: a server that fails over.
    pub memory: Option<&'static str>,
}

/// A text over arrays, one per parameter, for many sets of values in one statement.
///
/// A text that answers rows says with each, in its first and only column, which set it is of (`ord`,
/// from 1); one that answers none changes one row for every set. The sets must differ in their first
/// `keys` values, or they run one after the other: of two changes of one row in one statement
/// only one would happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub keys: usize,
    pub text: &'static str,
}

impl Stmt {
    /// A statement whose text serves both databases.
    pub const fn same(name: &'static str, text: &'static str) -> Self {
        Self::split(name, text, text)
    }

    /// A statement with a text for each database.
    pub const fn split(name: &'static str, sqlite: &'static str, postgres: &'static str) -> Self {
        Self { name, text: sqlite, postgres, lock: "", batch: None, memory: None }
    }

    /// Takes a lock on PostgreSQL in transactions that may write: ` FOR UPDATE` and its like.
    pub const fn locking(mut self, lock: &'static str) -> Self {
        self.lock = lock;
        self
    }

    /// Runs another text on the store in memory.
    pub const fn in_memory(mut self, text: &'static str) -> Self {
        self.memory = Some(text);
        self
    }

    /// Runs many sets of values in one statement on PostgreSQL.
    pub const fn batched(mut self, keys: usize, text: &'static str) -> Self {
        self.batch = Some(Batch { keys, text });
        self
    }
}
