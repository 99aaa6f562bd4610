//! The REST client: one blocking HTTP/1.1 agent, a bearer token, problems as errors.
//!
//! No proxy, no redirect; TLS where the address says https.
//! Answers are kept as JSON so that data formats pass through what a newer server adds.

mod context;
mod finding;
pub(crate) mod guarded;
mod missing;
mod run_ref;
mod trust;

pub(crate) use context::{Context, Contexts};
pub(crate) use finding::Server;
pub(crate) use trust::tls;

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use fencepost_api::problem::{CONTENT_TYPE, Problem};
use fencepost_api::rest::routes::{Method, Route};
use fencepost_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::Cell;
use std::time::Duration;
use ureq::http;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// For a whole call, beyond what a long poll asks for.
const CALL_LIMIT: Duration = Duration::from_mins(1);
/// Most of an answer that is read.
const BODY_LIMIT: u64 = 256 << 20;
/// Items of a page when a whole list is fetched.
const PAGE: u32 = 1_000;

/// A connection to one server.
pub(crate) struct Client {
    agent: ureq::Agent,
    server: Server,
    now: Cell<Option<Timestamp>>,
}

/// What goes with a call beside its address.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    /// JSON.
    body: Option<Vec<u8>>,
    /// How much longer than other calls it may take.
    wait: Duration,
}

/// An answer: its status and its body as JSON (null if empty).
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Client {
    /// To that server; connects with the first call.
    pub(crate) fn new(server: Server) -> Self {
        let agent = agent(server.tls.clone());
        Self { agent, server, now: Cell::new(None) }
    }

    /// The server's clock at its last answer, whole seconds; before the first one, our own.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.get().unwrap_or_else(crate::clock::now)
    }

    /// GET, as JSON.
    pub(crate) fn get(
        &self,
        route: Route,
        args: &[&str],
        query: &impl Serialize,
    ) -> Outcome<Value> {
        self.call(route, args, query, Ask::default())
    }

    /// GET, typed.
    pub(crate) fn read<T: DeserializeOwned>(&self, route: Route, args: &[&str]) -> Outcome<T> {
        typed(self.get(route, args, &())?)
    }

    /// A long poll: the server may take `wait` longer than other calls.
    pub(crate) fn poll<T: DeserializeOwned>(
        &self,
        route: Route,
        args: &[&str],
        query: &impl Serialize,
        wait: Duration,
    ) -> Outcome<T> {
        typed(self.call(route, args, query, Ask { body: None, wait })?)
    }

    /// A call with a JSON body.
    pub(crate) fn send(
        &self,
        route: Route,
        args: &[&str],
        query: &impl Serialize,
        body: &impl Serialize,
    ) -> Outcome<Value> {
        let body = serde_json::to_vec(body).map_err(|e| CliError::usage(e.to_string()))?;
        self.call(route, args, query, Ask { body: Some(body), wait: Duration::ZERO })
    }

    /// All items of a list, or the first `limit`.
    pub(crate) fn list(
        &self,
        route: Route,
        args: &[&str],
        query: &impl Serialize,
        limit: Option<u32>,
    ) -> Outcome<Vec<Value>> {
        let mut query = serde_json::to_value(query).unwrap_or_default();
        let mut items: Vec<Value> = Vec::new();
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        loop {
            let left = most - items.len();
            query["limit"] = u32::try_from(left).unwrap_or(PAGE).min(PAGE).into();
            let page: fencepost_api::rest::Page<Value> = typed(self.get(route, args, &query)?)?;
            let empty = page.items.is_empty();
            items.extend(page.items.into_iter().take(left));
            match page.next_cursor {
                // A cursor that comes back would lead round and round.
                Some(cursor) if items.len() < most && !empty && query["cursor"] != *cursor => {
                    query["cursor"] = cursor.into();
                }
                _ => return Ok(items),
            }
        }
    }

    fn call(
        &self,
        route: Route,
        args: &[&str],
        query: &impl Serialize,
        ask: Ask,
    ) -> Outcome<Value> {
        let path = route.url(args) + &query_text(query);
        let answer = self.exchange(route.method, &path, ask)?;
        if answer.status < 400 {
            return Ok(answer.body);
        }
        let error = CliError::from_problem(problem_of(answer));
        Err(missing::suggest(self, route, args, error))
    }

    /// One request and its answer, whatever its status.
    pub(crate) fn exchange(&self, method: Method, path: &str, ask: Ask) -> Outcome<Answer> {
        let Ask { body, wait } = ask;
        let uri = format!("{}{path}", self.server.base);
        let mut request = http::Request::builder().method(method.as_str()).uri(&uri);
        if let Some(token) = &self.server.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if method == Method::Post {
            request = request.header("idempotency-key", idempotency_key()?);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request
            .header("accept", format!("application/json, {CONTENT_TYPE}"))
            .body(body.unwrap_or_default())
            .map_err(|e| CliError::usage(format!("not an address: {uri}: {e}")))?;
        let request =
            self.agent.configure_request(request).timeout_global(Some(CALL_LIMIT + wait)).build();
        let response = self.agent.run(request).map_err(|error| self.server.unreachable(&error))?;
        self.take(response)
    }

    fn take(&self, mut response: http::Response<ureq::Body>) -> Outcome<Answer> {
        let date = response.headers().get("date").and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        self.now.set(date.map(|date| Timestamp::from_jiff(date.timestamp())).or(self.now.get()));
        let status = response.status().as_u16();
        let bytes = response
            .body_mut()
            .with_config()
            .limit(BODY_LIMIT)
            .read_to_vec()
            .map_err(|error| self.server.unreachable(&error))?;
        if bytes.is_empty() {
            return Ok(Answer { status, body: Value::Null });
        }
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(Answer { status, body }),
            Err(_) if status >= 400 => Ok(Answer { status, body: Value::Null }),
            Err(error) => Err(self.server.foreign(&error.to_string())),
        }
    }
}

/// A blocking agent, as every verb uses it.
pub(crate) fn agent(tls: Option<ureq::tls::TlsConfig>) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT_LIMIT))
        .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls.unwrap_or_default())
        .build()
        .new_agent()
}

/// The problem in an answer; one is made up where something else answered.
fn problem_of(answer: Answer) -> Problem {
    let mut problem: Problem = serde_json::from_value(answer.body).unwrap_or_default();
    problem.status = answer.status;
    if problem.title.is_empty() {
        problem.title = format!("the server answered with status {}", answer.status);
    }
    problem
}

/// `?name=value&...` of the fields that are set.
fn query_text(query: &impl Serialize) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return String::new() };
    let mut text = String::new();
    for (name, value) in fields {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => value,
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        let value = fencepost_api::rest::routes::encode(&value).replace(';', "%3B");
        text.push_str(&format!("{name}={value}"));
    }
    text
}

/// Fresh for every POST, so that the server recognises a repeat below us.
fn idempotency_key() -> Outcome<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CliError::new(Exit::Unexpected, format!("no randomness: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_api::rest::RunQuery;

    #[test]
    fn queries_leave_out_what_is_not_set_and_encode_the_rest() {
        let query = RunQuery {
            limit: Some(5),
            state: Some("failed,running".into()),
            run_id_prefix: Some("a&b=c +".into()),
            ..RunQuery::default()
        };
        assert_eq!(
            query_text(&query),
            "?limit=5&state=failed%2Crunning&run_id_prefix=a%26b=c%20%2B"
        );
        assert_eq!(query_text(&()), "");
    }

    #[test]
    fn an_answer_that_is_no_problem_still_has_its_status() {
        let problem = problem_of(Answer { status: 404, body: Value::Null });
        assert_eq!(CliError::from_problem(problem).exit, Exit::NotFound);
    }
}
