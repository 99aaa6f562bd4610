//! Webhooks and messages to Slack-compatible receivers.

use crate::client::guarded;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::callback::{Address, Callback};
use fencepost_core::connection::Connection;
use fencepost_engine::callbacks::Delivery;
use serde_json::{Value, json};
use ureq::http::{Method, Request};

/// No more of an answer's text is shown.
const TEXT_MAX: usize = 200;

/// One request: good is any answer of 200 to 299. Redirects are not followed: what was signed or
/// authorised for one receiver is no other's.
pub(super) fn send(
    agent: &ureq::Agent,
    delivery: &Delivery,
    connection: Option<&Connection>,
) -> Result<(), String> {
    let (to, method, own, body) = match &delivery.callback {
        Callback::Webhook { to, method, headers, body } => {
            let body = body.clone().unwrap_or_else(|| default_body(delivery));
            (to, method.as_str(), headers.clone(), body)
        }
        Callback::Slack { to, text } => (to, "POST", Vec::new(), json!({ "text": text })),
        Callback::Email { .. } | Callback::TriggerDag { .. } | Callback::Run { .. } => {
            return Err("it is no request".into());
        }
    };
    let (url, mut headers) = match (to, connection) {
        (Address::Url(url), _) => (url.clone(), Vec::new()),
        (Address::Connection(_), Some(connection)) => {
            let is_slack = matches!(delivery.callback, Callback::Slack { .. });
            (url_of(connection, is_slack)?, headers_of(connection, is_slack))
        }
        (Address::Connection(name), None) => return Err(format!("no connection `{name}`")),
    };
    headers.extend(own);
    let (kind, bytes) = match body {
        Value::String(text) => ("text/plain; charset=utf-8", text.into_bytes()),
        body @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => ("application/json", body.to_string().into_bytes()),
    };
    let has_body = !matches!(method, "GET" | "DELETE");
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    let mut request = Request::builder().method(method).uri(&url);
    request = request.header("Idempotency-Key", &delivery.id);
    if has_body && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        request = request.header("Content-Type", kind);
    }
    for (name, value) in &headers {
        request = request.header(name, value);
    }
    let answer = if has_body {
        let request = request.body(bytes).map_err(|error| error.to_string())?;
        agent.run(agent.configure_request(request).max_redirects(0).build())
    } else {
        let request = request.body(()).map_err(|error| error.to_string())?;
        agent.run(agent.configure_request(request).max_redirects(0).build())
    };
    // A receiver that tells back the address of a connection would tell a secret.
    judge(answer, connection.is_none())
}

fn judge(
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    may_be_told: bool,
) -> Result<(), String> {
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(ureq::Error::Timeout(_)) => {
            return Err(format!("no answer within {:?}", guarded::PATIENCE));
        }
        // Its text may hold the whole address.
        Err(ureq::Error::BadUri(_)) => return Err("the address is no URL".into()),
        Err(error) => return Err(error.to_string()),
    };
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    if status.is_redirection() {
        return Err(format!("it answered {}: redirects are not followed", status.as_u16()));
    }
    if !may_be_told {
        return Err(format!("it answered {}", status.as_u16()));
    }
    let text = answer.body_mut().with_config().limit(4096).read_to_string().unwrap_or_default();
    let line: String = text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect();
    Err(format!("it answered {} {line}", status.as_u16()).trim_end().to_owned())
}

/// What happened, and the id by which a repeat is known.
fn default_body(delivery: &Delivery) -> Value {
    let mut told = delivery.told.clone();
    if let Value::Object(fields) = &mut told {
        fields.insert("id".into(), json!(delivery.id));
    }
    told
}

/// The address that a connection stands for, in Airflow's forms too: a scheme within the host, the
/// scheme in `schema`, and for Slack the secret part, or the whole address, in the password.
fn url_of(connection: &Connection, is_slack: bool) -> Result<String, String> {
    let secret = connection.password.as_deref().filter(|_| is_slack);
    if let Some(url) = secret.filter(|secret| secret.starts_with("http")) {
        return Ok(url.to_owned());
    }
    let host = connection.host.as_deref().ok_or("the connection names no host")?;
    let schema = connection.schema.as_deref().unwrap_or_default();
    let is_scheme = matches!(schema, "http" | "https");
    let scheme = match (is_scheme, connection.conn_type.as_str()) {
        (true, _) => schema,
        (false, "http") => "http",
        (false, _) => "https",
    };
    let mut url = if host.contains("://") { host.to_owned() } else { format!("{scheme}://{host}") };
    if let Some(port) = connection.port {
        url = format!("{url}:{port}");
    }
    for part in [Some(schema).filter(|_| !is_scheme), secret].into_iter().flatten() {
        if !part.is_empty() {
            url = format!("{}/{}", url.trim_end_matches('/'), part.trim_start_matches('/'));
        }
    }
    Ok(url)
}

/// Headers of a connection: its login, and the texts of its extra.
fn headers_of(connection: &Connection, is_slack: bool) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = connection
        .extra
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    if let (Some(login), false) = (&connection.login, is_slack) {
        let pair = format!("{login}:{}", connection.password.as_deref().unwrap_or_default());
        headers.push(("Authorization".into(), format!("Basic {}", STANDARD.encode(pair))));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_stands_for_an_address_in_all_the_usual_forms() {
        for (uri, is_slack, url) in [
            (
                "https://hooks.slack.com/services/T/B/x",
                true,
                "https://hooks.slack.com/services/T/B/x",
            ),
            ("http://alerts:8080/in", false, "http://alerts:8080/in"),
            ("http://alerts:8080", false, "http://alerts:8080"),
            ("http://alerts/https", false, "https://alerts"),
            (
                "slackwebhook://:T%2FB%2Fx@hooks.slack.com/services",
                true,
                "https://hooks.slack.com/services/T/B/x",
            ),
            ("slackwebhook://:https%3A%2F%2Fh%2Fx@", true, "https://h/x"),
        ] {
            let connection = Connection::from_uri(uri).unwrap();
            assert_eq!(url_of(&connection, is_slack).unwrap(), url, "{uri}");
        }
        let connection = Connection::from_uri("http://ann:p@h/?X-Team=data").unwrap();
        let expected = [("X-Team", "data"), ("Authorization", "Basic YW5uOnA=")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers_of(&connection, false), expected);
    }

    /// Answers one request, and says what it was.
    fn answering(answer: &'static [u8]) -> (String, std::thread::JoinHandle<String>) {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let n = stream.read(&mut request).unwrap();
            // Who asked may have gone before the end of a long answer.
            let _ = stream.write_all(answer);
            let mut rest = [0; 4096];
            // Until who asked goes.
            while answer.is_empty() && stream.read(&mut rest).is_ok_and(|n| n > 0) {}
            String::from_utf8_lossy(&request[..n]).into_owned()
        });
        (url, heard)
    }

    fn sent(url: &str, allow: &str) -> Result<(), String> {
        let callback = Callback::Webhook {
            to: Address::Url(url.into()),
            method: "POST".into(),
            headers: vec![("X-Own".into(), "1".into())],
            body: None,
        };
        let delivery = Delivery { id: "id-1".into(), callback, told: json!({ "dag_id": "d" }) };
        let agent = guarded::agent(guarded::Rules::of(&[allow], ""), None);
        send(&agent, &delivery, None)
    }

    #[test]
    fn what_happened_is_sent_with_the_id_of_the_callback() {
        let (url, heard) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        sent(&url, "127.0.0.1").unwrap();
        let heard = heard.join().unwrap();
        let lower = heard.to_lowercase();
        assert!(heard.starts_with("POST /secret "), "{heard}");
        assert!(lower.contains("idempotency-key: id-1") && lower.contains("x-own: 1"), "{heard}");
        assert!(lower.contains("content-type: application/json"), "{heard}");
    }

    #[test]
    fn what_is_no_success_is_said_without_the_address() {
        let refused = sent("http://127.0.0.1:9/secret", "").unwrap_err();
        assert!(refused.contains("no public address") && !refused.contains("secret"), "{refused}");
        let mut long = b"HTTP/1.1 500 No\r\nContent-Length: 10000000\r\n\r\n".to_vec();
        long.resize(90_000, b'x');
        let long: &'static [u8] = Vec::leak(long);
        for (answer, why) in [
            (
                b"HTTP/1.1 404 No\r\nContent-Length: 8\r\n\r\nno\nhook!".as_slice(),
                "it answered 404 nohook!",
            ),
            (
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
                "it answered 302: redirects are not followed",
            ),
            (long, "it answered 500"),
        ] {
            let (url, heard) = answering(answer);
            assert_eq!(sent(&url, "127.0.0.1").unwrap_err(), why);
            heard.join().unwrap();
        }
    }

    #[test]
    fn slow_a_receiver_that_never_answers_is_left() {
        let (url, heard) = answering(b"");
        let why = sent(&url, "127.0.0.1").unwrap_err();
        assert_eq!(why, "no answer within 10s");
        heard.join().unwrap();
    }
}
