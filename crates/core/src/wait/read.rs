//! A wait as it is written: the same object in a DAG file, in a defer file, and in the store.
//!
//! Two passes read it. [`Waiting::check`] is for a file whose templates are not rendered yet: it
//! refuses what no rendering can mend. [`Waiting::read`] is for what was rendered, and is exact.

use super::local::today_at;
use super::{
    Approval, Begins, External, Http, POKE_INTERVAL, POKE_SHORTEST, Sql, Wait, Waiting, Which,
};
use crate::asset::check_name;
use crate::state::{RunState, TiState};
use crate::time::{Span, Timestamp};
use serde_json::{Map, Value, json};

/// Every key of a wait, with what it says; the first ten are what is waited for, of which one is given.
pub const KEYS: [(&str, &str); 22] = [
    ("until", "An instant: RFC 3339."),
    ("time", "A time of the day on which the wait begins, in the DAG's time zone: \"07:30\"."),
    ("interval", "A duration from the beginning of the wait."),
    ("delay", "The same as `interval`."),
    ("file", "A path on the triggerer's machine that must exist."),
    ("http", "A URL that must answer as asked."),
    ("sql", "A query whose first value must be true: not null, false, 0 or empty."),
    ("external_task", "{dag_id, task_id, run_id or logical_date, allowed_states, failed_states}."),
    ("external_run", "{dag_id, run_id or logical_date, allowed_states, failed_states}."),
    ("asset", "An event of that asset."),
    ("approval", "A question to a person: a subject, or {subject, body, fail_on_reject}."),
    (
        "conn",
        "With `sql`: the connection, to PostgreSQL or to a SQLite file on the triggerer's machine.",
    ),
    ("status", "With `http`: the status code or codes that are awaited; default 200."),
    ("headers", "With `http`: headers of the request."),
    ("json", "With `http`: {JSON pointer: value that must stand there}."),
    (
        "since",
        "With `asset`: the instant from which on events count; default: the beginning of the wait.",
    ),
    ("poke_interval", "How often it is looked at; default 60s."),
    ("timeout", "The longest wait, over all deferrals of one try."),
    ("soft_fail", "Too late or in vain: skipped instead of failed."),
    ("context", "What a deferred process gets back when it resumes."),
    ("fail_on_reject", "With `approval`: a rejection fails the task instead of skipping it."),
    ("body", "With `approval`: more about the question."),
];
/// How many of [`KEYS`] say what is waited for.
const KINDS: usize = 11;
/// Largest wait as JSON text.
const TEXT_MAX: usize = 64 << 10;
/// Longest URL.
const URL_MAX: usize = 8 << 10;

/// Why a wait cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    #[error("a wait is an object such as {{\"interval\": \"5m\"}}")]
    NoObject,
    #[error("it is larger than {TEXT_MAX} bytes")]
    TooLarge,
    #[error("unknown key `{0}`")]
    Unknown(String),
    #[error("it says nothing to wait for: one of {}", kinds().join(", "))]
    Nothing,
    #[error("it has both `{0}` and `{1}`: a wait is for one thing")]
    Two(String, String),
    #[error("`{0}` {1}")]
    Bad(String, String),
}

impl WaitError {
    /// The key that it is about.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Unknown(key) | Self::Bad(key, _) | Self::Two(_, key) => Some(key),
            Self::NoObject | Self::TooLarge | Self::Nothing => None,
        }
    }
}

fn bad(key: &str, why: &str) -> WaitError {
    WaitError::Bad(key.into(), why.into())
}

fn kinds() -> Vec<&'static str> {
    KEYS.iter().take(KINDS).map(|(name, _)| *name).collect()
}

/// The same with every text rendered, keys aside.
pub fn render<E>(
    written: &Value,
    text: &mut dyn FnMut(&str) -> Result<String, E>,
) -> Result<Value, E> {
    Ok(match written {
        Value::String(template) => Value::String(text(template)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| render(item, text)).collect::<Result<_, E>>()?)
        }
        Value::Object(entries) => {
            let mut out = Map::new();
            for (key, value) in entries {
                out.insert(key.clone(), render(value, text)?);
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => written.clone(),
    })
}

/// Whether a text is still to be rendered.
fn is_template(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("{{") || text.contains("{%"))
}

impl Waiting {
    /// Checks a wait whose templates are not rendered yet: those are taken as right.
    pub fn check(written: &Value) -> Result<(), WaitError> {
        let begins = Begins {
            now: Timestamp::default(),
            timezone: "UTC".into(),
            logical_date: Some(Timestamp::default()),
        };
        Reader { begins: &begins, is_final: false }.waiting(written).map(drop)
    }

    /// Reads a wait that begins there and then.
    pub fn read(rendered: &Value, begins: &Begins) -> Result<Self, WaitError> {
        Reader { begins, is_final: true }.waiting(rendered)
    }

    /// As stored: what [`Waiting::read`] gives again at any later instant.
    pub fn to_json(&self) -> Value {
        let mut out = self.wait.to_json();
        out.insert("poke_interval".into(), json!(self.poke_interval.to_string()));
        if let Some(timeout) = self.timeout {
            out.insert("timeout".into(), json!(timeout.to_string()));
        }
        if self.soft_fail {
            out.insert("soft_fail".into(), json!(true));
        }
        if !self.context.is_null() {
            out.insert("context".into(), self.context.clone());
        }
        Value::Object(out)
    }

    /// A wait of the store.
    pub fn from_json(stored: &Value) -> Result<Self, WaitError> {
        let begins =
            Begins { now: Timestamp::default(), timezone: "UTC".into(), logical_date: None };
        Self::read(stored, &begins)
    }
}

impl Wait {
    fn to_json(&self) -> Map<String, Value> {
        let mut out = Map::new();
        match self {
            Self::Until(at) => drop(out.insert("until".into(), json!(at.to_jiff().to_string()))),
            Self::File(path) => drop(out.insert("file".into(), json!(path))),
            Self::Http(http) => {
                out.insert("http".into(), json!(http.url));
                out.insert("status".into(), json!(http.status));
                let headers = http.headers.iter().map(|(name, value)| (name.clone(), json!(value)));
                out.insert("headers".into(), headers.collect());
                out.insert("json".into(), http.json.iter().cloned().collect());
            }
            Self::Sql(sql) => {
                out.insert("sql".into(), json!(sql.query));
                out.insert("conn".into(), json!(sql.conn));
            }
            Self::External(other) => {
                let mut of = Map::new();
                of.insert("dag_id".into(), json!(other.dag_id));
                match &other.which {
                    Which::RunId(id) => of.insert("run_id".into(), json!(id)),
                    Which::LogicalDate(at) => {
                        of.insert("logical_date".into(), json!(at.to_jiff().to_string()))
                    }
                };
                of.insert("allowed_states".into(), json!(other.allowed_states));
                of.insert("failed_states".into(), json!(other.failed_states));
                if let Some(task) = &other.task_id {
                    of.insert("task_id".into(), json!(task));
                }
                out.insert(self.kind().into(), Value::Object(of));
            }
            Self::Asset { name, since } => {
                out.insert("asset".into(), json!(name));
                out.insert("since".into(), json!(since.to_jiff().to_string()));
            }
            Self::Approval(approval) => {
                let Approval { subject, body, fail_on_reject } = approval;
                let of =
                    json!({ "subject": subject, "body": body, "fail_on_reject": fail_on_reject });
                out.insert("approval".into(), of);
            }
        }
        out
    }
}

/// Reads one wait.
struct Reader<'a> {
    begins: &'a Begins,
    /// Everything was rendered: what looks like a template is none.
    is_final: bool,
}

impl Reader<'_> {
    fn waiting(&self, written: &Value) -> Result<Waiting, WaitError> {
        let entries = written.as_object().ok_or(WaitError::NoObject)?;
        if written.to_string().len() > TEXT_MAX {
            return Err(WaitError::TooLarge);
        }
        let known = |key: &&String| KEYS.iter().any(|(name, _)| name == key);
        if let Some(key) = entries.keys().find(|key| !known(key)) {
            return Err(WaitError::Unknown(key.clone()));
        }
        let mut given = kinds().into_iter().filter(|kind| entries.contains_key(*kind));
        let kind = given.next().ok_or(WaitError::Nothing)?;
        if let Some(second) = given.next() {
            return Err(WaitError::Two(kind.into(), second.into()));
        }
        for (key, of) in [
            ("status", "http"),
            ("headers", "http"),
            ("json", "http"),
            ("conn", "sql"),
            ("since", "asset"),
            ("body", "approval"),
            ("fail_on_reject", "approval"),
        ] {
            if entries.contains_key(key) && kind != of {
                return Err(bad(key, &format!("belongs to a wait for `{of}`")));
            }
        }
        let poke_interval = self.span(entries, "poke_interval")?.unwrap_or(POKE_INTERVAL);
        if poke_interval < POKE_SHORTEST {
            return Err(bad("poke_interval", "must be at least 1s"));
        }
        Ok(Waiting {
            wait: self.wait(kind, entries)?,
            poke_interval,
            timeout: self.span(entries, "timeout")?,
            soft_fail: flag(entries, "soft_fail")?,
            context: entries.get("context").cloned().unwrap_or_default(),
        })
    }

    fn wait(&self, kind: &str, entries: &Map<String, Value>) -> Result<Wait, WaitError> {
        Ok(match kind {
            "until" => Wait::Until(self.instant(entries, "until")?.unwrap_or_default()),
            "time" => Wait::Until(self.time(entries)?),
            "interval" | "delay" => {
                let span = self.span(entries, kind)?.unwrap_or_default();
                Wait::Until(self.begins.now.plus(span))
            }
            "file" => Wait::File(text(entries, "file")?),
            "http" => Wait::Http(self.http(entries)?),
            "sql" => Wait::Sql(Sql { query: text(entries, "sql")?, conn: text(entries, "conn")? }),
            "asset" => self.asset(entries)?,
            "approval" => Wait::Approval(Self::approval(entries)?),
            _ => Wait::External(self.external(kind, entries)?),
        })
    }

    fn is_open(&self, value: &Value) -> bool {
        !self.is_final && is_template(value)
    }

    fn span(&self, entries: &Map<String, Value>, key: &str) -> Result<Option<Span>, WaitError> {
        let Some(value) = entries.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        if self.is_open(value) {
            return Ok(Some(POKE_INTERVAL));
        }
        let span = value.as_str().and_then(|text| text.parse::<Span>().ok());
        let form = "must be a duration such as 30s, 5m or 1h30m";
        span.filter(|span| *span > Span::ZERO).map(Some).ok_or_else(|| bad(key, form))
    }

    fn instant(
        &self,
        entries: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Timestamp>, WaitError> {
        let Some(value) = entries.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        if self.is_open(value) {
            return Ok(Some(Timestamp::default()));
        }
        let at = value.as_str().and_then(instant);
        at.map(Some).ok_or_else(|| bad(key, "must be an instant such as 2026-12-01T07:30:00Z"))
    }

    fn time(&self, entries: &Map<String, Value>) -> Result<Timestamp, WaitError> {
        let text = text(entries, "time")?;
        if self.is_open(&json!(text)) {
            return Ok(Timestamp::default());
        }
        today_at(self.begins.now, &self.begins.timezone, &text)
            .ok_or_else(|| bad("time", "must be a time of the day such as \"07:30\""))
    }

    fn http(&self, entries: &Map<String, Value>) -> Result<Http, WaitError> {
        let url = text(entries, "http")?;
        let is_url = url.starts_with("http://") || url.starts_with("https://");
        if (!is_url && !self.is_open(&json!(url))) || url.len() > URL_MAX {
            return Err(bad("http", "must be a URL that begins with http:// or https://"));
        }
        let headers = map(entries, "headers")?;
        let header = |(name, value): (String, Value)| {
            let text = value.as_str().filter(|text| !text.contains(['\r', '\n', '\0']));
            let text = text.ok_or_else(|| bad("headers", "must be text without line breaks"))?;
            Ok((name, text.to_owned()))
        };
        let json = map(entries, "json")?;
        if json.iter().any(|(pointer, _)| !pointer.is_empty() && !pointer.starts_with('/')) {
            return Err(bad("json", "has JSON pointers as keys, such as /state"));
        }
        let headers = headers.into_iter().map(header).collect::<Result<_, _>>()?;
        Ok(Http { url, headers, status: status(entries)?, json })
    }

    fn external(&self, kind: &str, entries: &Map<String, Value>) -> Result<External, WaitError> {
        let of = entries.get(kind).and_then(Value::as_object);
        let of = of.ok_or_else(|| bad(kind, "must be a mapping with a dag_id"))?;
        const NAMES: [&str; 6] =
            ["dag_id", "task_id", "run_id", "logical_date", "allowed_states", "failed_states"];
        if let Some(key) = of.keys().find(|key| !NAMES.contains(&key.as_str())) {
            return Err(bad(kind, &format!("has no `{key}`: {}", NAMES.join(", "))));
        }
        let is_task = kind == "external_task";
        if of.contains_key("task_id") != is_task {
            let why = if is_task { "needs a `task_id`" } else { "has no `task_id`" };
            return Err(bad(kind, why));
        }
        let which = match (of.get("run_id"), self.instant(of, "logical_date")?) {
            (Some(_), Some(_)) => return Err(bad(kind, "has both `run_id` and `logical_date`")),
            (Some(_), None) => Which::RunId(text(of, "run_id")?),
            (None, Some(at)) => Which::LogicalDate(at),
            (None, None) => Which::LogicalDate(self.begins.logical_date.ok_or_else(|| {
                bad(kind, "needs a `run_id` or a `logical_date`: its own run has none")
            })?),
        };
        let failed = if is_task { ["failed", "upstream_failed"] } else { ["failed", "cancelled"] };
        Ok(External {
            dag_id: text(of, "dag_id")?,
            task_id: if is_task { Some(text(of, "task_id")?) } else { None },
            which,
            allowed_states: states(of, "allowed_states", &["success"], is_task)?,
            failed_states: states(of, "failed_states", &failed, is_task)?,
        })
    }

    fn asset(&self, entries: &Map<String, Value>) -> Result<Wait, WaitError> {
        let name = text(entries, "asset")?;
        if !self.is_open(&json!(name)) {
            check_name(&name).map_err(|error| bad("asset", &format!("is no name: {error}")))?;
        }
        let since = self.instant(entries, "since")?.unwrap_or(self.begins.now);
        Ok(Wait::Asset { name, since })
    }

    fn approval(entries: &Map<String, Value>) -> Result<Approval, WaitError> {
        let Some(of) = entries.get("approval").and_then(Value::as_object) else {
            let body =
                if entries.contains_key("body") { text(entries, "body")? } else { String::new() };
            let fail_on_reject = flag(entries, "fail_on_reject")?;
            return Ok(Approval { subject: text(entries, "approval")?, body, fail_on_reject });
        };
        const NAMES: [&str; 3] = ["subject", "body", "fail_on_reject"];
        if let Some(key) = of.keys().find(|key| !NAMES.contains(&key.as_str())) {
            return Err(bad("approval", &format!("has no `{key}`: {}", NAMES.join(", "))));
        }
        let body = of.get("body").and_then(Value::as_str).unwrap_or_default();
        Ok(Approval {
            subject: text(of, "subject")?,
            body: body.into(),
            fail_on_reject: flag(of, "fail_on_reject")?,
        })
    }
}

fn text(entries: &Map<String, Value>, key: &str) -> Result<String, WaitError> {
    match entries.get(key) {
        Some(Value::String(text)) if !text.is_empty() && !text.contains('\0') => Ok(text.clone()),
        Some(Value::String(_)) => Err(bad(key, "is empty or holds a NUL")),
        Some(_) => Err(bad(key, "must be text")),
        None => Err(bad(key, "is missing")),
    }
}

fn flag(entries: &Map<String, Value>, key: &str) -> Result<bool, WaitError> {
    match entries.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(bad(key, "must be true or false")),
    }
}

fn map(entries: &Map<String, Value>, key: &str) -> Result<Vec<(String, Value)>, WaitError> {
    match entries.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(map)) => Ok(map.clone().into_iter().collect()),
        Some(_) => Err(bad(key, "must be a mapping")),
    }
}

/// RFC 3339, a date, or Jinja's rendering of an instant (`2026-12-01 07:30:00+00:00`).
fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.replacen(' ', "T", 1).parse().ok())
}

fn status(entries: &Map<String, Value>) -> Result<Vec<u16>, WaitError> {
    let one = |value: &Value| {
        value.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| (100..600).contains(n))
    };
    let codes = match entries.get("status") {
        None | Some(Value::Null) => Some(vec![200]),
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(value) => one(value).map(|code| vec![code]),
    };
    codes
        .filter(|codes| !codes.is_empty())
        .ok_or_else(|| bad("status", "must be a status code from 100 to 599, or a list of them"))
}

fn states(
    of: &Map<String, Value>,
    key: &str,
    default: &[&str],
    is_task: bool,
) -> Result<Vec<String>, WaitError> {
    let Some(value) = of.get(key).filter(|value| !value.is_null()) else {
        return Ok(default.iter().map(ToString::to_string).collect());
    };
    let is_end = |text: &str| {
        if is_task {
            TiState::parse(text).is_some_and(TiState::is_finished)
        } else {
            RunState::parse(text).is_some_and(RunState::is_finished)
        }
    };
    let one = |value: &Value| value.as_str().filter(|text| is_end(text)).map(ToOwned::to_owned);
    let list: Option<Vec<String>> = match value.as_array() {
        Some(list) => list.iter().map(one).collect(),
        None => one(value).map(|state| vec![state]),
    };
    list.ok_or_else(|| bad(key, "must be states in which it has ended"))
}
