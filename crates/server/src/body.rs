//! What both APIs do with a request: who sends it, and its body as JSON with limits.

use crate::rest::Failure;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use fencepost_api::problem::ProblemCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use std::time::Duration;

/// How long a body may take to arrive.
const BODY_LIMIT: Duration = Duration::from_secs(30);

/// The secret of `Authorization: Bearer`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// The whole body, if it is JSON and has at most `most` bytes.
pub(crate) async fn take(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Failure> {
    let too_large =
        || Failure::new(ProblemCode::TooLarge, format!("a body has at most {most} bytes"));
    let announced = headers.get(CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > most as u64) {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(body, most);
    let read = tokio::time::timeout(BODY_LIMIT, reading)
        .await
        .map_err(|_| Failure::new(ProblemCode::BadRequest, "the body did not arrive in time"))?;
    let bytes = read.map_err(|error| {
        let long = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit"));
        if long {
            too_large()
        } else {
            Failure::new(ProblemCode::BadRequest, format!("the body broke off: {error}"))
        }
    })?;
    if !bytes.is_empty() && !is_json(headers) {
        let text = "write `Content-Type: application/json`";
        return Err(Failure::new(ProblemCode::UnsupportedMediaType, text));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The bytes as JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        Failure::new(ProblemCode::BadRequest, format!("the body is not JSON: {error}"))
    })?;
    // A struct would also be read from a list, by the order of its fields.
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::field("", "the body must be an object"))
    }
}

/// JSON as a type; a mistake is named by its place.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer: String = error.path().iter().map(pointer_part).collect();
        Failure::field(pointer, error.inner().to_string())
    })
}

/// `/params/regions/0`, as RFC 6901 writes it.
fn pointer_part(segment: &Segment) -> String {
    match segment {
        Segment::Map { key } => format!("/{}", escape(key)),
        Segment::Seq { index } => format!("/{index}"),
        Segment::Enum { variant } => format!("/{}", escape(variant)),
        Segment::Unknown => "/?".into(),
    }
}

/// A key as a part of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
