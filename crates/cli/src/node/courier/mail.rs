//! A mail as text: headers in ASCII, everything else encoded, lines short enough for any server.

use super::smtp::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::callback::Callback;
use fencepost_engine::callbacks::Delivery;
use serde_json::Value;
use std::fmt::Write as _;

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) from: String,
    pub(super) to: Vec<String>,
    /// Headers and body, with CRLF; dots are not doubled yet.
    pub(super) text: String,
}

/// The mail of a callback.
pub(super) fn message(delivery: &Delivery, server: &Server) -> Result<Message, String> {
    let Callback::Email { to, subject, body, .. } = &delivery.callback else {
        return Err("it is no mail".into());
    };
    let from = server.from.clone().ok_or("no sender: [smtp] from, or `from` in the connection")?;
    if from.contains(['\r', '\n', '<', '>']) {
        return Err("the sender is no address".into());
    }
    let subject = subject.clone().unwrap_or_else(|| default_subject(&delivery.told));
    let body = body.clone().unwrap_or_else(|| default_body(&delivery.told));
    let domain = from.rsplit_once('@').map_or("fencepost", |(_, domain)| domain);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "From: <{from}>\r\nTo: {}\r\nSubject: {}\r\nDate: {}\r\nMessage-ID: <{}@{domain}>\r\n\
         Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        to.iter().map(|one| format!("<{one}>")).collect::<Vec<_>>().join(",\r\n "),
        encoded(&subject),
        date(),
        delivery.id,
    );
    for line in
        STANDARD.encode(body.replace("\r\n", "\n").replace('\n', "\r\n")).as_bytes().chunks(76)
    {
        text.push_str(&String::from_utf8_lossy(line));
        text.push_str("\r\n");
    }
    Ok(Message { from, to: to.clone(), text })
}

fn date() -> String {
    let now = crate::clock::now().to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::rfc2822::to_string(&now).unwrap_or_default()
}

fn field<'a>(told: &'a Value, name: &str) -> &'a str {
    told.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn default_subject(told: &Value) -> String {
    let task = field(told, "task_id");
    let place = if task.is_empty() { String::new() } else { format!(" {task}") };
    let (dag, run) = (field(told, "dag_id"), field(told, "run_id"));
    format!("[fencepost] {}: {dag} {run}{place}", field(told, "occasion"))
}

fn default_body(told: &Value) -> String {
    let mut text = String::new();
    for (name, value) in told.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "{name}: {value}");
    }
    text
}

/// A header's text: as it is, or in encoded words of RFC 2047, none longer than 75 characters.
fn encoded(text: &str) -> String {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic();
    if text.len() <= 200 && text.chars().all(is_plain) && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        // 45 bytes are 60 characters of base64.
        if word.len() + c.len_utf8() > 45 {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    let words = words.iter().map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word)));
    words.collect::<Vec<_>>().join("\r\n ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_ascii_and_lines_are_short() {
        assert_eq!(encoded("plain text"), "plain text");
        assert_eq!(encoded("läuft"), "=?utf-8?B?bMOkdWZ0?=");
        let long = encoded(&"ü".repeat(200));
        assert!(long.is_ascii() && long.split("\r\n").all(|line| line.len() <= 76), "{long}");
        // What would end the header and begin another one.
        assert!(!encoded("a\r\nBcc: x@y").contains("\r\nB"));
    }
}
