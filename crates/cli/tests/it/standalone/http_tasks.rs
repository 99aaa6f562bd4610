//! `http` tasks against a real server: what it is asked with, and what its answers do.

use super::world::{World, wait_for};
use crate::installation::Installation;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server that keeps what it is asked (first line, headers, body) and answers by path and turn.
struct Seen {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(answer: impl Fn(&str, usize) -> String + Send + 'static) -> Seen {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
                    break;
                }
                if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let turn = {
                let mut kept = kept.lock().unwrap();
                let of = |text: &&String| text.split(' ').nth(1) == Some(&path);
                let turn = kept.iter().filter(of).count();
                kept.push(format!("{head}\n{}", String::from_utf8_lossy(&body)));
                turn
            };
            let text = answer(&path, turn);
            // A client that was killed reads no answer.
            let _ = stream.write_all(text.as_bytes());
        }
    });
    Seen { url, asked }
}

impl Seen {
    fn of(&self, path: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|text| text.split(' ').nth(1) == Some(path)).cloned().collect()
    }
}

fn answer(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn header(request: &str, name: &str) -> Option<String> {
    let line = request.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run shows all of it")]
fn a_request_carries_key_and_token_and_its_answer_becomes_outputs() {
    let world = World::new();
    let server = serve(|path, turn| match (path, turn) {
        ("/order", _) => answer("201 Created", "", r#"{"data": {"id": 7, "lines": ["a"]}}"#),
        ("/busy", 0) => answer("503 Busy", "Retry-After: 1\r\n", "later"),
        ("/flaky", 0) => answer("500 Oops", "", "broken"),
        ("/busy" | "/flaky", _) => answer("200 OK", "", "fine"),
        ("/no?key=top", _) => answer("403 No", "", "you sent top-secret-token"),
        ("/moved", _) => answer("302 Found", "Location: /order\r\n", ""),
        _ => answer("404 Not Found", "", "nothing"),
    });
    let url = &server.url;
    world.dag(
        "calls",
        &format!(
            "params: {{n: 3}}
env: {{AUTH: Bearer top-secret-token}}
default_args: {{retry_delay: 1s}}
tasks:
  order:
    http:
      url: '{url}/order'
      json: {{n: '{{{{ params.n }}}}', text: 'n={{{{ params.n }}}}'}}
      headers: {{X-Run: '{{{{ run_id }}}}'}}
      outputs: {{id: /data/id, lines: /data/lines}}
    outputs: {{id: integer, status: integer, lines: array}}
  after: {{depends_on: [order], run: 'test $FENCEPOST_INPUT_ORDER_ID = 7'}}
  busy: {{http: '{url}/busy', retries: 1, retry_delay: 1h}}
  flaky: {{http: '{url}/flaky', retry_policy: [{{exit_codes: [75], action: retry, delay: 1s}}], retries: 1}}
  no: {{http: {{url: '{url}/no?key=top', method: DELETE, headers_env: {{Authorization: AUTH}}}}}}
  moved: {{http: '{url}/moved'}}
  pointer: {{http: {{url: '{url}/order', outputs: {{x: /data/x}}}}}}
  nobody: {{http: 'http://127.0.0.1:9/'}}
"
        ),
    );
    let node = world.start();
    world.trigger("calls");
    world.wait_state("calls", "failed");
    let tasks = world.json(&["tasks", "list", "calls", "@latest"]);
    let state = |task: &str| {
        let all = tasks.as_array().unwrap();
        all.iter().find(|of| of["task_id"] == task).unwrap()["state"].clone()
    };
    for (task, expected) in [
        ("order", "success"),
        ("after", "success"),
        ("busy", "success"),
        ("flaky", "success"),
        ("no", "failed"),
        ("moved", "failed"),
        ("pointer", "failed"),
        ("nobody", "failed"),
    ] {
        assert_eq!(state(task), expected, "{task}: {tasks:#}");
    }
    let order = &server.of("/order")[0];
    assert!(
        order.starts_with("POST /order ") && order.ends_with(r#"{"n":3,"text":"n=3"}"#),
        "{order}"
    );
    assert_eq!(header(order, "content-type").as_deref(), Some("application/json"));
    let attempt = &world.json(&["tasks", "attempts", "calls", "@latest", "order"])[0];
    assert_eq!(header(order, "fencepost-fencing-token").as_deref(), attempt["token"].as_str());
    // The key is the same for both tries, the token is not.
    let busy = server.of("/busy");
    let keys = |name: &str| [header(&busy[0], name).unwrap(), header(&busy[1], name).unwrap()];
    let [first, second] = keys("idempotency-key");
    assert_eq!(first, second);
    let [first, second] = keys("fencepost-fencing-token");
    assert_ne!(first, second);
    let reasons = world.json(&["tasks", "attempts", "calls", "@latest", "busy"]);
    assert_eq!(
        (&reasons[0]["reason"], &reasons[0]["exit_code"]),
        (&json!("result_file"), &json!(75))
    );
    let gone = world.json(&["tasks", "attempts", "calls", "@latest", "nobody"]);
    assert_eq!(gone[0]["exit_code"], 75, "{gone}");
    // Nothing that was secret is in the log.
    let no = &server.of("/no?key=top")[0];
    assert_eq!(header(no, "authorization").as_deref(), Some("Bearer top-secret-token"));
    let log = world.must(&["logs", "calls", "@latest", "no"]);
    assert!(
        log.contains("DELETE") && log.contains("/no?...") && log.contains("you sent ***"),
        "{log}"
    );
    assert!(!log.contains("top-secret"), "{log}");
    let log = world.must(&["logs", "calls", "@latest", "pointer"]);
    assert!(log.contains("nothing at `/data/x` for the output `x`"), "{log}");
    world.assert_sound();
    node.stop();
}

/// The process is an attempt's like any other: it outlives the standalone, and a stop ends it.
#[test]
fn a_request_outlives_a_kill_and_ends_with_a_cancel() {
    let world = World::new();
    let (send, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let server = serve(move |path, _| {
        if path == "/slow" {
            held.lock().unwrap().recv().unwrap();
        }
        answer("200 OK", "", "done")
    });
    let url = &server.url;
    world.dag("slow", &format!("tasks: {{t: {{http: '{url}/slow'}}}}\n"));
    let node = world.start();
    world.trigger("slow");
    wait_for("the request", || server.of("/slow").len() == 1);
    node.kill9();
    let node = world.start();
    send.send(()).unwrap();
    world.wait_state("slow", "success");
    assert_eq!(server.of("/slow").len(), 1);
    world.trigger("slow");
    wait_for("the second", || server.of("/slow").len() == 2);
    world.must(&["runs", "cancel", "slow", "@latest", "--yes"]);
    world.wait_state("slow", "cancelled");
    world.assert_sound();
    node.stop();
}
