//! One request on its way to its handler, checked and taken apart.

use super::Server;
use super::failure::Failure;
use crate::auth::Principal;
use crate::body::{self, escape};
use axum::body::Bytes;
use axum::extract::Query;
use axum::http::Uri;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::DryRun;
use fencepost_api::rest::routes::Route;
use fencepost_core::time::Timestamp;
use fencepost_engine::Cx;
use fencepost_store::Tx;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How often what has no hint is looked at by a long poll.
const TICK: Duration = Duration::from_millis(250);
/// The longest long poll.
const LONGEST: Duration = Duration::from_secs(30);

/// One request.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) route: &'static Route,
    /// The names in the path, decoded.
    pub(crate) args: Vec<String>,
    pub(crate) uri: Uri,
    /// `None` on public routes only.
    pub(crate) principal: Option<Principal>,
    pub(crate) body: Bytes,
    /// The id of the run to be made, decided before (see `idempotency`).
    pub(crate) run_id: Option<String>,
}

impl Call {
    /// The engine.
    pub(crate) fn cx(&self) -> &Cx {
        &self.server.state.cx
    }

    /// A name in the path; the route table says how many there are.
    pub(crate) fn arg(&self, place: usize) -> &str {
        self.args.get(place).map_or("", String::as_str)
    }

    /// How events name the caller.
    pub(crate) fn by(&self) -> &str {
        self.principal.as_ref().map_or("anonymous", |principal| principal.name.as_str())
    }

    /// A snapshot.
    pub(crate) async fn read(&self) -> Result<Tx, Failure> {
        Ok(self.cx().store.read(self.route.name).await?)
    }

    /// The query.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let read = Query::<T>::try_from_uri(&self.uri);
        read.map(|Query(query)| query)
            .map_err(|error| Failure::new(ProblemCode::BadRequest, error.body_text()))
    }

    /// Whether the answer is to say only what would be done.
    pub(crate) fn dry_run(&self) -> Result<bool, Failure> {
        Ok(self.query::<DryRun>()?.dry_run)
    }

    /// The body as JSON; no body is an empty object.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let value = body::json(&self.body)?;
        match nul_at(&value, &mut String::new()) {
            Some(pointer) => Err(Failure::field(pointer, "a NUL character; take it out")),
            None => Ok(value),
        }
    }

    /// The body.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        body::typed(self.json()?)
    }

    /// Looks until there is something, the time is over, or the server ends. `look` says what there
    /// is, and whether it is worth an answer. `hinted`: also as soon as the engine has moved.
    pub(crate) async fn poll<T, F>(
        &self,
        wait_ms: Option<u32>,
        hinted: bool,
        look: impl Fn() -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<(T, bool), Failure>>,
    {
        let wait = Duration::from_millis(wait_ms.unwrap_or(0).into()).min(LONGEST);
        let mut stop = self.server.state.stop.clone();
        if wait.is_zero() || *stop.borrow() {
            return Ok(look().await?.0);
        }
        let readers = &self.cx().wakes.readers;
        let news = async {
            loop {
                let hint = readers.notified();
                tokio::pin!(hint);
                // Before the look: what comes between is not missed.
                hint.as_mut().enable();
                let (found, worth) = look().await?;
                if worth {
                    return Ok(found);
                }
                let hint = async { if hinted { hint.await } else { std::future::pending().await } };
                // Over or hinted at: the next look answers either way.
                let _ = tokio::time::timeout(TICK, hint).await;
            }
        };
        let over = tokio::select! {
            found = tokio::time::timeout(wait, news) => found.ok(),
            _ = stop.wait_for(|ending| *ending) => None,
        };
        match over {
            Some(found) => found,
            None => Ok(look().await?.0),
        }
    }
}

/// The pointer to a text with a NUL: one database stores none, so neither takes one.
fn nul_at(value: &Value, place: &mut String) -> Option<String> {
    let length = place.len();
    let mut below = |key: &str, value: &Value| {
        place.push('/');
        place.push_str(&escape(key));
        let found = if key.contains('\0') { Some(place.replace('\0', "␀")) } else { None };
        let found = found.or_else(|| nul_at(value, place));
        place.truncate(length);
        found
    };
    match value {
        Value::String(text) => text.contains('\0').then(|| place.clone()),
        Value::Array(list) => {
            list.iter().enumerate().find_map(|(index, item)| below(&index.to_string(), item))
        }
        Value::Object(map) => map.iter().find_map(|(key, item)| below(key, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// An instant of a query.
pub(crate) fn instant(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let wrong = |error: fencepost_core::time::TimeError| {
        Failure::field(format!("?{name}"), error.to_string())
    };
    text.map(|text| text.parse().map_err(wrong)).transpose()
}

/// States of a query, separated by commas, each checked by `parse`.
pub(crate) fn states<T>(
    name: &str,
    text: Option<&str>,
    parse: fn(&str) -> Option<T>,
) -> Result<String, Failure> {
    let text = text.unwrap_or_default();
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if let Some(unknown) = words.iter().find(|word| parse(word).is_none()) {
        let message = format!("`{unknown}` is not a state");
        return Err(Failure::field(format!("?{name}"), message));
    }
    Ok(fencepost_store::query::listing::words(words))
}
