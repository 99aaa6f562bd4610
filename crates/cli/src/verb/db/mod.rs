//! `fencepost db`: a store without a server: its schema, what is old in it.

mod check;
mod clean;

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::store::{self, Address};
use clap::Subcommand;
use fencepost_store::{Applied, SCHEMA_VERSION, check_postgres, check_sqlite, migrate_postgres};
use serde_json::json;

/// Make and check the tables of a store
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Bring a store up to the schema of this program; again changes nothing
    #[command(
        after_help = "Example:\n  fencepost db migrate --store postgres://fencepost@db/fencepost"
    )]
    Migrate {
        /// sqlite:PATH or postgres://USER@HOST/DATABASE; else [store] url
        #[arg(long, value_name = "URL")]
        store: Option<String>,
    },
    /// Say whether this program can work with a store, and how the store keeps; changes nothing
    #[command(after_help = "\
Example:
  fencepost db check --store postgres://fencepost@db/fencepost    exit 1 if it must be migrated, or is damaged

PostgreSQL: rows, dead rows, size and updates in place of each table, what holds vacuum back, connections.
SQLite: pages, free pages, the WAL, and quick_check. Lines with ! say what to do.")]
    Check {
        /// sqlite:PATH or postgres://USER@HOST/DATABASE; else [store] url
        #[arg(long, value_name = "URL")]
        store: Option<String>,
    },
    /// Remove what is old, in small batches that hold nobody up; with --dry-run only count it
    #[command(after_help = "\
Examples:
  fencepost db clean --dry-run                         by the [retention] settings
  fencepost db clean --older-than 30d --tables runs,logs --store postgres://fencepost@db/fencepost

It may be interrupted: the same command goes on with what is left. Never removed: runs that are not
over, runs of which processes may still run, the newest run of each DAG and the one that the next
looks back at, and runs that their DAG keeps longer (retention:).")]
    Clean(clean::Clean),
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Db) -> Outcome {
    let (given, migrates) = match &verb {
        Db::Migrate { store } => (store, !cx.global.dry_run),
        Db::Check { store } => (store, false),
        Db::Clean(args) => return clean::run(cx, args),
    };
    let address = Address::find(cx, given.as_ref())?;
    let found = store::wait_for(look(&address, migrates))?;
    let is_current = found.now == SCHEMA_VERSION;
    let mut answer = json!({
        "schema_before": found.before, "schema": found.now, "schema_of_program": SCHEMA_VERSION,
        "current": is_current,
    });
    let checks = matches!(verb, Db::Check { .. }) && is_current;
    let kept = if checks { Some(store::wait_for(check::look(&address))?) } else { None };
    if let (Some(kept), Some(answer)) = (&kept, answer.as_object_mut()) {
        answer.extend(kept.data().as_object().cloned().unwrap_or_default());
    }
    if !cx.out.data(&answer)? {
        let more = kept.as_ref().map(check::Kept::text).unwrap_or_default();
        cx.out.print(&format!("{}\n{more}", told(&found)))?;
    }
    let is_damaged = kept.is_some_and(|kept| kept.is_damaged);
    let is_good = (is_current || cx.global.dry_run) && !is_damaged;
    Ok(if is_good { Exit::Done } else { Exit::Unexpected })
}

async fn look(address: &Address, migrates: bool) -> Outcome<Applied> {
    let failed = |error: fencepost_store::StoreError| store::failed(&error);
    match address {
        Address::Sqlite(path) => {
            let before = check_sqlite(path).map_err(failed)?;
            if !migrates || before.now == SCHEMA_VERSION {
                return Ok(before);
            }
            if !path.exists() {
                let text = format!("there is no store {}", path.display());
                return Err(CliError::new(Exit::NotFound, text)
                    .hint("a new one is made by  fencepost standalone"));
            }
            drop(store::open(address).await?);
            Ok(Applied { before: before.before, now: check_sqlite(path).map_err(failed)?.now })
        }
        Address::Postgres(url) if migrates => {
            migrate_postgres(url, store::pg_options("fencepost db")).await.map_err(failed)
        }
        Address::Postgres(url) => {
            check_postgres(url, store::pg_options("fencepost db")).await.map_err(failed)
        }
    }
}

fn told(found: &Applied) -> String {
    let Applied { before, now } = *found;
    if now == SCHEMA_VERSION && before == now {
        return format!("schema version {now}: current");
    }
    if now == SCHEMA_VERSION {
        return format!("schema version {before} -> {now}");
    }
    let state = if now == 0 { "no tables yet".into() } else { format!("schema version {now}") };
    format!("{state}; this program needs {SCHEMA_VERSION}: run  fencepost db migrate")
}
