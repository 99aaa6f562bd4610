//! API tokens: made, listed, revoked. Only their hashes are known here.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::dag_view::time;
use super::failure::Failure;
use crate::auth::{hash, new_secret};
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_api::rest::routes::Role;
use fencepost_api::rest::{ListQuery, Token, TokenCreate, TokenCreated};
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::Cx;
use fencepost_store::query::api_token::{self, ApiToken};
use fencepost_store::query::event::{self, Event};
use std::sync::PoisonError;

const NAME_MAX: usize = 200;
/// A hundred years: longer is for ever, and that is said by leaving it out.
const LONGEST_SECS: u64 = 100 * 366 * 86_400;

pub(super) async fn list(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read("tokens", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let found = api_token::page(&tx, &after, limit + 1).await?;
    let (found, next) = cursor::cut(found, limit, |token| cursor::write("tokens", &[&token.id]));
    let items = found.into_iter().map(|token| wire(call, token)).collect();
    Answer::ok(&cursor::page(items, next))
}

fn wire(call: &Call, token: ApiToken) -> Token {
    let used = call.server.used.lock().unwrap_or_else(PoisonError::into_inner);
    Token {
        // This process knows its own calls exactly, the store those of all to some minutes.
        last_used_at: time(used.get(&token.id).copied().max(token.used_at)),
        id: token.id,
        name: Some(token.name).filter(|name| !name.is_empty()),
        role: token.role,
        created_at: token.created_at.to_string(),
        expires_at: time(token.expires_at),
        revoked_at: time(token.revoked_at),
    }
}

pub(super) async fn create(call: &Call) -> Done {
    let body: TokenCreate = call.body()?;
    Answer::with_status(201, &make(call.cx(), body, call.by()).await?)
}

/// Makes a token, also where no server runs.
pub async fn create_token(cx: &Cx, body: TokenCreate, by: &str) -> Result<TokenCreated, Problem> {
    Ok(make(cx, body, by).await?)
}

async fn make(cx: &Cx, body: TokenCreate, by: &str) -> Result<TokenCreated, Failure> {
    let names: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let role = Role::parse(&body.role)
        .ok_or_else(|| Failure::field("/role", format!("one of {}", names.join(", "))))?;
    let name = body.name.unwrap_or_default();
    if name.len() > NAME_MAX || name.chars().any(char::is_control) {
        let text = format!("at most {NAME_MAX} bytes, without control characters");
        return Err(Failure::field("/name", text));
    }
    let life = life(body.expires_in_secs)?;
    let secret = new_secret()
        .map_err(|error| Failure::new(ProblemCode::Internal, format!("no randomness: {error}")))?;
    let tx = cx.store.begin("create_token").await?;
    let token = ApiToken {
        id: cx.env.job_id().to_string(),
        name,
        role: role.as_str().into(),
        created_at: tx.now(),
        expires_at: life.map(|life| tx.now().plus(life)),
        revoked_at: None,
        created_by: by.into(),
        used_at: None,
    };
    api_token::insert(&tx, &token, &hash(&secret)).await?;
    event::append(&tx, vec![line(by, "token_created", &token)]).await?;
    tx.commit().await?;
    let expires_at: Option<Timestamp> = token.expires_at;
    Ok(TokenCreated {
        id: token.id,
        token: secret,
        role: token.role,
        name: Some(token.name).filter(|name| !name.is_empty()),
        expires_at: time(expires_at),
    })
}

fn life(secs: Option<u64>) -> Result<Option<Span>, Failure> {
    match secs {
        None => Ok(None),
        Some(0) => Err(Failure::field("/expires_in_secs", "at least 1")),
        Some(secs) => {
            let secs = secs.min(LONGEST_SECS);
            Ok(Some(Span::from_secs(i64::try_from(secs).unwrap_or(i64::MAX))))
        }
    }
}

pub(super) async fn revoke(call: &Call) -> Done {
    let tx = call.cx().store.begin("revoke_token").await?;
    let Some(token) = api_token::get(&tx, call.arg(0)).await? else {
        let text = format!("there is no token `{}`", call.arg(0));
        return Err(
            Failure::new(ProblemCode::NoSuchToken, text).suggest("see  fencepost tokens list")
        );
    };
    if token.revoked_at.is_some() {
        return Ok(Answer::nothing());
    }
    if !api_token::revoke(&tx, &token.id).await? {
        let text = "it is the last valid token of an admin: nobody could make another";
        return Err(Failure::new(ProblemCode::LastAdminToken, text)
            .suggest("fencepost tokens create --role admin, then revoke this one"));
    }
    event::append(&tx, vec![line(call.by(), "token_revoked", &token)]).await?;
    tx.commit().await?;
    Ok(Answer::nothing())
}

fn line(by: &str, kind: &'static str, token: &ApiToken) -> Event {
    Event {
        kind,
        actor: by.into(),
        reason: Some(format!("{} {} {}", token.role, token.id, token.name).trim_end().into()),
        ..Event::default()
    }
}
