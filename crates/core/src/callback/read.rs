//! A callback as it is written: `{webhook: {...}}`, the same in a DAG file and in the store.
//!
//! [`Callback::check`] is for a file whose templates are not rendered yet and refuses what no rendering
//! can mend; [`Callback::read`] is for what was rendered, and is exact.

use super::{Address, Callback, Deadline, When};
use crate::time::Span;
use serde_json::{Map, Value};

/// The kinds of callbacks, with what each does.
pub const KINDS: [(&str, &str); 5] = [
    ("webhook", "An HTTP request: {url or conn, method, headers, body}."),
    ("slack", "A message to a Slack-compatible incoming webhook: {conn or url, text}."),
    ("email", "A mail: {to, subject, body, conn}."),
    ("trigger_dag", "A run of another DAG: its name, or {dag_id, conf}."),
    ("run", "A shell command, as a task on a live worker."),
];
/// The keys of a deadline.
pub const DEADLINE_KEYS: [(&str, &str); 3] = [
    ("at", "A time of the day in the DAG's time zone: \"07:30\"."),
    ("after", "A duration from the slot, or from when the run was made."),
    ("callback", "The callbacks."),
];
/// Largest callback as JSON text.
const TEXT_MAX: usize = 64 << 10;
const URL_MAX: usize = 8 << 10;
const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "GET", "DELETE"];

/// The keys of a kind of callback.
pub fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "webhook" => &["url", "conn", "method", "headers", "body"],
        "slack" => &["url", "conn", "text"],
        "email" => &["to", "subject", "body", "conn"],
        "trigger_dag" => &["dag_id", "conf"],
        _ => &[],
    }
}

/// The kind that a callback is written as.
pub fn kind_of(written: &Value) -> Option<&str> {
    written.as_object()?.keys().next().map(String::as_str)
}

/// Why a callback cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    #[error("a callback is an object such as {{\"webhook\": {{\"url\": \"https://...\"}}}}")]
    NoObject,
    #[error("it is larger than {TEXT_MAX} bytes")]
    TooLarge,
    #[error("there is no callback `{0}`")]
    NoKind(String),
    #[error("a callback does one thing, and this one has `{0}` too")]
    Two(String),
    #[error("unknown key `{0}`")]
    Unknown(String),
    #[error("`{0}` {1}")]
    Bad(String, String),
}

impl CallbackError {
    /// The key that it is about.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::NoKind(key) | Self::Two(key) | Self::Unknown(key) | Self::Bad(key, _) => {
                Some(key)
            }
            Self::NoObject | Self::TooLarge => None,
        }
    }
}

fn bad(key: &str, why: &str) -> CallbackError {
    CallbackError::Bad(key.into(), why.into())
}

impl Callback {
    /// Checks a callback whose templates are not rendered yet: those are taken as right.
    pub fn check(written: &Value) -> Result<(), CallbackError> {
        Reader { is_final: false }.callback(written).map(drop)
    }

    /// Reads a callback that was rendered.
    pub fn read(rendered: &Value) -> Result<Self, CallbackError> {
        Reader { is_final: true }.callback(rendered)
    }
}

struct Reader {
    is_final: bool,
}

type Entries = Map<String, Value>;

impl Reader {
    fn callback(&self, written: &Value) -> Result<Callback, CallbackError> {
        let entries = written.as_object().ok_or(CallbackError::NoObject)?;
        let mut each = entries.iter();
        let (kind, given) = each.next().ok_or(CallbackError::NoObject)?;
        if let Some((other, _)) = each.next() {
            return Err(CallbackError::Two(other.clone()));
        }
        if written.to_string().len() > TEXT_MAX {
            return Err(CallbackError::TooLarge);
        }
        if kind == "trigger_dag" && given.is_string() {
            let dag_id = text(&Map::from_iter([(kind.clone(), given.clone())]), kind)?;
            return Ok(Callback::TriggerDag { dag_id, conf: Value::Null });
        }
        if kind == "run" {
            let script = text(&Map::from_iter([(kind.clone(), given.clone())]), kind)?;
            return Ok(Callback::Run { script });
        }
        if !KINDS.iter().any(|(known, _)| known == kind) {
            return Err(CallbackError::NoKind(kind.clone()));
        }
        let given = given.as_object().ok_or_else(|| bad(kind, "must be a mapping"))?;
        let known = keys_of(kind);
        if let Some(other) = given.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(CallbackError::Unknown(other.clone()));
        }
        match kind.as_str() {
            "webhook" => self.webhook(given),
            "slack" => Ok(Callback::Slack { to: self.address(given)?, text: text(given, "text")? }),
            "email" => self.email(given),
            _ => Ok(Callback::TriggerDag {
                dag_id: text(given, "dag_id")?,
                conf: match given.get("conf") {
                    None | Some(Value::Null) => Value::Null,
                    Some(conf @ Value::Object(_)) => conf.clone(),
                    Some(_) => return Err(bad("conf", "must be a mapping")),
                },
            }),
        }
    }

    fn webhook(&self, given: &Entries) -> Result<Callback, CallbackError> {
        let to = self.address(given)?;
        let method = optional(given, "method")?.unwrap_or_else(|| "POST".into());
        let method = if self.is_open(&method) { method } else { method.to_ascii_uppercase() };
        if !METHODS.contains(&method.as_str()) && !self.is_open(&method) {
            return Err(bad("method", &format!("must be one of {}", METHODS.join(", "))));
        }
        let mut headers = Vec::new();
        for (name, value) in object(given, "headers")? {
            let value = value.as_str().ok_or_else(|| bad("headers", "must be texts"))?;
            if !is_header(&name, value) {
                return Err(bad("headers", &format!("cannot have `{name}`")));
            }
            headers.push((name.clone(), value.to_owned()));
        }
        let body = given.get("body").filter(|body| !body.is_null()).cloned();
        Ok(Callback::Webhook { to, method, headers, body })
    }

    fn email(&self, given: &Entries) -> Result<Callback, CallbackError> {
        let to: Vec<String> = match given.get("to") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => {
                let each = many.iter().map(|one| one.as_str().map(str::to_owned));
                each.collect::<Option<_>>().ok_or_else(|| bad("to", "must be addresses"))?
            }
            Some(_) => return Err(bad("to", "must be an address or a list of them")),
            None => return Err(bad("to", "is missing")),
        };
        let wrong = |to: &&String| !self.is_open(to) && !is_mailbox(to);
        if to.is_empty() || to.len() > 100 {
            return Err(bad("to", "must be from 1 to 100 addresses"));
        }
        if let Some(wrong) = to.iter().find(wrong) {
            return Err(bad("to", &format!("has `{wrong}`, which is no address")));
        }
        let subject = optional(given, "subject")?;
        if subject.as_ref().is_some_and(|subject| subject.contains(['\r', '\n']) && self.is_final) {
            return Err(bad("subject", "must be one line"));
        }
        let body = optional(given, "body")?;
        Ok(Callback::Email { to, subject, body, conn: optional(given, "conn")? })
    }

    /// `url` or `conn`, one of them.
    fn address(&self, given: &Entries) -> Result<Address, CallbackError> {
        match (optional(given, "url")?, optional(given, "conn")?) {
            (Some(_), Some(_)) => Err(bad("url", "and `conn` exclude each other")),
            (None, None) => Err(bad("url", "is missing (or a `conn`)")),
            (None, Some(name)) => Ok(Address::Connection(name)),
            (Some(url), None) => {
                let is_url = url.starts_with("http://") || url.starts_with("https://");
                let is_short = url.len() <= URL_MAX && !url.contains(char::is_control);
                if !(self.is_open(&url) || is_url && is_short) {
                    return Err(bad("url", "must begin with http:// or https://"));
                }
                Ok(Address::Url(url))
            }
        }
    }

    /// Whether a text is still to be rendered.
    fn is_open(&self, text: &str) -> bool {
        !self.is_final && (text.contains("{{") || text.contains("{%"))
    }
}

fn is_header(name: &str, value: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token) && !value.contains(['\r', '\n', '\0'])
}

/// Enough to keep a line of the SMTP conversation whole; whether it exists the server says.
fn is_mailbox(address: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>()[],;:\\\"".contains(c);
    address.len() <= 254
        && address.chars().all(is_plain)
        && address.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty() && !domain.is_empty() && !domain.contains('@')
        })
}

fn optional(given: &Entries, key: &str) -> Result<Option<String>, CallbackError> {
    match given.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(given, key).map(Some),
    }
}

fn text(given: &Entries, key: &str) -> Result<String, CallbackError> {
    match given.get(key) {
        Some(Value::String(text)) if !text.is_empty() && !text.contains('\0') => Ok(text.clone()),
        Some(Value::String(_)) => Err(bad(key, "is empty or holds a NUL")),
        Some(_) => Err(bad(key, "must be text")),
        None => Err(bad(key, "is missing")),
    }
}

fn object(given: &Entries, key: &str) -> Result<Entries, CallbackError> {
    match given.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(entries)) => Ok(entries.clone()),
        Some(_) => Err(bad(key, "must be a mapping")),
    }
}

/// The instant of a deadline as it is written: `{at: "07:30"}` or `{after: 2h}`. Its callbacks are
/// checked one by one, by [`Callback::check`].
pub fn check_deadline(written: &Value) -> Result<When, CallbackError> {
    let given = written.as_object().ok_or(CallbackError::NoObject)?;
    let known = |key: &&String| DEADLINE_KEYS.iter().any(|(known, _)| known == key);
    if let Some(other) = given.keys().find(|key| !known(key)) {
        return Err(CallbackError::Unknown(other.clone()));
    }
    let when = match (optional(given, "at")?, optional(given, "after")?) {
        (Some(_), Some(_)) => return Err(bad("after", "and `at` exclude each other")),
        (None, None) => return Err(bad("at", "is missing (or an `after`)")),
        (Some(at), None) => {
            let time = at.trim().parse();
            When::At(time.map_err(|_| bad("at", "must be a time of the day such as \"07:30\""))?)
        }
        (None, Some(after)) => match after.parse::<Span>() {
            Ok(span) if span > Span::ZERO => When::After(span),
            _ => return Err(bad("after", "must be a duration such as 2h")),
        },
    };
    match given.get("callback") {
        Some(Value::Array(list)) if !list.is_empty() => Ok(when),
        Some(Value::Array(_)) => Err(bad("callback", "is empty")),
        Some(_) => Err(bad("callback", "must be a list of callbacks")),
        None => Err(bad("callback", "is missing: who is to hear?")),
    }
}

/// A deadline as it is written, checked before.
pub fn read_deadline(written: &Value) -> Result<Deadline, CallbackError> {
    let when = check_deadline(written)?;
    let callbacks = written.get("callback").and_then(Value::as_array).cloned().unwrap_or_default();
    for callback in &callbacks {
        Callback::check(callback)?;
    }
    Ok(Deadline { when, callbacks })
}
