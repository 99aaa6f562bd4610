//! An installation in a temporary folder: store, engine, router, a worker that is played.

mod logs;
mod played;
mod points;

use logs::Logs;
use played::Played;
use points::Points;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use fencepost_api::rest::ConfigValue;
use fencepost_core::hook::Hooks;
use fencepost_core::time::{BootInstant, Span, Timestamp};
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{Health, SharedHealth};
use fencepost_engine::env::Env;
use fencepost_engine::operations::dag_files::{self, DagFile, ReadDag};
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_server::auth::ensure_owner_token;
use fencepost_server::metrics::{Metrics, routes};
use fencepost_server::render::Renderer;
use fencepost_server::rest::{RestState, router};
use fencepost_server::vault::Keyring;
use fencepost_store::query::{installation, pool};
use fencepost_store::{Store, StoreClock};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt;

pub(crate) struct Fixture {
    pub(crate) home: TempDir,
    pub(crate) cx: Cx,
    pub(crate) router: Router,
    /// The owner's.
    pub(crate) token: String,
    pub(crate) points: Arc<Points>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) health: SharedHealth,
    pub(crate) trouble: Arc<Mutex<Option<String>>>,
    pub(crate) stop: watch::Sender<bool>,
    clock: Arc<AtomicI64>,
    worker: Mutex<Option<Played>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or_default()
    }
    pub(crate) fn items(&self) -> &[Value] {
        assert_eq!(self.status, 200, "{:#}", self.json);
        self.json["items"].as_array().unwrap()
    }
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
    /// One field of each item.
    pub(crate) fn each(&self, field: &str) -> Vec<String> {
        self.items().iter().map(|item| text(&item[field])).collect()
    }
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:#}", self.json);
        self
    }
}

/// A field as text, whatever it is.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

/// Of nothing that anybody keeps.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const START: &str = "2026-09-22T05:00:00Z";

impl Fixture {
    pub(crate) async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let began: Timestamp = START.parse().unwrap();
        let clock = Arc::new(AtomicI64::new(began.as_micros()));
        let points = Arc::new(Points::default());
        let (reading, hooked) = (Arc::clone(&clock), Arc::clone(&points));
        let store_clock =
            StoreClock::new(move || Timestamp::from_micros(reading.fetch_add(1, Ordering::SeqCst)));
        let hooks = Hooks::new(move |point| hooked.verdict(point));
        let path = home.path().join("fencepost.db");
        let store = Store::open_sqlite(&path, store_clock, hooks).unwrap();
        let cx = Cx::new(store, env(&clock), Settings::default());
        let tx = cx.store.begin("setup").await.unwrap();
        installation::make(&tx, "test-installation").await.unwrap();
        pool::make(&tx, "default_pool", 128, "for all").await.unwrap();
        tx.commit().await.unwrap();
        let file = home.path().join("token");
        ensure_owner_token(&cx, &file).await.unwrap();
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        let logs = Arc::new(Logs { chunk: 3, ..Logs::default() });
        let health: SharedHealth = Arc::new(Mutex::new(Health::default()));
        let trouble = Arc::new(Mutex::new(None));
        let (stop, stopped) = watch::channel(false);
        let told = Arc::clone(&trouble);
        let state = RestState {
            cx: cx.clone(),
            logs: logs.clone(),
            health: Arc::clone(&health),
            config: Arc::new(config()),
            version: "1.2.3".into(),
            started_at: began,
            worker_trouble: Arc::new(move || told.lock().unwrap().clone()),
            keyring: Arc::new(Keyring::parse(KEY).unwrap()),
            stop: stopped,
        };
        let metrics = Metrics {
            cx: cx.clone(),
            health: Arc::clone(&health),
            version: "1.2.3".into(),
            is_anonymous: false,
        };
        let router = router(state).merge(routes(metrics));
        let worker = Mutex::new(None);
        Self { home, cx, router, token, points, logs, health, trouble, stop, clock, worker }
    }

    /// Moves the store's clock on.
    pub(crate) fn pass_time(&self, span: Span) {
        self.clock.fetch_add(span.as_micros(), Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.load(Ordering::SeqCst))
    }

    /// Loads DAG files: (name, text).
    pub(crate) async fn load(&self, files: &[(&str, &str)]) {
        let read = |(name, source): &(&str, &str)| {
            let parsed = fencepost_dagfile::parse(source.as_bytes(), name);
            let errors: Vec<Value> = parsed.diagnostics.iter().map(diagnostic).collect();
            let content = parsed.dag.map(|dag| {
                ReadDag::new(dag, (*source).into(), |dag| {
                    (fencepost_dagfile::content_hash(dag), fencepost_dagfile::ir(dag))
                })
            });
            DagFile { fileloc: (*name).into(), content: content.ok_or(Value::Array(errors)) }
        };
        let changed: Vec<DagFile> = files.iter().map(read).collect();
        let present: BTreeSet<String> = files.iter().map(|(name, _)| (*name).into()).collect();
        dag_files::load(&self.cx, &changed, &present).await.unwrap();
    }

    /// Runs the passes until nothing moves.
    pub(crate) async fn turn(&self) {
        for _ in 0..100 {
            let mut moved = Scheduler.pass(&self.cx).await.unwrap().moved;
            moved += Dispatcher.pass(&self.cx).await.unwrap().moved;
            moved += Reaper.pass(&self.cx).await.unwrap().moved;
            if moved == 0 {
                return;
            }
        }
        panic!("the passes do not come to rest");
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Reply { status: parts.status.as_u16(), headers: parts.headers, json, text }
    }

    pub(crate) async fn with(&self, token: &str, method: &str, path: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        self.call(method, &format!("/api/v1{path}"), &[("authorization", &bearer)], "").await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.with(&self.token, "GET", path).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.with(&self.token, "DELETE", path).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Reply {
        self.send_with(method, path, body, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, body).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        more: &[(&str, &str)],
    ) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.push(("content-type", "application/json"));
        headers.extend(more);
        self.call(method, &format!("/api/v1{path}"), &headers, body.to_string()).await
    }

    /// The worker of this installation; registers with its first use.
    pub(crate) async fn worker(&self) -> Played {
        let known = self.worker.lock().unwrap().clone();
        if let Some(known) = known {
            return known;
        }
        let played = Played::register(&self.cx).await;
        *self.worker.lock().unwrap() = Some(played.clone());
        played
    }
}

/// It opens what was sealed with [`KEY`].
pub(crate) fn renderer() -> Renderer {
    Renderer::new(Arc::new(Keyring::parse(KEY).unwrap()))
}

fn env(clock: &Arc<AtomicI64>) -> Env {
    let (wall, boot, random) = (Arc::clone(clock), Arc::clone(clock), AtomicU64::new(1));
    let (evaluate, value, render) = renderer().functions();
    Env {
        wall: Arc::new(move || Timestamp::from_micros(wall.load(Ordering::SeqCst))),
        boottime: Arc::new(move || BootInstant::from_micros(boot.load(Ordering::SeqCst))),
        // A full-period generator: different at each draw, the same in each test.
        random: Arc::new(move || {
            let next =
                |seed: u64| Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            random.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap_or(0)
        }),
        decode: Arc::new(|ir| fencepost_dagfile::from_ir(ir).map_err(|error| error.to_string())),
        evaluate,
        value,
        render,
    }
}

fn config() -> Vec<ConfigValue> {
    let value = |key: &str, value: &str| ConfigValue {
        key: key.into(),
        value: Some(value.into()),
        origin: "default".into(),
        origin_detail: None,
    };
    vec![value("worker.slots", "4"), value("server.listen", "127.0.0.1:7373")]
}

fn diagnostic(found: &fencepost_dagfile::Diagnostic) -> Value {
    serde_json::json!({
        "path": "x", "line": found.line, "column": found.column,
        "severity": found.severity.as_str(), "code": found.code, "message": found.message,
        "hint": found.hint,
    })
}

/// extract -> load -> publish[0..3], and a param.
pub(crate) const SALES: &str = r#"
dag_id: sales
description: Load orders
owner: data
tags: [sales, critical]
schedule: "0 5 * * *"
timezone: Europe/Berlin
start_date: 2026-09-23
params:
  day: {type: string, default: monday}
  rows: 5
env: {WHO: "{{ dag.dag_id }}"}
tasks:
  publish:
    depends_on: [load]
    expand: {region: [emea, amer, apac]}
    map_index_template: "{{ region }}"
    run: echo {{ region | sh }}
  load:
    depends_on: [extract]
    command: [loader, "{{ outputs.extract.rows }}"]
    retries: 1
  extract:
    run: echo {{ params.day | sh }}
    outputs: {rows: integer}
"#;
