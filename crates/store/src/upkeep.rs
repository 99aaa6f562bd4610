//! How a store keeps: what its tables cost, and what holds their upkeep back. Only facts; what is too much,
//! and what to do about it, is said by whoever asks.

mod postgres;
mod sqlite;

pub use postgres::upkeep_postgres;
pub use sqlite::upkeep_sqlite;

/// A table of a PostgreSQL store, as the server has counted since its statistics began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableUpkeep {
    pub name: String,
    pub live: i64,
    pub dead: i64,
    /// With its indexes.
    pub bytes: i64,
    pub updates: i64,
    /// Of the updates: those that were made in place.
    pub in_place: i64,
    /// Seconds since it was vacuumed last, by whomever.
    pub vacuumed_ago: Option<i64>,
}

/// Something that keeps vacuum from removing what is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `transaction`, `prepared` or `replication slot`.
    pub kind: &'static str,
    pub name: String,
    /// Seconds; of a slot: not known.
    pub age: Option<i64>,
}

/// What a PostgreSQL server allows, and who lives on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    pub most: i64,
    /// Of those, kept for superusers.
    pub reserved: i64,
    pub used: i64,
    /// Live schedulers, servers and triggerers: who connects.
    pub roles: i64,
    /// The shortest and the longest lease of live workers, in microseconds.
    pub worker_ttls: Option<(i64, i64)>,
}

/// What is known of a PostgreSQL store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostgresUpkeep {
    pub bytes: i64,
    pub tables: Vec<TableUpkeep>,
    pub holders: Vec<Holder>,
    pub connections: Connections,
}

/// What is known of a SQLite file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqliteUpkeep {
    pub page_bytes: i64,
    pub pages: i64,
    /// Pages that hold nothing: used again before the file grows.
    pub free: i64,
    pub wal_bytes: u64,
    /// What `quick_check` found; empty: nothing is wrong.
    pub damage: Vec<String>,
}
