//! What the roles of an installation of many processes have in common: the PostgreSQL store, and the
//! hints of the others.

use super::member::Membership;
use super::store::{failed, pg_options};
use super::{engine_settings, hooks, prepare_rows, surroundings};
use crate::config::Settings;
use crate::error::{CliError, Outcome};
use fencepost_core::hook::Hooks;
use fencepost_core::state::JobKind;
use fencepost_engine::Cx;
use fencepost_store::{PgOptions, Store};

/// Opens the store for a role of that kind.
pub(super) async fn open_as(
    settings: &Settings,
    kind: JobKind,
    crash: &hooks::Crash,
) -> Outcome<Membership> {
    let url = url(settings, kind)?;
    let store = Store::open_postgres(url, options(kind, ""), hooks::hooks(crash)?).await;
    let store = store.map_err(|error| failed(&error))?;
    let cx = Cx::new(store, surroundings::env(), engine_settings(settings));
    prepare_rows(&cx, &surroundings::uuid()).await?;
    let hints = cx.wakes.clone();
    tokio::spawn(async move { hints.listen().await });
    Ok(Membership { cx, settings: settings.clone(), kind })
}

/// A handle that is the heart's alone.
pub(super) async fn open_for_heart(settings: &Settings, kind: JobKind) -> Outcome<Store> {
    let options = PgOptions { writers: 1, readers: 1, ..options(kind, " heart") };
    let opened = Store::open_postgres(url(settings, kind)?, options, Hooks::none()).await;
    opened.map_err(|error| failed(&error))
}

fn options(kind: JobKind, part: &str) -> PgOptions {
    pg_options(&format!("fencepost {kind}{part}"))
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
