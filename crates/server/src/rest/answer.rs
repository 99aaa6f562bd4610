//! What a handler gives, and how it becomes a response.

use super::failure::Failure;
use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Response, StatusCode};
use fencepost_api::problem::{self, Problem, ProblemCode};
use serde::Serialize;

/// What every handler returns.
pub(crate) type Done = Result<Answer, Failure>;

/// A good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// JSON; empty: none.
    pub(crate) body: String,
    /// Where the thing that was made is.
    pub(crate) location: Option<String>,
}

impl Answer {
    /// 200.
    pub(crate) fn ok(body: &impl Serialize) -> Done {
        Self::with_status(200, body)
    }

    /// Any status with a body.
    pub(crate) fn with_status(status: u16, body: &impl Serialize) -> Done {
        let body = serde_json::to_string(body)
            .map_err(|error| Failure::new(ProblemCode::Internal, error.to_string()))?;
        Ok(Self { status, body, location: None })
    }

    /// 204.
    pub(crate) const fn nothing() -> Self {
        Self { status: 204, body: String::new(), location: None }
    }
}

/// Headers of every answer: it is for its caller alone, and is what it says it is.
const ALWAYS: [(HeaderName, &str); 3] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
];
const JSON: &str = "application/json";

/// The response to a request for `path`.
pub(crate) fn response(done: Done, path: &str, allow: Option<&str>) -> Response<Body> {
    let mut response = match done {
        Ok(answer) => good(answer),
        Err(Failure(problem, ..)) => bad(*problem, path, allow),
    };
    for (name, value) in ALWAYS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn good(answer: Answer) -> Response<Body> {
    let kind = (!answer.body.is_empty()).then_some(JSON);
    let mut response = plain(answer.status, kind, answer.body);
    set(&mut response, LOCATION, answer.location.as_deref());
    // A body with the news that the server is not ready comes back soon.
    set(&mut response, RETRY_AFTER, (answer.status == 503).then_some("1"));
    response
}

fn bad(mut problem: Problem, path: &str, allow: Option<&str>) -> Response<Body> {
    problem.instance = Some(path.to_owned());
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let mut response = plain(problem.status, Some(problem::CONTENT_TYPE), body);
    let (again, who) = (matches!(problem.status, 429 | 503), problem.status == 401);
    set(&mut response, RETRY_AFTER, again.then_some("1"));
    set(&mut response, WWW_AUTHENTICATE, who.then_some("Bearer"));
    set(&mut response, ALLOW, allow);
    response
}

fn plain(status: u16, kind: Option<&'static str>, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, CONTENT_TYPE, kind);
    response
}

/// A value that no header can carry is left out.
fn set(response: &mut Response<Body>, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        response.headers_mut().insert(name, value);
    }
}
