//! `fencepost tokens`: credentials of people, programs and workers.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::store::{self, Address};
use crate::output::typed;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use fencepost_api::rest::{ListQuery, Token, TokenCreate, TokenCreated, routes};
use fencepost_core::time::Span;
use fencepost_server::rest::create_token;
use serde_json::json;

/// Make, list and revoke API tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Make a token; it is printed once, alone on stdout
    #[command(
        after_help = "Example:\n  fencepost tokens create --role operator --name ci --expires 90d > token"
    )]
    Create {
        /// What it may do
        #[arg(long, value_parser = PossibleValuesParser::new(["worker", "viewer", "operator", "author", "admin"]))]
        role: String,
        /// What it is called in lists and events
        #[arg(long)]
        name: Option<String>,
        /// How long it is good for (90d); else for ever
        #[arg(long, value_name = "SPAN")]
        expires: Option<Span>,
        /// Make it in this store itself (sqlite:PATH or postgres://...): no server is asked
        #[arg(long, value_name = "URL")]
        store: Option<String>,
    },
    /// List tokens (never the tokens themselves)
    #[command(after_help = "Example:\n  fencepost tokens list")]
    List,
    /// Make a token worthless from now on
    #[command(after_help = "Example:\n  fencepost tokens revoke TOKEN_ID --yes")]
    Revoke {
        /// As `tokens list` shows it
        id: String,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Tokens) -> Outcome {
    match verb {
        Tokens::Create { role, name, expires, store } => {
            if cx.global.dry_run {
                let text = format!("make a token of role {role}");
                let about = json!({ "role": role, "name": name });
                return cx.out.would(&text, &about).map(|()| Exit::Done);
            }
            let secs = expires.map(|span| u64::try_from(span.as_secs()).unwrap_or(0));
            let body = TokenCreate { role, name, expires_in_secs: secs };
            let answer = match &store {
                Some(url) => make(&Address::find(cx, Some(url))?, body)?,
                None => cx.client()?.send(routes::TOKEN_CREATE, &[], &(), &body)?,
            };
            if !cx.out.data(&answer)? {
                let created: TokenCreated = typed(answer)?;
                cx.out.print(&format!("{}\n", created.token))?;
                cx.out.remark("this is the only time that the token is shown");
            }
        }
        Tokens::List => {
            let client = cx.client()?;
            let items = client.list(routes::TOKEN_LIST, &[], &ListQuery::default(), None)?;
            cx.out.list::<Token>(items, client.now())?;
        }
        Tokens::Revoke { id } => {
            if cx.global.dry_run {
                let about = json!({ "id": id });
                return cx.out.would(&format!("revoke {id}"), &about).map(|()| Exit::Done);
            }
            cx.confirm(&format!("Revoke token {id}?"))?;
            cx.client()?.get(routes::TOKEN_REVOKE, &[&id], &())?;
            cx.out.remark(&format!("revoked {id}"));
        }
    }
    Ok(Exit::Done)
}

/// Whoever may write to the store may make a token: this is how the first one is made.
fn make(address: &Address, body: TokenCreate) -> Outcome<serde_json::Value> {
    store::wait_for(async {
        let (opened, _lock) = store::open(address).await?;
        let made = create_token(&store::engine(opened), body, "cli:tokens create --store").await;
        serde_json::to_value(made.map_err(CliError::from_problem)?)
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))
    })
}
