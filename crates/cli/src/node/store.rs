//! A store by its address, for the verbs that work without a server.

use super::{store_lock, surroundings};
use crate::config::{Settings, refuse};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::hook::Hooks;
use fencepost_core::time::Span;
use fencepost_server::vault::Keyring;
use fencepost_store::{PgOptions, Store, StoreError, StoreErrorKind};
use fencepost_worker::clock::ClockKind;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// An address of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    /// The address that was given, or that of the configuration.
    pub(crate) fn find(cx: &Cx, given: Option<&String>) -> Outcome<Self> {
        if let Some(url) = given {
            return Self::parse(url);
        }
        let settings = Settings::load(&cx.home(), cx.global.config.as_ref(), &cx.env, Vec::new())
            .map_err(|errors| refuse(&errors))?;
        Self::parse(settings.text("store.url").unwrap_or_default())
    }

    fn parse(url: &str) -> Outcome<Self> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.into()));
        }
        // It may hold a password.
        Err(CliError::usage("a store is sqlite:PATH or postgres://USER@HOST/DATABASE"))
    }
}

/// A store of either kind. A SQLite file is this process's alone until the lock is dropped.
pub(crate) async fn open(address: &Address) -> Outcome<(Store, Option<File>)> {
    match address {
        Address::Sqlite(path) => {
            if !path.is_file() {
                let text = format!("there is no store {}", path.display());
                return Err(CliError::new(Exit::NotFound, text));
            }
            let lock = store_lock::take(path)?;
            let store = Store::open_sqlite(path, surroundings::store_clock(), Hooks::none());
            Ok((store.map_err(|error| failed(&error))?, Some(lock)))
        }
        Address::Postgres(url) => {
            let store = Store::open_postgres(url, pg_options("fencepost cli"), Hooks::none());
            Ok((store.await.map_err(|error| failed(&error))?, None))
        }
    }
}

/// How this process uses a PostgreSQL store; the name is shown there.
pub(crate) fn pg_options(application_name: &str) -> PgOptions {
    PgOptions::new(application_name, || {
        let micros = ClockKind::Boottime.now_ns() / 1_000;
        Span::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    })
}

/// An error of a store as this command's.
pub(crate) fn failed(error: &StoreError) -> CliError {
    let exit = match error.kind {
        StoreErrorKind::Setup => Exit::Usage,
        StoreErrorKind::Unavailable
        | StoreErrorKind::Contended
        | StoreErrorKind::Fenced
        | StoreErrorKind::EpochOver
        | StoreErrorKind::Full
        | StoreErrorKind::Constraint
        | StoreErrorKind::Corrupt
        | StoreErrorKind::Decode => Exit::Unexpected,
    };
    CliError::new(exit, error.to_string())
}

/// The engine on a store, for one question or request.
pub(crate) fn engine(store: Store) -> fencepost_engine::Cx {
    fencepost_engine::Cx::new(
        store,
        surroundings::env(Arc::new(Keyring::none())),
        fencepost_engine::Settings::default(),
    )
}

/// Runs a future on a runtime of its own.
pub(crate) fn wait_for<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CliError::from)?.block_on(work)
}
