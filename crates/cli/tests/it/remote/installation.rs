//! A store with its passes, a server that comes and goes, and workers.

use fencepost_api::execution::{Answer, Ended, ExecutionApi, Register, Report};
use fencepost_api::problem::Problem;
use fencepost_core::guard::Guards;
use fencepost_core::hook::Hooks;
use fencepost_core::id::{JobId, uuid_v7};
use fencepost_core::lease::{Lease, LeaseSettings};
use fencepost_core::state::JobKind;
use fencepost_core::time::{BootInstant, Span, Timestamp};
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{SharedHealth, drive};
use fencepost_engine::env::Env;
use fencepost_engine::liveness::{Heart, Stopped, Watch, enroll};
use fencepost_engine::operations::confirm_dead;
use fencepost_engine::operations::dag_files::{self, DagFile, ReadDag};
use fencepost_engine::operations::register::Identity as EngineIdentity;
use fencepost_engine::operations::run_control::AttemptRef;
use fencepost_engine::operations::trigger::{self, TriggerRequest};
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::triggerer::Timers;
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_server::auth;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::{Serves, routes};
use fencepost_server::render::Renderer;
use fencepost_store::query::api_token::{self, ApiToken};
use fencepost_store::query::{installation, pool, run};
use fencepost_store::{Store, StoreClock};
use fencepost_worker::attempt::{AttemptHost, HomeBoot, OsHost};
use fencepost_worker::clock::{BootId, ClockKind};
use fencepost_worker::http::{Connect, HttpExecution};
use fencepost_worker::supervisor::{self, Beats, Identity, Supervisor, TaskApi};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The store, its passes, and a server.
pub(crate) struct Installation {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) cx: Cx,
    /// Of role worker.
    pub(crate) join_token: String,
    pub(crate) join_id: String,
    pub(crate) address: SocketAddr,
    server: Option<(watch::Sender<bool>, JoinHandle<()>)>,
    /// The heart of the server's job; only a server with one makes workers' leases count.
    heart: Option<JoinHandle<Stopped>>,
    stop: watch::Sender<bool>,
}

/// A worker that runs.
pub(crate) struct Worker {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<Vec<String>, Problem>>,
}

fn now() -> Timestamp {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

fn random() -> u64 {
    getrandom::u64().unwrap()
}

fn env() -> Env {
    let (evaluate, value, render) = Renderer::without_keys().functions();
    Env {
        wall: Arc::new(now),
        boottime: Arc::new(|| {
            let micros = ClockKind::Boottime.now_ns() / 1_000;
            BootInstant::from_micros(i64::try_from(micros).unwrap())
        }),
        random: Arc::new(random),
        decode: Arc::new(|ir| fencepost_dagfile::from_ir(ir).map_err(|error| error.to_string())),
        evaluate,
        value,
        render,
    }
}

impl Installation {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fencepost.db");
        let store = Store::open_sqlite(&path, StoreClock::new(now), Hooks::none()).unwrap();
        let cx = Cx::new(store, env(), Settings::default());
        let tx = cx.store.begin("setup").await.unwrap();
        installation::make(&tx, "test-installation").await.unwrap();
        pool::make(&tx, "default_pool", 128, "for all").await.unwrap();
        tx.commit().await.unwrap();
        let (join_id, join_token) = join_token(&cx, "worker").await;
        let (stop, stopped) = watch::channel(false);
        let passes: Vec<Box<dyn Pass>> = vec![
            Box::new(Scheduler),
            Box::new(Dispatcher),
            Box::<Watch>::default(),
            Box::new(Timers),
            Box::new(Reaper),
        ];
        tokio::spawn(drive(cx.clone(), passes, SharedHealth::default(), stopped));
        let address = "127.0.0.1:0".parse().unwrap();
        let mut own =
            Self { folder, cx, join_token, join_id, address, server: None, heart: None, stop };
        own.serve().await;
        own
    }

    /// Starts a server, where the last one was.
    pub(crate) async fn serve(&mut self) {
        let listener = loop {
            match tokio::net::TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.address = listener.local_addr().unwrap();
        let (stop, mut stopped) = watch::channel(false);
        let execution =
            Execution::new(self.cx.clone(), Renderer::without_keys()).until(stopped.clone());
        let router = routes(execution, Serves::Workers, "1.2.3".into());
        let task = tokio::spawn(async move {
            let until = async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            axum::serve(listener, router).with_graceful_shutdown(until).await.unwrap();
        });
        self.server = Some((stop, task));
    }

    /// The server has a job of its own that beats.
    pub(crate) async fn beat(&mut self) {
        let who = EngineIdentity {
            job_id: self.cx.env.job_id(),
            kind: JobKind::Server,
            name: "server".into(),
            host: "host".into(),
            pid: 1,
            pid_start: 1,
            boot_id: "boot".into(),
            machine_id: "machine".into(),
            home_id: String::new(),
            registration: 0,
            version: "1.2.3".into(),
            queues: Vec::new(),
            slots: 0,
            lease_ttl: None,
        };
        let cx = enroll(&self.cx, &who, lease(30, 1)).await.unwrap();
        let heart = Heart::new(self.cx.clone(), Arc::clone(cx.own.as_ref().unwrap()));
        let sleep = |span: Span| pause(span.to_std());
        self.heart = Some(tokio::spawn(async move {
            // A heart whose stop is gone has been stopped.
            let (_keep, never) = watch::channel(false);
            heart.run(sleep, never).await
        }));
    }

    /// Ends the server in order: calls in flight are answered.
    pub(crate) async fn stop_server(&mut self) {
        let (stop, task) = self.server.take().unwrap();
        stop.send(true).unwrap();
        task.await.unwrap();
    }

    /// Ends the server in the middle of whatever it does.
    pub(crate) async fn kill_server(&mut self) {
        let (_, task) = self.server.take().unwrap();
        task.abort();
        let _ = task.await;
        if let Some(heart) = self.heart.take() {
            heart.abort();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn client(&self, join_token: &str) -> HttpExecution {
        HttpExecution::new(Connect {
            url: self.url(),
            ca: None,
            join_token: join_token.into(),
            version: "1.2.3".into(),
            random: Arc::new(random),
            notice: Arc::new(|_| {}),
        })
        .unwrap()
    }

    /// Starts a worker with a home of that name.
    pub(crate) fn worker(&self, home: &str) -> Worker {
        self.worker_with(home, None)
    }

    /// Starts a worker with that lease; its beats have a thread of their own.
    pub(crate) fn worker_with(&self, home: &str, lease: Option<Lease>) -> Worker {
        let api = Arc::new(self.client(&self.join_token));
        let path = self.path(home);
        let who = identity(&self.cx, home);
        let mut settings = settings(&path, self.url());
        if let Some(lease) = lease {
            settings.heartbeat_interval = lease.heartbeat_interval.to_std();
            settings.kill_grace = lease.kill_grace.to_std();
            settings.margin = lease.margin.to_std();
            settings.beats =
                Some(Beats::on_own_thread(Arc::new(api.beside(lease.heartbeat_interval.to_std()))));
            settings.lease = Some(lease);
            settings.clock = ClockKind::Boottime;
            settings.now_ns = Arc::new(|| ClockKind::Boottime.now_ns());
        }
        let supervisor = Supervisor::new(api, host(&path), settings, who, Hooks::none());
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(supervisor.run(stopped));
        Worker { stop, task }
    }

    pub(crate) async fn load(&self, name: &str, yaml: &str) {
        let parsed = fencepost_dagfile::parse(yaml.as_bytes(), name);
        let dag = parsed.dag.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let content = ReadDag::new(dag, yaml.into(), |dag| {
            (fencepost_dagfile::content_hash(dag), fencepost_dagfile::ir(dag))
        });
        let file = DagFile { fileloc: name.into(), content: Ok(content) };
        dag_files::load(&self.cx, &[file], &[name.to_owned()].into()).await.unwrap();
    }

    pub(crate) async fn trigger(&self, dag_id: &str) -> String {
        let request = TriggerRequest { dag_id: dag_id.into(), ..TriggerRequest::default() };
        trigger::trigger(&self.cx, request).await.unwrap().run_id
    }

    pub(crate) async fn trigger_as(&self, dag_id: &str, run_id: &str) {
        let (dag_id, run_id) = (dag_id.to_owned(), Some(run_id.to_owned()));
        let request = TriggerRequest { dag_id, run_id, ..TriggerRequest::default() };
        trigger::trigger(&self.cx, request).await.unwrap();
    }

    /// A person says that an attempt's processes are gone.
    pub(crate) async fn confirm_dead(&self, token: &str) {
        let attempt = AttemptRef::Token(token.parse().unwrap());
        confirm_dead::confirm_dead(&self.cx, &attempt, "anna", None).await.unwrap();
    }

    pub(crate) async fn run_state(&self, dag_id: &str, run_id: &str) -> String {
        let tx = self.cx.store.read("test").await.unwrap();
        run::get(&tx, dag_id, run_id).await.unwrap().unwrap().state.to_string()
    }

    pub(crate) async fn wait_run(&self, dag_id: &str, run_id: &str, state: &str) {
        wait_for(&format!("{dag_id} to be {state}"), async || {
            self.run_state(dag_id, run_id).await == state
        })
        .await;
    }

    /// An attempt ends well, as its worker says beside the wire.
    pub(crate) async fn report_success(&self, job_id: &str, token: &str) {
        let report = Report {
            token: token.into(),
            ended: Ended::Exit { code: 0 },
            asked: None,
            outputs: Vec::new(),
            level: None,
            message: None,
            oom: false,
            checkpoint: None,
        };
        let execution = Execution::new(self.cx.clone(), Renderer::without_keys());
        let answers = execution.report(job_id, vec![report]).await.unwrap();
        assert_eq!(answers, [Answer::Accepted]);
    }

    /// Each task of the ledger began and ended once, under one token.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("ledger")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}

/// A lease of so many seconds, with a beat every so many; a second of grace.
pub(crate) fn lease(ttl: i64, beat: i64) -> Lease {
    let settings = LeaseSettings {
        lease_ttl: Span::from_secs(ttl),
        heartbeat_interval: Span::from_secs(beat),
        self_fence: (ttl < 10).then(|| Span::from_secs(ttl - 2)),
        kill_grace: (ttl < 10).then(|| Span::from_secs(1)),
        margin: None,
    };
    settings.check().unwrap()
}

impl Worker {
    /// Ends it in the middle of whatever it does; what it started goes on under its shims.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Ends in order; the tokens that it left running.
    pub(crate) async fn stop(self) -> Vec<String> {
        self.stop.send(true).unwrap();
        self.task.await.unwrap().unwrap()
    }
}

/// A token of that role: its id and its text.
pub(crate) async fn join_token(cx: &Cx, role: &str) -> (String, String) {
    join_token_for(cx, role, None).await
}

/// One that expires after that long.
pub(crate) async fn join_token_for(
    cx: &Cx,
    role: &str,
    good_for: Option<Span>,
) -> (String, String) {
    let secret = auth::new_secret().unwrap();
    let tx = cx.store.begin("token").await.unwrap();
    let token = ApiToken {
        id: cx.env.job_id().to_string(),
        name: String::new(),
        role: role.into(),
        created_at: tx.now(),
        expires_at: good_for.map(|span| tx.now().plus(span)),
        revoked_at: None,
        created_by: "test".into(),
        used_at: None,
    };
    api_token::insert(&tx, &token, &auth::hash(&secret)).await.unwrap();
    tx.commit().await.unwrap();
    (token.id, secret)
}

fn host(home: &Path) -> Arc<dyn AttemptHost> {
    let attempts = home.join("attempts");
    let program = env!("CARGO_BIN_EXE_fencepost");
    Arc::new(OsHost::new(&attempts, program, vec!["shim".into()], HomeBoot::Same).unwrap())
}

fn identity(cx: &Cx, home: &str) -> Identity {
    Identity {
        job_id: cx.env.job_id().to_string(),
        name: home.into(),
        host: "node-a".into(),
        pid: std::process::id(),
        pid_start: 1,
        boot_id: BootId::current().unwrap().to_string(),
        machine_id: "machine".into(),
        home_id: format!("home-{home}"),
        version: "1.2.3".into(),
    }
}

fn settings(home: &Path, url: String) -> supervisor::Settings {
    supervisor::Settings {
        home: home.to_owned(),
        queues: vec!["default".into()],
        slots: 8,
        heartbeat_interval: Duration::from_millis(500),
        lease: None,
        beats: None,
        fresh_job_id: Arc::new(|| JobId::from_u128(uuid_v7(0, random().into())).to_string()),
        orphan_ttl: Duration::from_hours(1),
        kill_grace: Duration::from_secs(5),
        margin: Duration::from_secs(1),
        drain_timeout: Duration::from_millis(500),
        stop_timeout: None,
        log_limit: 16 << 20,
        containment: "group".into(),
        host_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        api: Some(TaskApi { url, ca: None }),
        ships_logs: true,
        python: supervisor::Python::default(),
        guards: Guards::all(),
        clock: ClockKind::Monotonic,
        now_ns: Arc::new(|| ClockKind::Monotonic.now_ns()),
    }
}

pub(crate) fn registration(job_id: &str) -> Register {
    Register {
        job_id: job_id.into(),
        name: "played".into(),
        host: "node-b".into(),
        pid: 1,
        pid_start: 1,
        boot_id: "boot".into(),
        machine_id: "machine".into(),
        home_id: format!("home-of-{job_id}"),
        registration: 0,
        version: "1.2.3".into(),
        queues: vec!["default".into()],
        slots: 8,
        lease_ttl_ms: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "the pace of a server's heart")]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

#[expect(clippy::disallowed_methods, reason = "the one wait of these tests: for a condition")]
pub(crate) async fn wait_for(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..6_000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {what}");
}
