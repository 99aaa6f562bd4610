//! What the roles of an installation of many processes have in common: the PostgreSQL store, and the
//! hints of the others.

use super::journal::Journal;
use super::member::Membership;
use super::store::{failed, pg_options};
use super::{Options, engine_settings, hooks, keyring, prepare_rows, surroundings};
use crate::config::{Settings, lint};
use crate::error::{CliError, Outcome};
use fencepost_core::hook::Hooks;
use fencepost_core::lease::Lease;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::Cx;
use fencepost_store::{PgOptions, Store};

/// Opens the store for a role of that kind.
pub(super) async fn open_as(role: &Options, kind: JobKind) -> Outcome<Membership> {
    let settings = &role.settings;
    let url = url(settings, kind)?;
    let options = options(settings, kind, "")?;
    let store = Store::open_postgres(url, options, hooks::hooks(&role.crash)?).await;
    let store = store.map_err(|error| failed(&error))?;
    let cx = Cx::new(
        store,
        surroundings::env(keyring::load(settings, keyring::Absent::DoWithout)?),
        engine_settings(role),
    );
    let journal = Journal::new(settings, kind.as_str());
    journal.listen(&cx.meters);
    journal.started(settings);
    prepare_rows(&cx, &surroundings::uuid()).await?;
    let hints = cx.wakes.clone();
    tokio::spawn(async move { hints.listen().await });
    Ok(Membership { cx, settings: settings.clone(), kind, journal })
}

/// A handle that is the heart's alone.
pub(super) async fn open_for_heart(settings: &Settings, kind: JobKind) -> Outcome<Store> {
    let options = PgOptions { writers: 1, readers: 1, ..options(settings, kind, " heart")? };
    let opened = Store::open_postgres(url(settings, kind)?, options, Hooks::none()).await;
    opened.map_err(|error| failed(&error))
}

/// Whoever stands still inside a transaction is out of it before another takes over.
fn options(settings: &Settings, kind: JobKind, part: &str) -> Outcome<PgOptions> {
    let lease = lease(settings, kind)?;
    let left = lease.lease_ttl.as_micros() - lease.self_fence.as_micros();
    let options = pg_options(&format!("fencepost {kind}{part}"));
    Ok(options.within(Span::from_micros(left)))
}

/// The configured lease of a role of that kind.
pub(super) fn lease(settings: &Settings, kind: JobKind) -> Outcome<Lease> {
    lint::lease_settings(settings, kind.as_str())
        .check()
        .map_err(|error| CliError::usage(format!("[{kind}] {error}")))
}

/// The configured store, which must be PostgreSQL's.
fn url(settings: &Settings, kind: JobKind) -> Outcome<&str> {
    let url = settings.text("store.url").unwrap_or_default();
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(url);
    }
    let message = format!("a {kind} of its own needs PostgreSQL; `{url}` is a SQLite store");
    Err(CliError::usage(message)
        .hint("name one:  --store postgres://HOST/DATABASE, or [store] url")
        .hint("a SQLite store is for  fencepost standalone, which is all roles in one process"))
}
