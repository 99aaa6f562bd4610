//! The stores that are measured: files of SQLite, databases of a PostgreSQL of one's own.

use crate::{instant, wall};
use fencepost_core::hook::Hooks;
use fencepost_store::{PgOptions, Store, StoreClock};
use fencepost_testing::Cluster;
use std::path::{Path, PathBuf};

/// A server that keeps what it promises.
const DURABLE: &str = "fsync = on\nfull_page_writes = on\nsynchronous_commit = on\n\
    shared_buffers = 256MB\nmax_wal_size = 4GB\nautovacuum_naptime = 60s\n";

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Place {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Place {
    /// A handle of one role on the store, which is migrated.
    pub async fn open(&self, role: &str) -> anyhow::Result<Store> {
        Ok(match self {
            Self::Sqlite(path) => Store::open_sqlite(path, StoreClock::new(wall), Hooks::none())?,
            Self::Postgres(url) => {
                let began = instant();
                let options = PgOptions::new(role, move || {
                    let micros = i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX);
                    fencepost_core::time::Span::from_micros(micros)
                });
                fencepost_store::migrate_postgres(url, options.clone()).await?;
                Store::open_postgres(url, options, Hooks::none()).await?
            }
        })
    }
}

/// A PostgreSQL server, and a folder for files. Both go with it.
pub struct Stores {
    server: Cluster,
    folder: tempfile::TempDir,
}

impl Stores {
    pub const POSTGRES: &'static str = "PostgreSQL";
    pub const SQLITE: &'static str = "SQLite";
    pub const KINDS: [&'static str; 2] = [Self::POSTGRES, Self::SQLITE];

    /// Starts the server, with more lines of `postgresql.conf`.
    pub fn new(settings: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let settings = [DURABLE, settings].concat();
        let server = Cluster::start_with(&folder.path().join("pg"), &settings)?;
        Ok(Self { server, folder })
    }

    /// A fresh, empty place of a kind.
    pub fn place(&self, kind: &str, name: &str) -> anyhow::Result<Place> {
        if kind == Self::SQLITE {
            return Ok(Place::Sqlite(self.folder.path().join(format!("{name}.db"))));
        }
        self.server.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(Place::Postgres(self.server.url(name)))
    }

    pub const fn server(&self) -> &Cluster {
        &self.server
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
