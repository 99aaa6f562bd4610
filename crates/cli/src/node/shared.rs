//! What the roles of an installation of many processes have in common: the PostgreSQL store, the job
//! that they are, and the hints of the others.

use super::store::{failed, pg_options};
use super::{engine_settings, hooks, identity, prepare_rows, surroundings};
use crate::config::Settings;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::state::JobKind;
use fencepost_engine::Cx;
use fencepost_engine::operations::register::{self, Identity};
use fencepost_store::Store;

/// A role with its place among the others.
pub(super) struct Joined {
    pub(super) cx: Cx,
    pub(super) who: Identity,
}

/// Opens the store and registers there as a job of that kind.
pub(super) async fn join(
    settings: &Settings,
    kind: JobKind,
    crash: &hooks::Crash,
) -> Outcome<Joined> {
    let store = open(settings, kind.as_str(), crash).await?;
    let cx = Cx::new(store, surroundings::env(), engine_settings(settings));
    prepare_rows(&cx, &surroundings::uuid()).await?;
    let hints = cx.wakes.clone();
    tokio::spawn(async move { hints.listen().await });
    let who = identity::of_role(&cx, kind);
    register::register(&cx, &who)
        .await
        .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
    Ok(Joined { cx, who })
}

/// Leaves: the job ends in order. What cannot be written now is seen by the others at last.
pub(super) async fn leave(joined: &Joined) {
    let _ = register::leave(&joined.cx, joined.who.job_id).await;
}

/// Opens the store that the configuration names, which must be PostgreSQL's.
async fn open(settings: &Settings, role: &str, crash: &hooks::Crash) -> Outcome<Store> {
    let url = settings.text("store.url").unwrap_or_default();
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        let message = format!("a {role} of its own needs PostgreSQL; `{url}` is a SQLite store");
        return Err(CliError::usage(message)
            .hint("name one:  --store postgres://HOST/DATABASE, or [store] url")
            .hint(
                "a SQLite store is for  fencepost standalone, which is all roles in one process",
            ));
    }
    let options = pg_options(&format!("fencepost {role}"));
    let opened = Store::open_postgres(url, options, hooks::hooks(crash)?).await;
    opened.map_err(|error| failed(&error))
}
