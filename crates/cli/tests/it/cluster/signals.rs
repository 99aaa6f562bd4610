//! What leaves an installation by itself: metrics, pings, the journal.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::{comes_true, wait_for};
use fencepost_testing::cluster::{Cluster as Server, End};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(300);

/// Somebody outside who counts pings.
struct Watcher {
    url: String,
    heard: Arc<AtomicUsize>,
}

impl Watcher {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret-of-the-switch", listener.local_addr().unwrap());
        let heard = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_ping(stream) {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Self { url, heard }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }

    /// What was under way arrives; then nothing comes for ten intervals.
    fn wait_for_silence(&self, why: &str) {
        let why = format!("silence: {why}");
        wait_for(&why, || {
            let before = self.heard();
            !comes_true(INTERVAL * 10, || self.heard() > before)
        });
    }

    fn wait_for_more(&self, what: &str) {
        let before = self.heard();
        wait_for(what, || self.heard() > before + 1);
    }
}

fn is_ping(mut stream: TcpStream) -> bool {
    let mut request = [0; 1_024];
    let length = stream.read(&mut request).unwrap_or(0);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    request[..length].starts_with(b"GET /secret-of-the-switch HTTP/1.1\r\n")
}

/// Progress, not life: a beat of its own thread sends no ping.
#[test]
fn pings_come_while_passes_go_round_and_cease_when_they_do_not() {
    let watcher = Watcher::new();
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(&place.path().join("server")).unwrap();
    let mut cluster = Cluster::on(server.url("postgres"));
    cluster.setting("alerts.ping_url", &watcher.url);
    cluster.setting("alerts.ping_interval", "300ms");
    cluster.setting("scheduler.scan_interval", "100ms");
    let scheduler = cluster.scheduler("s1");
    watcher.wait_for_more("pings");
    scheduler.signal(Signal::STOP);
    watcher.wait_for_silence("the scheduler is stopped");
    scheduler.signal(Signal::CONT);
    watcher.wait_for_more("pings of the scheduler that goes on");
    server.end(End::Immediate).unwrap();
    watcher.wait_for_silence("the store is away");
    server.run_again().unwrap();
    watcher.wait_for_more("pings when the store is back");
    let stderr = cluster.stderr("s1");
    assert!(stderr.contains("store_failed") && stderr.contains("store_answers"), "{stderr}");
    assert!(!stderr.contains("secret-of-the-switch"), "{stderr}");
}

fn get(address: &str, token: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let bearer =
        token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\n{bearer}Connection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn sample(document: &str, series: &str) -> Option<u64> {
    let line = document.lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|rest| rest.trim().parse().ok())
}

/// A scheduler that listens for nothing else serves its own counters; a worker's death is in them, and
/// in what every server reads from the store.
#[test]
fn a_death_is_in_the_metrics_of_who_declared_it_and_in_those_of_the_store() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let server = cluster.server();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    cluster.setting("metrics.listen", &port);
    cluster.setting("metrics.anonymous", "true");
    cluster.setting("logging.format", "json");
    let scheduler = cluster.scheduler("s1");
    cluster.dag("long", "tasks:\n  t: {run: sleep 300, infra_retries: 0}\n");
    let worker = cluster.worker("w1");
    let run = cluster.trigger("long");
    let running = "fencepost_attempts{state=\"running\"}";
    wait_for("the task to run", || sample(&get(&port, None), running) == Some(1));
    worker.kill9();
    let lost = "fencepost_jobs_lost_total{kind=\"worker\"}";
    wait_for("the worker to be declared", || sample(&get(&port, None), lost) == Some(1));
    let by_expiry = "fencepost_attempts_lost_total{evidence=\"expiry\"}";
    wait_for("its attempt to be lost", || sample(&get(&port, None), by_expiry) == Some(1));
    cluster.wait_state("long", &run, "failed");
    let address = cluster.address();
    assert!(get(&address, None).starts_with("HTTP/1.1 401"), "{}", get(&address, None));
    let told = get(&address, Some(cluster.admin()));
    assert_eq!(sample(&told, "fencepost_incidents_total"), Some(1), "{told}");
    assert_eq!(sample(&told, lost), Some(0), "the server declared nobody: {told}");
    let declared = cluster.stderr("s1");
    let line = declared.lines().find(|line| line.contains("\"job_lost\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["role"]), (&"warn".into(), &"scheduler".into()), "{line}");
    drop((server, scheduler));
}
