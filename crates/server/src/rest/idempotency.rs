//! `Idempotency-Key` on POST: the same key and request give the same answer for a day, and are
//! carried out once.
//!
//! An answer is kept after its request was carried out. A crash between the two would let a repeat
//! do it again; so requests for which that matters are reserved first:
//! - a trigger decides the id of its run with the reservation, and a repeat finds that run;
//! - a clear that was begun and has no answer is not repeated on a guess: the repeat is refused.
//!
//! All others lead to the state that they name, however often they are carried out. An answer that
//! changed nothing (a problem) is not kept. Keys belong to the token that sent them.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::{Server, dispatch, runs};
use crate::auth::hex;
use axum::http::HeaderMap;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::TriggerRun;
use fencepost_api::rest::routes::{self, Route};
use fencepost_core::time::Span;
use fencepost_store::query::idempotency::{self, Kept};
use sha2::{Digest, Sha256};
use std::sync::{Arc, PoisonError};

/// How long answers are kept.
const KEPT: Span = Span::from_hours(24);
const KEY_MAX: usize = 200;

/// The key of a request.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    let text = header.to_str().unwrap_or_default().trim();
    let sound = !text.is_empty() && text.len() <= KEY_MAX;
    if sound && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(text.into()));
    }
    let text = format!("Idempotency-Key: 1 to {KEY_MAX} printable characters without spaces");
    Err(Failure::new(ProblemCode::BadRequest, text))
}

/// Carries a request out, or answers as it was answered before.
pub(super) async fn serve(mut call: Call, key: &str) -> Done {
    if call.dry_run()? {
        return dispatch::serve(&call).await;
    }
    let owner = call.principal.as_ref().map_or("", |principal| principal.id.as_str());
    let key = format!("{owner}:{key}");
    let digest = digest(&call);
    let _busy = Busy::enter(&call.server, &key)?;
    let known = {
        let tx = call.read().await?;
        idempotency::find(&tx, &key, KEPT).await?
    };
    let begun = match known {
        Some(kept) if kept.digest != digest => return Err(reused()),
        Some(kept) if kept.status != 0 => return again(&call, kept),
        Some(kept) => Some(kept),
        None => None,
    };
    let again = begun.is_some();
    let reserved = reserve(&mut call, &key, &digest, begun).await?;
    match dispatch::serve(&call).await {
        Ok(answer) => {
            keep(&call, &key, digest, &answer).await?;
            Ok(answer)
        }
        Err(failure) if again && is_own_run(&call, &failure) => {
            let answer = runs::accepted(&call, call.run_id.as_deref().unwrap_or_default()).await?;
            keep(&call, &key, digest, &answer).await?;
            Ok(answer)
        }
        Err(failure) => {
            if reserved {
                give_back(&call, &key, &digest).await?;
            }
            Err(failure)
        }
    }
}

/// What makes two requests the same.
fn digest(call: &Call) -> String {
    let mut hash = Sha256::new();
    for part in [call.route.name, call.uri.path(), call.uri.query().unwrap_or_default()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(&call.body);
    hex(&hash.finalize())
}

fn reused() -> Failure {
    let text = "this Idempotency-Key came with another request before; use a fresh key";
    Failure::new(ProblemCode::IdempotencyKeyReused, text)
}

/// The answer that was given before.
fn again(call: &Call, kept: Kept) -> Done {
    if *call.route == routes::TOKEN_CREATE {
        let text = "a token was made with this key, and is told only once";
        return Err(Failure::new(ProblemCode::Conflict, text)
            .suggest("revoke it (fencepost tokens list) and make another with a fresh key"));
    }
    let location = if kept.status == 202 { runs::location_of(&kept.body) } else { None };
    Ok(Answer { status: kept.status, body: kept.body, location })
}

/// Reserves a key where a repeat could do harm; whether it did.
async fn reserve(
    call: &mut Call,
    key: &str,
    digest: &str,
    begun: Option<Kept>,
) -> Result<bool, Failure> {
    let is_once = is_once(call.route);
    if *call.route != routes::RUN_TRIGGER && !is_once {
        return Ok(false);
    }
    if let Some(kept) = begun {
        if is_once {
            let text = "a request with this key was begun, and it is not known whether it was \
                        carried out: it is not repeated on a guess";
            return Err(Failure::new(ProblemCode::Conflict, text)
                .suggest("look at what is there, and ask again with a fresh key if need be"));
        }
        call.run_id = Some(kept.body);
        return Ok(true);
    }
    if !is_once {
        let given = call.body::<TriggerRun>()?.run_id;
        call.run_id = Some(given.unwrap_or_else(|| runs::new_run_id(call.cx())));
    }
    let body = call.run_id.clone().unwrap_or_default();
    let kept = Kept { digest: digest.into(), status: 0, body };
    if put(call, key, &kept).await? { Ok(true) } else { Err(reused()) }
}

fn is_once(route: &Route) -> bool {
    [routes::RUN_CLEAR, routes::TASK_CLEAR, routes::BACKFILL_CREATE].contains(route)
}

/// A repeated trigger found the run that it had made itself.
fn is_own_run(call: &Call, failure: &Failure) -> bool {
    *call.route == routes::RUN_TRIGGER && failure.0.known() == Some(ProblemCode::RunExists)
}

async fn keep(call: &Call, key: &str, digest: String, answer: &Answer) -> Result<(), Failure> {
    let secret = *call.route == routes::TOKEN_CREATE;
    let body = if secret { String::new() } else { answer.body.clone() };
    // The request is done: that its answer cannot be kept is no reason to say that it failed.
    let _ = put(call, key, &Kept { digest, status: answer.status, body }).await;
    Ok(())
}

async fn put(call: &Call, key: &str, kept: &Kept) -> Result<bool, Failure> {
    let tx = call.cx().store.begin("keep_answer").await?;
    let put = idempotency::put(&tx, key, kept, KEPT).await?;
    idempotency::prune(&tx, KEPT).await?;
    tx.commit().await?;
    Ok(put)
}

async fn give_back(call: &Call, key: &str, digest: &str) -> Result<(), Failure> {
    let tx = call.cx().store.begin("forget_key").await?;
    idempotency::forget(&tx, key, digest).await?;
    tx.commit().await?;
    Ok(())
}

/// A key whose request is being carried out by this process.
struct Busy {
    server: Arc<Server>,
    key: String,
}

impl Busy {
    fn enter(server: &Arc<Server>, key: &str) -> Result<Self, Failure> {
        let mut busy = server.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if !busy.insert(key.into()) {
            let text = "a request with this Idempotency-Key is being carried out";
            return Err(Failure::new(ProblemCode::Conflict, text).suggest("ask again in a moment"));
        }
        Ok(Self { server: Arc::clone(server), key: key.into() })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut busy = self.server.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.remove(&self.key);
    }
}
