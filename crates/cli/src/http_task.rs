//! The process of an `http` task: one request, made under the shim as any other attempt's process.
//!
//! It is no verb: the server names it in the attempt's work, and the running worker's own file is its program. It
//! reads the rendered request from the attempt's script, sends it with the idempotency key and the fencing
//! token, and says what came of it as every task does: by outputs, result file and exit code. Values of headers
//! and what stands in the URL's query are shown nowhere.

use crate::client;
use crate::environment::Environment;
use fencepost_core::http_task::{Answered, Body, HttpTask};
use fencepost_core::time::{Span, Timestamp};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// No more of an answer is read.
const ANSWER_MAX: u64 = 1 << 20;
/// So much of an answer that is no success is shown.
const SHOWN: usize = 2 << 10;
/// The longest wait that a server may ask for.
const LONGEST: Span = Span::from_hours(24);
/// A secret that is shorter would hide half of every text.
const SECRET_LEAST: usize = 6;

/// How it ends, in exit codes of a task.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Success,
    Failed,
    /// Temporary; the server asked to wait so long.
    Temporary(Option<Span>),
}

/// Makes the request that a file says.
pub(crate) fn main(file: &Path) -> ExitCode {
    let env = Environment::of_process();
    let end = match read(file) {
        Ok(task) => Call { task: &task, env: &env }.make(),
        Err(why) => {
            say(&format!("the request cannot be read: {why}"));
            End::Failed
        }
    };
    match end {
        End::Success => ExitCode::SUCCESS,
        End::Failed => ExitCode::from(1),
        End::Temporary(after) => {
            if let (Some(after), Some(path)) = (after, env.get("FENCEPOST_RESULT_FILE")) {
                let reason = format!("the server asked to wait {after}");
                let text = json!({ "status": "retry", "reason": reason, "retry_after": after.to_string() });
                if let Err(error) = std::fs::write(path, text.to_string()) {
                    say(&format!("the result file cannot be written: {error}"));
                }
            }
            ExitCode::from(75)
        }
    }
}

fn read(file: &Path) -> Result<HttpTask, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let written: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    HttpTask::read(&written).map_err(|error| error.to_string())
}

#[expect(clippy::print_stdout, reason = "its standard output is the attempt's log")]
fn say(text: &str) {
    println!("fencepost: {text}");
}

/// One request.
struct Call<'a> {
    task: &'a HttpTask,
    env: &'a Environment,
}

/// What came back.
struct Answer {
    status: u16,
    retry_after: Option<String>,
    body: Vec<u8>,
}

impl Call<'_> {
    fn make(&self) -> End {
        let headers = match self.headers() {
            Ok(headers) => headers,
            Err(why) => {
                say(&why);
                return End::Failed;
            }
        };
        let secrets: Vec<&str> = headers.iter().map(|(_, value)| value.as_str()).collect();
        say(&format!("{} {}", self.task.method, shown_url(&self.task.url)));
        let answer = match self.send(&headers) {
            Ok(answer) => answer,
            Err(why) => {
                say(&format!("no answer: {}", masked(&why, &secrets)));
                return End::Temporary(None);
            }
        };
        say(&format!("status {}, {} bytes", answer.status, answer.body.len()));
        let end = match self.task.answered(answer.status) {
            Answered::Accepted => match self.outputs(&answer) {
                Ok(()) => return End::Success,
                Err(why) => {
                    say(&why);
                    End::Failed
                }
            },
            Answered::Refused => End::Failed,
            Answered::Temporary => {
                End::Temporary(answer.retry_after.as_deref().and_then(|text| patience(text, now())))
            }
        };
        let text = String::from_utf8_lossy(&answer.body);
        let text: String = text.chars().take(SHOWN).collect();
        if !text.trim().is_empty() {
            say(&format!("it answered:\n{}", masked(&text, &secrets)));
        }
        end
    }

    /// What the file says, and what every request of a task carries: a file's own word goes before ours.
    fn headers(&self) -> Result<Vec<(String, String)>, String> {
        let mut headers = self.task.headers.clone();
        for (name, variable) in &self.task.headers_env {
            let value = self.env.get(variable).filter(|value| !value.contains(['\r', '\n']));
            let value = value.ok_or_else(|| {
                format!("`headers_env`: `{name}` is to be ${variable}, which is not set or has line breaks")
            })?;
            headers.push((name.clone(), value.to_owned()));
        }
        let own = [
            ("Idempotency-Key", "FENCEPOST_IDEMPOTENCY_KEY"),
            ("Fencepost-Fencing-Token", "FENCEPOST_FENCING_TOKEN"),
        ];
        for (name, variable) in own {
            let is_there = headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            if let Some(value) = self.env.get(variable).filter(|_| !is_there) {
                headers.push((name.into(), value.to_owned()));
            }
        }
        if let Some(Body::Json(_)) = &self.task.body
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("Content-Type".into(), "application/json".into()));
        }
        Ok(headers)
    }

    fn send(&self, headers: &[(String, String)]) -> Result<Answer, String> {
        let tls = client::tls(&self.task.url, None).map_err(|error| error.to_string())?;
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            // A request with a key is for the address that was named; an answer that leads elsewhere is an answer.
            .max_redirects(0)
            .timeout_global(Some(self.task.timeout.to_std()))
            .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.unwrap_or_default())
            .build()
            .into();
        let mut request =
            ureq::http::Request::builder().method(self.task.method.as_str()).uri(&self.task.url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = match &self.task.body {
            Some(Body::Text(text)) => text.clone(),
            Some(Body::Json(json)) => json.to_string(),
            None => String::new(),
        };
        let sent = if self.task.body.is_some() {
            agent.run(request.body(body).map_err(|error| error.to_string())?)
        } else {
            agent.run(request.body(()).map_err(|error| error.to_string())?)
        };
        let mut answer = sent.map_err(|error| error.to_string())?;
        let retry_after = answer.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = answer.status().as_u16();
        // The status has decided: what is wrong with the rest is no reason to ask again.
        let body = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let body = body.unwrap_or_else(|error| format!("(no whole answer: {error})").into());
        Ok(Answer { status, retry_after, body })
    }

    /// Writes the status and what the pointers point at.
    fn outputs(&self, answer: &Answer) -> Result<(), String> {
        let mut text = format!("status:json={}\n", answer.status);
        if !self.task.outputs.is_empty() {
            let json: Value = serde_json::from_slice(&answer.body).map_err(|error| {
                format!("the answer is no JSON, so there are no outputs: {error}")
            })?;
            for (name, pointer) in &self.task.outputs {
                let value = json.pointer(pointer).ok_or_else(|| {
                    format!("the answer has nothing at `{pointer}` for the output `{name}`")
                })?;
                // JSON text has no line breaks of its own.
                text.push_str(&format!("{name}:json={value}\n"));
            }
        }
        match self.env.get("FENCEPOST_OUTPUT_FILE") {
            Some(path) => std::fs::write(path, text)
                .map_err(|error| format!("the outputs cannot be written: {error}")),
            None => Ok(()),
        }
    }
}

/// Without what may be a secret: name and password, query and fragment.
fn shown_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (bare, rest) = url.split_at(end);
    let (scheme, after) = bare.split_once("://").unwrap_or(("", bare));
    let (host, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let more = if rest.is_empty() { "" } else { "?..." };
    format!("{scheme}://{host}{path}{more}")
}

/// A server may tell back what it was told.
fn masked(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    let words = |secret: &str| -> Vec<String> {
        // `Bearer TOKEN`: also the token alone.
        std::iter::once(secret)
            .chain(secret.split_whitespace().skip(1))
            .map(str::to_owned)
            .collect()
    };
    let mut all: Vec<String> = secrets.iter().flat_map(|secret| words(secret)).collect();
    // Of two that begin alike the longer one is hidden whole.
    all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in all {
        if secret.len() >= SECRET_LEAST {
            text = text.replace(&secret, "***");
        }
    }
    text
}

/// `Retry-After`: seconds, or an instant.
fn patience(text: &str, now: Timestamp) -> Option<Span> {
    let text = text.trim();
    let seconds = if let Ok(seconds) = text.parse::<u64>() {
        i64::try_from(seconds).unwrap_or(i64::MAX)
    } else {
        let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Timestamp::from_jiff(at).since(now).as_micros().max(0) / 1_000_000
    };
    Some(Span::from_secs(seconds.clamp(1, LONGEST.as_micros() / 1_000_000)))
}

fn now() -> Timestamp {
    crate::clock::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (url, shown) in [
            ("https://ann:pw@api.example/v1/x?token=abc#f", "https://api.example/v1/x?..."),
            ("http://h:80", "http://h:80"),
            ("http://h?x=http://a@b/", "http://h?..."),
        ] {
            assert_eq!(shown_url(url), shown);
        }
        let shown =
            masked("you sent Bearer s3cr3t-token, s3cr3t-token", &["Bearer s3cr3t-token", "a"]);
        assert_eq!(shown, "you sent ***, ***");
    }

    #[test]
    fn a_server_may_ask_to_wait_in_seconds_or_until_an_instant() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("120", Some(120)),
            ("0", Some(1)),
            ("99999999999999999999", None),
            ("9999999", Some(86_400)),
            ("Sun, 01 Mar 2026 00:00:30 GMT", Some(30)),
            ("Sun, 01 Mar 2020 00:00:30 GMT", Some(1)),
            ("soon", None),
        ] {
            assert_eq!(patience(text, now), expected.map(Span::from_secs), "{text}");
        }
    }
}
