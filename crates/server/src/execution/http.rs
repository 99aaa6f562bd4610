//! The execution API over HTTP, below `/execution/v1`: version, credential, body, call.
//!
//! Every call may come again: after a lost answer, from a proxy, late. What it does is a conditional
//! statement, so again is fine; what it may do is bound to its credential. A statement about an
//! attempt that is not known gets a typed answer: 404 is for addresses only.

mod calls;

use super::Execution;
use crate::auth::{authenticate, remember};
use crate::body::{bearer, json, take, typed};
use crate::rest::{Done, Failure, response};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use axum::routing::any;
use fencepost_api::execution::wire::{BODY_MAX, Call, Caller, PREFIX, VERSION_HEADER};
use fencepost_api::execution::{EXECUTION_OLDEST, EXECUTION_VERSION};
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_api::rest::routes::Role;
use fencepost_core::id::{AttemptId, JobId, Token};
use serde_json::Value;

/// Who may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Workers and the processes of tasks.
    Workers,
    /// The processes of tasks alone: a standalone has a worker of its own, and no other.
    Attempts,
}

#[derive(Debug, Clone)]
struct Served {
    execution: Execution,
    serves: Serves,
    /// Of the program.
    version: String,
}

/// Somebody with a credential.
enum Whoever {
    /// Joins with the token of that id.
    Join(String),
    Job(JobId),
    Attempt(AttemptId, Token),
}

/// The routes of the execution API.
pub fn routes(execution: Execution, serves: Serves, version: String) -> Router {
    Router::new().route(&format!("{PREFIX}/{{call}}"), any(serve)).with_state(Served {
        execution,
        serves,
        version,
    })
}

async fn serve(State(served): State<Served>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let done = Box::pin(answer(served, request)).await;
    let refused = matches!(&done, Err(Failure(problem, ..)) if problem.status == 405);
    response(done, &path, Some("POST").filter(|_| refused))
}

async fn answer(served: Served, request: Request) -> Done {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let call = Call::find(path).ok_or_else(|| {
        Failure::new(ProblemCode::NoSuchRoute, format!("there is nothing at {path}"))
    })?;
    if parts.method != Method::POST {
        let text = format!("{path} is called with POST");
        return Err(Failure::new(ProblemCode::MethodNotAllowed, text));
    }
    check_version(&parts.headers)?;
    let whoever = admit(&served, call, &parts.headers).await?;
    let bytes = take(&parts.headers, body, BODY_MAX).await?;
    let mut body = json(&bytes)?;
    scrub(&mut body);
    match whoever {
        Whoever::Join(join) => calls::join(&served, call, &join, body).await,
        Whoever::Job(job) => {
            named(&body, job)?;
            calls::job(&served.execution, call, body).await
        }
        Whoever::Attempt(id, token) => {
            calls::attempt(&served.execution.cx, call, (id, token), body).await
        }
    }
}

/// This version and the one before it; a refusal says which side is behind.
fn check_version(headers: &HeaderMap) -> Result<(), Failure> {
    let text = headers.get(VERSION_HEADER).and_then(|text| text.to_str().ok());
    let Some(version) = text.and_then(|text| text.trim().parse::<u32>().ok()) else {
        let text = format!("a header `{VERSION_HEADER}` says the caller's version of this API");
        return Err(Failure::new(ProblemCode::BadRequest, text));
    };
    let (this, behind) = match version {
        EXECUTION_OLDEST..=EXECUTION_VERSION => return Ok(()),
        ..EXECUTION_OLDEST => ("is too old", "upgrade the worker"),
        _ => ("is newer than this server", "upgrade the server first, then its workers"),
    };
    let text = format!(
        "version {version} of the execution API {this}, which serves {EXECUTION_OLDEST} to \
         {EXECUTION_VERSION}"
    );
    Err(Problem::new(ProblemCode::UnsupportedVersion, text).suggest(behind).into())
}

/// Who calls, if they may make this call.
async fn admit(served: &Served, call: Call, headers: &HeaderMap) -> Result<Whoever, Failure> {
    let secret = bearer(headers).ok_or_else(|| {
        let text = "this needs a header `Authorization: Bearer TOKEN`";
        Failure::new(ProblemCode::Unauthenticated, text)
    })?;
    let (cx, credentials) = (&served.execution.cx, &served.execution.credentials);
    if call.caller() != Caller::Attempt && served.serves == Serves::Attempts {
        let text = "a standalone has a worker of its own, and takes no other";
        return Err(Problem::new(ProblemCode::Forbidden, text)
            .suggest("run  fencepost server  on PostgreSQL for workers on other hosts")
            .into());
    }
    match call.caller() {
        Caller::Join => {
            let principal = authenticate(cx, secret).await?;
            if principal.role != Role::Worker {
                let text = format!(
                    "`{}` is a token of role {}, and workers join with one of role worker",
                    principal.name,
                    principal.role.as_str()
                );
                return Err(Problem::new(ProblemCode::Forbidden, text)
                    .suggest("fencepost tokens create --role worker")
                    .into());
            }
            remember(cx, &principal).await;
            Ok(Whoever::Join(principal.id))
        }
        Caller::Job => Ok(Whoever::Job(credentials.job(cx, secret).await?)),
        Caller::Attempt => {
            let (id, token) = credentials.attempt(cx, secret).await?;
            Ok(Whoever::Attempt(id, token))
        }
    }
}

/// A job speaks for itself alone.
fn named(body: &Value, job: JobId) -> Result<(), Failure> {
    let name = body.get("job_id").and_then(Value::as_str).unwrap_or_default();
    if name.parse::<JobId>().is_ok_and(|named| named == job) {
        return Ok(());
    }
    if name.is_empty() {
        return Err(Failure::field("/job_id", "the job that calls"));
    }
    let text = format!("the credential is job {job}'s, and the call is for job {name}");
    Err(Failure::new(ProblemCode::Forbidden, text))
}

/// One database stores no NUL: an end with one in it must be taken all the same (I22).
fn scrub(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(list) => list.iter_mut().for_each(scrub),
        Value::Object(map) => {
            if map.keys().any(|key| key.contains('\0')) {
                let whole = std::mem::take(map);
                map.extend(whole.into_iter().map(|(key, v)| (key.replace('\0', "\u{fffd}"), v)));
            }
            map.values_mut().for_each(scrub);
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The body of a call, typed.
fn read<T: serde::de::DeserializeOwned>(body: Value) -> Result<T, Failure> {
    typed(body)
}
