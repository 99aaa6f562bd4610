//! What is remembered: one store, behind drivers, with every statement a named constant.
//!
//! Rules of this crate:
//! 1. A statement selects, locks, or compares and sets; it decides nothing. Zero rows changed is a
//!    normal answer.
//! 2. A statement, its function and its hook point bear one name.
//! 3. Texts are written for both databases (`$n`, `RETURNING`, `ON CONFLICT`, partial indexes); the
//!    unit of work is a batch.
//! 4. Times that are kept come from [`Tx::now`].
//! 5. Every list has a limit.
//! 6. Nothing outside this crate contains SQL.

pub mod db;
pub mod error;
mod migrate;
pub mod probe;
pub mod query;
pub mod upkeep;
mod witness;

pub use db::{
    Batch, Hint, Hints, MemoryDb, PgOptions, Replica, Row, Stmt, Store, StoreClock, Topic, Tx,
    Value, Way, params,
};
pub use error::{StoreError, StoreErrorKind};
pub use migrate::{
    Applied, SCHEMA_VERSION, check_postgres, check_sqlite, migrate_postgres, schema_checksum,
};
pub use witness::{Sign, Witness};
