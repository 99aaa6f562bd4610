//! A server that answers each request by a closure, and remembers them. One connection at a time
//! is enough: the client is one thread.

use fencepost_api::problem::{CONTENT_TYPE, Problem, ProblemCode};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What every answer says the time is.
const DATE: &str = "Tue, 22 Sep 2026 05:13:16 GMT";

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query, below `/api/v1`.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
    /// `GET /dags?limit=5`.
    pub(crate) fn line(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{} {}{mark}{}", self.method, self.path, self.query)
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    content_type: &'static str,
    body: String,
}

/// 200 with that body.
pub(crate) fn ok(body: impl Serialize) -> Reply {
    let body = serde_json::to_string(&body).unwrap();
    Reply { status: 200, content_type: "application/json", body }
}

/// 200 with the only page of a list.
pub(crate) fn page(items: impl Serialize) -> Reply {
    ok(json!({"items": items, "next_cursor": null}))
}

/// 204.
pub(crate) fn nothing() -> Reply {
    Reply { status: 204, content_type: "application/json", body: String::new() }
}

/// Text that no fencepost server would send.
pub(crate) fn foreign(status: u16, body: &str) -> Reply {
    Reply { status, content_type: "text/html", body: body.into() }
}

/// Any body with any status.
pub(crate) fn with_status(status: u16, body: impl Serialize) -> Reply {
    Reply { status, ..ok(body) }
}

/// A problem.
pub(crate) fn problem(code: ProblemCode, detail: &str) -> Reply {
    let body = serde_json::to_string(&Problem::new(code, detail)).unwrap();
    Reply { status: code.status(), content_type: CONTENT_TYPE, body }
}

/// The server; it ends with the test's process.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Seen>,
}

/// What was asked, and who waits for more.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    more: Condvar,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let ours = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(request) = read(&stream) {
                    ours.requests.lock().unwrap().push(request.clone());
                    ours.more.notify_all();
                    write(&mut stream, &handler(&request));
                }
            }
        });
        Self { address, seen }
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until something that contains this was asked.
    pub(crate) fn wait_for(&self, text: &str) {
        let asked = |all: &[Request]| all.iter().any(|request| request.line().contains(text));
        let requests = self.seen.requests.lock().unwrap();
        let limit = Duration::from_mins(1);
        let waited = self.seen.more.wait_timeout_while(requests, limit, |all| !asked(all)).unwrap();
        assert!(!waited.1.timed_out(), "nobody asked for {text}");
    }

    /// The same, as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, rest) = line.split_once(' ')?;
    let target = rest.split(' ').next()?.strip_prefix("/api/v1")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(n, _)| n == "content-length").map(|(_, v)| v.parse());
    let mut body = vec![0; length.and_then(Result::ok).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { method, path, query, headers, body })
}

/// A client that has gone away is its own business.
fn write(stream: &mut TcpStream, reply: &Reply) {
    let Reply { status, content_type, body } = reply;
    let head = format!(
        "HTTP/1.1 {status} X\r\ndate: {DATE}\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}
