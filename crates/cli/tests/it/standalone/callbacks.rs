//! The example `callbacks`, with a real receiver and a real mail server, one kill -9, and a receiver that is
//! refused, then down, then up.

use super::world::{World, wait_for};
use crate::installation::Installation;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A request: its path, the id of the callback, its body.
type Request = (String, String, Value);

/// What the outside has heard.
#[derive(Clone, Default)]
pub(super) struct Outside {
    pub(super) requests: Arc<Mutex<Vec<Request>>>,
    mails: Arc<Mutex<Vec<String>>>,
    is_up: Arc<AtomicBool>,
}

/// Serves each connection on a thread of its own; the port.
pub(super) fn serve(
    outside: &Outside,
    each: fn(TcpStream, &Outside) -> std::io::Result<()>,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, outside) = (listener.local_addr().unwrap().port(), outside.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let outside = outside.clone();
            // A client may be killed at any byte.
            std::thread::spawn(move || drop(each(stream, &outside)));
        }
    });
    port
}

fn http(stream: TcpStream, outside: &Outside) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut id, mut length) = (String::new(), String::new(), 0);
    stream.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => value.clone_into(&mut id),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = if outside.is_up.load(Ordering::SeqCst) {
        let body = serde_json::from_slice(&body).unwrap();
        outside.requests.lock().unwrap().push((path, id, body));
        "HTTP/1.1 204 No Content"
    } else {
        "HTTP/1.1 503 Service Unavailable"
    };
    let end = "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.get_mut().write_all(format!("{answer}{end}").as_bytes())
}

fn smtp(stream: TcpStream, outside: &Outside) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(b"220 here\r\n")?;
    let mut mail = None;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match (&mut mail, line.trim_end()) {
            (Some(text), ".") => {
                outside.mails.lock().unwrap().push(std::mem::take(text));
                mail = None;
                "250 taken"
            }
            (Some(text), _) => {
                text.push_str(&line);
                continue;
            }
            (None, "DATA") => {
                mail = Some(String::new());
                "354 go on"
            }
            (None, "QUIT") => "221 bye",
            (None, _) => "250 good",
        };
        stream.get_mut().write_all(format!("{answer}\r\n").as_bytes())?;
    }
}

fn listed(world: &World, state: &str) -> Vec<Value> {
    let found = world.json(&["callbacks", "list", "--state", state]);
    found.as_array().cloned().unwrap_or_default()
}

#[test]
fn the_example_tells_each_thing_once_whatever_is_killed() {
    let mut world = World::new();
    let dags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/callbacks/dags");
    for name in ["nightly.yaml", "repair.yaml"] {
        std::fs::copy(dags.join(name), world.path("dags").join(name)).unwrap();
    }
    let outside = Outside::default();
    let (web, mail) = (serve(&outside, http), serve(&outside, smtp));
    for (key, value) in [
        ("smtp.host", "127.0.0.1"),
        ("smtp.port", &mail.to_string()),
        ("smtp.security", "none"),
        ("smtp.from", "fencepost@example.com"),
    ] {
        world.setting(key, value);
    }
    let node = world.start();
    wait_for("the DAGs", || world.json(&["dags", "list"]).as_array().is_some_and(|l| l.len() == 3));
    let receiver = format!("receiver=http://127.0.0.1:{web}");
    world.must(&["dags", "trigger", "nightly", "-p", &receiver]);
    world.wait_state("nightly", "failed");
    // This host is no public address: nothing of the request leaves before somebody allows it.
    let refused = |one: &Value| one["last_error"].to_string().contains("no public address");
    wait_for("the refusals", || {
        listed(&world, "due").iter().filter(|one| refused(one)).count() == 2
    });
    let asked = world.json(&["inspect", "callbacks"]).to_string();
    assert!(asked.contains("[http] allow"), "{asked}");
    node.kill9();
    world.setting("http.allow", "127.0.0.1");
    let node = world.start();
    let down = |one: &Value| one["last_error"].to_string().contains("it answered 503");
    wait_for("the receiver's answer", || listed(&world, "due").iter().any(down));
    node.kill9();
    outside.is_up.store(true, Ordering::SeqCst);
    let node = world.start();
    wait_for("everything to arrive", || listed(&world, "due").is_empty());
    wait_for("the repair", || world.run_state("repair") == "success");
    wait_for("the command", || world.run_state("nightly.callbacks") == "success");
    let run = world.json(&["runs", "list", "nightly"])[0]["run_id"].as_str().unwrap().to_owned();
    let log = world.must(&["logs", "nightly.callbacks", "@latest"]);
    assert!(log.contains(&format!("paging for {run} (good=false): task_failed")), "{log}");
    let requests = outside.requests.lock().unwrap().clone();
    let of = |path: &str| -> Vec<&Request> {
        requests.iter().filter(|request| request.0 == path).collect()
    };
    let ids: BTreeSet<&String> = requests.iter().map(|request| &request.1).collect();
    // A kill between an arrival and its commit repeats it, under its id.
    assert_eq!(ids.len(), 2, "{requests:?}");
    let text = of("/slack")[0].2["text"].as_str().unwrap();
    assert!(text.starts_with("nightly ") && text.contains(" failed: "), "{text}");
    assert!(text.contains("/dags/nightly/runs/"), "{text}");
    let retry = &of("/retries")[0].2;
    let attempts = world.json(&["attempts", "show", retry["attempt"].as_str().unwrap()]);
    assert_eq!((&retry["task"], &attempts["task_id"]), (&"load".into(), &"load".into()));
    let mails = outside.mails.lock().unwrap().clone();
    assert!(mails[0].contains("Subject: load failed: ") && mails[0].contains("Message-ID: <"));
    assert_eq!(world.json(&["runs", "list", "repair"]).as_array().map(Vec::len), Some(1));
    assert_eq!(listed(&world, "delivered").len(), 5);
    let events = world.json(&["events", "nightly", "@latest"]).to_string();
    assert!(
        events.contains("callback_failed") && events.contains("callback_delivered"),
        "{events}"
    );
    world.assert_sound();
    node.stop();
}
