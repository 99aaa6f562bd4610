//! `http` tasks: one request as it is written in a DAG file, and what its answer means.
//!
//! As with a wait, two passes read it: [`check`] a file whose templates are not rendered yet, and
//! [`HttpTask::read`] what was rendered. The request is made by a process on a worker, an attempt like any other.

use crate::time::Span;
use serde_json::{Map, Value};

/// Every key, with what it says.
pub const KEYS: [(&str, &str); 9] = [
    ("url", "Where: it begins with http:// or https://."),
    ("method", "GET, or POST if there is a body; PUT, PATCH, DELETE, HEAD, OPTIONS."),
    ("headers", "Headers of the request."),
    (
        "headers_env",
        "Headers whose values are environment variables of the task: {Authorization: TOKEN}.",
    ),
    ("body", "A text that is sent."),
    ("json", "JSON that is sent; a text that is one expression keeps the type of its value."),
    ("status", "The status code or codes that are a success; default: 200 to 299."),
    ("timeout", "The longest request; default 60s."),
    ("outputs", "{NAME: JSON pointer into the answer}."),
];
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const TIMEOUT: Span = Span::from_secs(60);
/// Largest request as JSON text.
const TEXT_MAX: usize = 1 << 20;

/// Why it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpTaskError {
    #[error("it is a URL, or a mapping with a `url`")]
    NoRequest,
    #[error("it is larger than {TEXT_MAX} bytes")]
    TooLarge,
    #[error("unknown key `{0}`")]
    Unknown(String),
    #[error("`{0}` {1}")]
    Bad(String, String),
}

impl HttpTaskError {
    /// The key that it is about.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Unknown(key) | Self::Bad(key, _) => Some(key),
            Self::NoRequest | Self::TooLarge => None,
        }
    }
}

/// A request, and what its answer must be.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpTask {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    /// Header, and the variable that has its value.
    pub headers_env: Vec<(String, String)>,
    pub body: Option<Body>,
    /// Empty: 200 to 299.
    pub status: Vec<u16>,
    pub timeout: Span,
    /// Name, and JSON pointer.
    pub outputs: Vec<(String, String)>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Text(String),
    Json(Value),
}

/// What a status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Accepted,
    /// It may pass by itself: 408, 425, 429 and 5xx.
    Temporary,
    Refused,
}

/// Checks a request whose templates are not rendered yet: those are taken as right.
pub fn check(written: &Value) -> Result<(), HttpTaskError> {
    Reader { is_final: false }.task(written).map(drop)
}

impl HttpTask {
    /// Reads a rendered request.
    pub fn read(rendered: &Value) -> Result<Self, HttpTaskError> {
        Reader { is_final: true }.task(rendered)
    }

    /// What an answer with that status means.
    pub fn answered(&self, status: u16) -> Answered {
        let is_good = |codes: &[u16]| match codes {
            [] => (200..300).contains(&status),
            codes => codes.contains(&status),
        };
        match status {
            _ if is_good(&self.status) => Answered::Accepted,
            408 | 425 | 429 | 500..=599 => Answered::Temporary,
            _ => Answered::Refused,
        }
    }
}

struct Reader {
    is_final: bool,
}

fn bad(key: &str, why: &str) -> HttpTaskError {
    HttpTaskError::Bad(key.into(), why.into())
}

impl Reader {
    fn is_open(&self, text: &str) -> bool {
        !self.is_final && (text.contains("{{") || text.contains("{%"))
    }

    fn task(&self, written: &Value) -> Result<HttpTask, HttpTaskError> {
        let short = Map::from_iter([("url".to_owned(), written.clone())]);
        let entries = if written.is_string() { Some(&short) } else { written.as_object() };
        let entries = entries.ok_or(HttpTaskError::NoRequest)?;
        if written.to_string().len() > TEXT_MAX {
            return Err(HttpTaskError::TooLarge);
        }
        let known = |key: &&String| KEYS.iter().any(|(name, _)| name == key);
        if let Some(key) = entries.keys().find(|key| !known(key)) {
            return Err(HttpTaskError::Unknown(key.clone()));
        }
        let body = body(entries)?;
        Ok(HttpTask {
            url: self.url(entries)?,
            method: self.method(entries, body.is_some())?,
            headers: texts(entries, "headers")?,
            headers_env: texts(entries, "headers_env")?,
            body,
            status: status(entries)?,
            timeout: self.timeout(entries)?,
            outputs: outputs(entries)?,
        })
    }

    fn url(&self, entries: &Map<String, Value>) -> Result<String, HttpTaskError> {
        let url = entries.get("url").and_then(Value::as_str).ok_or(HttpTaskError::NoRequest)?;
        let is_url = url.starts_with("http://") || url.starts_with("https://");
        let is_odd = url.chars().any(|c| c.is_control() || c == ' ') && self.is_final;
        if (is_url || self.is_open(url)) && !is_odd {
            return Ok(url.to_owned());
        }
        Err(bad("url", "must be a URL that begins with http:// or https://"))
    }

    fn method(
        &self,
        entries: &Map<String, Value>,
        has_body: bool,
    ) -> Result<String, HttpTaskError> {
        let default = if has_body { "POST" } else { "GET" };
        let Some(given) = entries.get("method").filter(|value| !value.is_null()) else {
            return Ok(default.into());
        };
        let given = given.as_str().unwrap_or_default();
        let upper = given.to_ascii_uppercase();
        let is_open = self.is_open(given);
        if !METHODS.contains(&upper.as_str()) && !is_open {
            return Err(bad("method", &format!("must be one of {}", METHODS.join(", "))));
        }
        if has_body && ["GET", "HEAD", "OPTIONS"].contains(&upper.as_str()) {
            return Err(bad("method", "has no body: leave out `body` and `json`, or write POST"));
        }
        Ok(upper)
    }

    fn timeout(&self, entries: &Map<String, Value>) -> Result<Span, HttpTaskError> {
        let Some(value) = entries.get("timeout").filter(|value| !value.is_null()) else {
            return Ok(TIMEOUT);
        };
        let text = value.as_str().unwrap_or_default();
        if self.is_open(text) {
            return Ok(TIMEOUT);
        }
        let span = text.parse::<Span>().ok().filter(|span| *span > Span::ZERO);
        span.ok_or_else(|| bad("timeout", "must be a duration such as 30s or 5m"))
    }
}

fn body(entries: &Map<String, Value>) -> Result<Option<Body>, HttpTaskError> {
    match (entries.get("body"), entries.get("json")) {
        (Some(_), Some(_)) => Err(bad("json", "and `body` are two bodies: leave out one")),
        (Some(Value::String(text)), None) => Ok(Some(Body::Text(text.clone()))),
        (Some(_), None) => Err(bad("body", "must be text; write `json` for anything else")),
        (None, Some(json)) => Ok(Some(Body::Json(json.clone()))),
        (None, None) => Ok(None),
    }
}

fn texts(entries: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, HttpTaskError> {
    let Some(value) = entries.get(key).filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let all = value.as_object().ok_or_else(|| bad(key, "must be a mapping"))?;
    let one = |(name, value): (&String, &Value)| {
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && b != b':');
        let text = value.as_str().filter(|text| is_name && !text.contains(['\r', '\n', '\0']));
        let text =
            text.ok_or_else(|| bad(key, "must be names of headers and text without line breaks"));
        Ok((name.clone(), text?.to_owned()))
    };
    all.iter().map(one).collect()
}

fn status(entries: &Map<String, Value>) -> Result<Vec<u16>, HttpTaskError> {
    let one = |value: &Value| {
        value.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| (100..600).contains(n))
    };
    let codes: Option<Vec<u16>> = match entries.get("status") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(value) => one(value).map(|code| vec![code]),
    };
    codes
        .filter(|codes| !codes.is_empty())
        .ok_or_else(|| bad("status", "must be a status code from 100 to 599, or a list of them"))
}

fn outputs(entries: &Map<String, Value>) -> Result<Vec<(String, String)>, HttpTaskError> {
    let Some(value) = entries.get("outputs").filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let why = "must be a mapping of names (A-Z a-z 0-9 _ -) to JSON pointers such as /data/id";
    let all = value.as_object().ok_or_else(|| bad("outputs", why))?;
    let one = |(name, value): (&String, &Value)| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let is_name = !name.is_empty() && name.len() <= 100 && name.bytes().all(fits);
        let pointer = value.as_str().filter(|text| text.is_empty() || text.starts_with('/'));
        let pointer = pointer.filter(|_| is_name).ok_or_else(|| bad("outputs", why))?;
        Ok((name.clone(), pointer.to_owned()))
    };
    all.iter().map(one).collect()
}
