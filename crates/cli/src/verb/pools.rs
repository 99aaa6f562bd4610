//! `fencepost pools`.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Subcommand;
use fencepost_api::rest::{ListQuery, Pool, PoolPut, routes};
use serde_json::json;

/// Show and change pools: how much of something may be used at once
#[derive(Debug, Subcommand)]
pub(crate) enum Pools {
    /// List pools with what is used and what waits
    #[command(after_help = "Example:\n  fencepost pools list -o json")]
    List,
    /// Show one pool
    #[command(after_help = "Example:\n  fencepost pools get warehouse")]
    Get {
        /// The pool's name
        name: String,
    },
    /// Make a pool, or change its slots
    #[command(
        after_help = "Example:\n  fencepost pools set warehouse 10 --description \"connections\""
    )]
    Set {
        /// The pool's name
        name: String,
        /// How many task slots may be in use at once
        slots: u32,
        /// What it stands for
        #[arg(long)]
        description: Option<String>,
    },
    /// Delete a pool that no task uses
    #[command(after_help = "Example:\n  fencepost pools delete warehouse --yes")]
    Delete {
        /// The pool's name
        name: String,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Pools) -> Outcome {
    let client = cx.client()?;
    match verb {
        Pools::List => {
            let items = client.list(routes::POOL_LIST, &[], &ListQuery::default(), None)?;
            cx.out.list::<Pool>(items, client.now())?;
        }
        Pools::Get { name } => {
            let pool = client.get(routes::POOL_SHOW, &[&name], &())?;
            cx.out.show::<Pool>(pool, client.now())?;
        }
        Pools::Set { name, slots, description } => {
            if cx.global.dry_run {
                let now = existing(&client.read(routes::POOL_SHOW, &[&name]))?;
                let about = json!({ "name": name, "slots": slots, "description": description });
                cx.out.would(&format!("set {name}: {now} → {slots} slots"), &about)?;
                return Ok(Exit::Done);
            }
            let body = PoolPut { slots: Some(slots), description };
            let pool = client.send(routes::POOL_PUT, &[&name], &(), &body)?;
            cx.out.show::<Pool>(pool, client.now())?;
        }
        Pools::Delete { name } => {
            let pool: Pool = client.read(routes::POOL_SHOW, &[&name])?;
            let text = format!("{name} ({} slots, {} in use)", pool.slots, pool.used_slots);
            if cx.global.dry_run {
                return cx.out.would(&format!("delete {text}"), &pool).map(|()| Exit::Done);
            }
            cx.confirm(&format!("Delete pool {text}?"))?;
            client.get(routes::POOL_DELETE, &[&name], &())?;
            cx.out.remark(&format!("deleted {name}"));
        }
    }
    Ok(Exit::Done)
}

/// The slots that a pool has, or that there is none.
fn existing(answer: &Outcome<Pool>) -> Outcome<String> {
    match answer {
        Ok(pool) => Ok(pool.slots.to_string()),
        Err(error) if error.exit == Exit::NotFound => Ok("no pool".into()),
        Err(error) => Err(CliError::new(error.exit, error.message.clone())),
    }
}
