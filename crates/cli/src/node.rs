//! Everything in one process: store, engine, worker and server on one home (standalone mode).
//!
//! The order of the start is the order of the rights: the home's lock, the store and its new epoch,
//! the worker's registration with what its predecessors left, then the passes, then the listener.
//! There is no recovery step: the same passes and the same worker do it.

mod connection;
mod courier;
mod dag_folder;
mod effects;
mod epoch;
mod guards;
mod home_upkeep;
mod hooks;
mod identity;
mod journal;
mod keyring;
mod logs;
mod looker;
mod member;
mod outliving;
mod ping;
mod port;
mod scheduler;
mod serve;
mod server;
mod shared;
pub(crate) mod store;
mod store_lock;
mod surroundings;
mod triggerer;
mod worker;

pub(crate) use dag_folder::{DagFolder, load_dag};
pub(crate) use logs::StoreLogs;
pub(crate) use scheduler::Scheduler as SchedulerNode;
pub(crate) use serve::{Address, trusted};
pub(crate) use server::Server as ServerNode;
pub(crate) use triggerer::Triggerer as TriggererNode;
pub(crate) use worker::{Detached, Employer, Worker as WorkerNode};

use crate::config::Settings;
use crate::config::keys::share;
use crate::config::lint::{self, Finding};
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::guard::Guards;
use fencepost_core::retention::Keep;
use fencepost_core::time::Span;
use fencepost_engine::callbacks::CallbackPass;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{Ended, SharedHealth, drive};
use fencepost_engine::liveness::Watch;
use fencepost_engine::outbox::{Outbox, Perform};
use fencepost_engine::reaper::Reaper;
use fencepost_engine::retention::Retention;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::triggerer::{Timers, Watcher};
use fencepost_engine::{Cx, Pass};
use fencepost_server::auth::ensure_owner_token;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::Serves;
use fencepost_server::render::Renderer;
use fencepost_store::Store;
use fencepost_store::query::{event, installation, pool};
use fencepost_worker::attempt::{AttemptHost, OsHost};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::home::{self, Home, HomeClaim, TakeOver};
use fencepost_worker::supervisor::{self, Supervisor};
use journal::Journal;
use logs::HomeLogs;
use ping::Pinger;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Slots of the pool that every task is in unless it names another.
const DEFAULT_POOL_SLOTS: i64 = 128;
/// How often the home's lock says that its holder turns.
const TURN: Duration = Duration::from_secs(5);
/// How often a part that should not end is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Beats without a turn after which a holder counts as stalled.
const STALLED: Duration = Duration::from_secs(15);

/// How a node is to be started.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) home: PathBuf,
    pub(crate) settings: Settings,
    /// End a living holder of the home.
    pub(crate) take_over: bool,
    /// Variables of this process that tasks may see.
    pub(crate) host_env: Vec<(String, String)>,
    /// `FENCEPOST_CRASH` and its like, in builds that have crash points.
    pub(crate) crash: hooks::Crash,
    /// All on, but in builds with `guard-switches`, where `FENCEPOST_UNSAFE` names those that are off.
    pub(crate) guards: Guards,
    /// A role of an installation: it keeps a journal, and says to the outside that it lives.
    pub(crate) is_role: bool,
}

pub(crate) use guards::guards;
pub(crate) use hooks::Crash;
pub(crate) use surroundings::uuid as fresh_id;

/// A node that runs.
pub(crate) struct Node {
    pub(crate) cx: Cx,
    pub(crate) address: Address,
    stop: watch::Sender<bool>,
    worker: tokio::task::JoinHandle<Result<Vec<String>, fencepost_api::problem::Problem>>,
    passes: tokio::task::JoinHandle<Ended>,
    turns: tokio::task::JoinHandle<()>,
    home: Arc<Home>,
    /// Held for this node's life.
    _store_lock: std::fs::File,
}

/// What a node left when it stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Tokens of attempts that go on under their shims.
    pub(crate) running: Vec<String>,
}

impl Node {
    /// Starts everything; returns once it serves.
    pub(crate) async fn start(options: Options) -> Outcome<Self> {
        let Options { home: path, settings, .. } = &options;
        let mut worker_settings = worker_settings(&options);
        if let Some(Finding { message, mend, .. }) = lint::orphan_ttl(settings) {
            return Err(CliError::usage(format!("{message}: write {mend}")));
        }
        let store_path = sqlite_path(settings)?;
        let (home, installation_id) = lock_home(&options, &store_path)?;
        let store_lock = store_lock::take(&store_path)?;
        let hooks = hooks::hooks(&options.crash)?;
        let clock = surroundings::store_clock();
        let store = Store::open_sqlite(&store_path, clock, hooks.clone())
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        let keyring = keyring::load(settings, keyring::Absent::Make)?;
        let env = surroundings::env(Arc::clone(&keyring));
        let cx = Cx::new(store, env, engine_settings(&options));
        prepare(&cx, path, &installation_id).await?;
        // Bound before anything runs, since the tasks are told where it is; served at the end.
        let listener = serve::bind(settings).await?;
        let scraped = serve::bind_metrics(settings).await?;
        worker_settings.api = Some(serve::for_tasks(settings, &listener));
        let callbacks = courier::beside(&cx, settings, &keyring, &listener);
        let (stop, stopped) = watch::channel(false);
        let host = host(&options, &home)?;
        let who = identity::identity(&surroundings::uuid(), &home, settings);
        let execution =
            Execution::new(cx.clone(), Renderer::new(Arc::clone(&keyring))).until(stopped.clone());
        let worker = Supervisor::new(
            Arc::new(execution.clone()),
            Arc::clone(&host),
            worker_settings,
            who,
            hooks,
        );
        let trouble = worker.trouble();
        let worker = tokio::spawn(worker.run(stopped.clone()));
        let health = SharedHealth::default();
        serve::listen_for_metrics(&cx, &options, scraped, &health, stopped.clone());
        if options.is_role {
            let journal = Journal::new(settings, "standalone");
            journal.listen(&cx.meters);
            journal.started(settings);
            let meters = Arc::clone(&cx.meters);
            let pinger = Pinger { health: Arc::clone(&health), meters, journal };
            pinger.start(settings, stopped.clone())?;
        }
        let watcher = Some(triggerer::watcher(&cx, &keyring, settings));
        let own = (effects::perform(path.clone()), watcher, callbacks);
        let passes = spawn_passes(&cx, own, keep(settings), &health, stopped.clone());
        let turns = tokio::spawn(turn(Arc::clone(&home)));
        home_upkeep::begin(settings, path, false);
        ensure_owner_token(&cx, &path.join("token"))
            .await
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        let parts = serve::Parts {
            health,
            trouble: Arc::new(trouble),
            logs: Arc::new(HomeLogs(path.clone())),
            execution: Some((execution, Serves::Attempts)),
            keyring,
            stopped,
        };
        let (address, _) = serve::listen(&cx, &options, listener, parts);
        serve::write_address(path, &address)?;
        Ok(Self { cx, address, stop, worker, passes, turns, home, _store_lock: store_lock })
    }

    /// Stops in order: claims nothing more, waits `drain_timeout` for what runs, leaves the rest
    /// to its shims.
    pub(crate) async fn stop(self) -> Outcome<Left> {
        // The passes and the worker end when they see it; nobody listening is fine.
        let _ = self.stop.send(true);
        self.cx.wakes.engine();
        let worker = self.worker.await;
        let _ = self.passes.await;
        self.turns.abort();
        // Its copy of the home goes with it: the drop below is the one that gives the home up.
        let _ = self.turns.await;
        serve::forget(self.home.path());
        drop(self.home);
        match worker {
            Ok(Ok(running)) => Ok(Left { running }),
            Ok(Err(problem)) => Err(CliError::from_problem(problem)),
            Err(_) => Err(CliError::new(Exit::Unexpected, "the worker ended by a panic")),
        }
    }

    /// Ready once a part that must run for ever has ended by itself: this process is of no use then.
    pub(crate) async fn broken(&self) {
        while !self.worker.is_finished() && !self.passes.is_finished() {
            surroundings::pause(TURN).await;
        }
    }
}

fn sqlite_path(settings: &Settings) -> Outcome<PathBuf> {
    let url = settings.text("store.url").unwrap_or_default();
    url.strip_prefix("sqlite:").map(PathBuf::from).ok_or_else(|| {
        CliError::usage(format!("standalone uses a SQLite store, not `{url}`"))
            .hint("write [store] url = \"sqlite:PATH\", or leave it out")
    })
}

/// Takes the home for this process's life, in the name of the store's installation.
fn lock_home(options: &Options, store: &Path) -> Outcome<(Arc<Home>, String)> {
    let known = Store::installation_of(store).or_else(|| identity::of_home(&options.home));
    let installation_id = known.unwrap_or_else(surroundings::uuid);
    Ok((lock(options, &installation_id)?, installation_id))
}

/// Takes the home for this process's life.
fn lock(options: &Options, installation_id: &str) -> Outcome<Arc<Home>> {
    let claim = HomeClaim {
        installation_id: installation_id.to_owned(),
        machine_id: home::machine_id(),
        worker_name: identity::worker_name(&options.settings),
    };
    let quiet_ns = u64::try_from(STALLED.as_nanos()).unwrap_or(u64::MAX);
    let take_over =
        if options.take_over { TakeOver::Always } else { TakeOver::IfStalled { quiet_ns } };
    home::lock(&options.home, &claim, take_over).map(Arc::new).map_err(refused)
}

fn refused(error: home::HomeError) -> CliError {
    let exit = match error {
        home::HomeError::Held { .. } | home::HomeError::DoesNotEnd { .. } => Exit::Conflict,
        home::HomeError::Io { .. }
        | home::HomeError::NotLocal { .. }
        | home::HomeError::OtherInstallation { .. }
        | home::HomeError::OtherMachine { .. }
        | home::HomeError::Record { .. } => Exit::Unexpected,
    };
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(&error) {
        text = format!("{text}: {cause}");
    }
    CliError::new(exit, text)
}

/// The rows that a fresh store needs; whether it was fresh.
async fn prepare_rows(cx: &Cx, installation_id: &str) -> Outcome<bool> {
    let tx = cx.store.begin("prepare_rows").await.map_err(failed)?;
    // Looked at first: whoever stands still while it mints has that row in its hands, and would keep a
    // start from its end.
    let is_known = installation::load(&tx).await.map_err(failed)?.is_some();
    let fresh = !is_known && installation::make(&tx, installation_id).await.map_err(failed)?;
    pool::make(&tx, "default_pool", DEFAULT_POOL_SLOTS, "every task that names no other")
        .await
        .map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(fresh)
}

fn failed(error: fencepost_store::StoreError) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}

/// The rows that a fresh store needs, and the epoch of this start.
async fn prepare(cx: &Cx, home: &Path, installation_id: &str) -> Outcome<()> {
    let fresh = prepare_rows(cx, installation_id).await?;
    let tx = cx.store.begin("prepare").await.map_err(failed)?;
    let stored = installation::load(&tx).await.map_err(failed)?;
    // A fresh store begins with epoch 1, every later start with a new one.
    let epoch = match epoch::next(home, stored.as_ref().filter(|_| !fresh))? {
        epoch::Start::Plain(epoch) => {
            installation::raise_epoch(&tx, epoch).await.map_err(failed)?;
            epoch
        }
        epoch::Start::PutBack { seen, stored } => {
            let made = installation::force_epoch(&tx, seen, stored).await.map_err(failed)?;
            event::append(&tx, vec![put_back(seen, made)]).await.map_err(failed)?;
            made.unwrap_or(seen)
        }
    };
    tx.commit().await.map_err(failed)?;
    epoch::keep(home, epoch)
}

fn put_back(seen: u32, made: Option<u32>) -> event::Event {
    event::Event {
        kind: "epoch_raised",
        actor: "standalone".into(),
        reason: Some("the store was put back: the home has seen a later epoch".into()),
        evidence: Some(serde_json::json!({ "epoch": made, "seen": seen })),
        ..event::Event::default()
    }
}

fn engine_settings(options: &Options) -> fencepost_engine::Settings {
    let settings = &options.settings;
    let default = fencepost_engine::Settings::default();
    let limit = settings.text("scheduler.requeue_limit").and_then(|text| text.parse().ok());
    let threshold = settings.text("scheduler.mass_loss_threshold").and_then(share);
    let initial = settings.text("recovery.initial").and_then(share);
    let beat = settings.span("scheduler.heartbeat_interval");
    fencepost_engine::Settings {
        scan_interval: settings.span("scheduler.scan_interval").unwrap_or(default.scan_interval),
        start_timeout: settings.span("scheduler.start_timeout").unwrap_or(default.start_timeout),
        requeue_limit: limit.unwrap_or(default.requeue_limit),
        heartbeat_interval: beat.unwrap_or(default.heartbeat_interval),
        mass_loss_percent: threshold.unwrap_or(default.mass_loss_percent),
        recovery_initial: initial.unwrap_or(default.recovery_initial),
        recovery_max_rate: settings.text("recovery.max_rate").and_then(|text| text.parse().ok()),
        guards: options.guards,
    }
}

/// How long things are kept.
pub(crate) fn keep(settings: &Settings) -> Keep {
    let default = Keep::default();
    let span = |name: &str, default: Span| settings.span(name).unwrap_or(default);
    Keep {
        runs: span("retention.runs", default.runs),
        logs: span("retention.logs", default.logs),
        jobs: span("retention.jobs", default.jobs),
        events: span("retention.events", default.events),
    }
}

fn host(options: &Options, lock: &Home) -> Outcome<Arc<dyn AttemptHost>> {
    // The running program itself, also after the file was replaced by a newer one.
    let host = OsHost::new(
        &options.home.join("attempts"),
        "/proc/self/exe",
        vec!["shim".into()],
        lock.boot(),
    );
    match host {
        Ok(host) => Ok(Arc::new(host.with_guards(options.guards))),
        Err(error) => Err(CliError::new(Exit::Unexpected, error.to_string())),
    }
}

fn worker_settings(options: &Options) -> supervisor::Settings {
    let settings = &options.settings;
    let span = |name: &str, default: Span| settings.span(name).unwrap_or(default).to_std();
    let count = |name: &str| settings.text(name).and_then(|text| text.parse::<u32>().ok());
    let queues = settings.text("worker.queues").unwrap_or("default");
    supervisor::Settings {
        home: options.home.clone(),
        queues: queues.split(',').map(|queue| queue.trim().to_owned()).collect(),
        slots: count("worker.slots").unwrap_or_else(surroundings::default_slots),
        heartbeat_interval: span("worker.heartbeat_interval", Span::from_secs(5)),
        lease: None,
        beats: None,
        fresh_job_id: Arc::new(surroundings::uuid),
        orphan_ttl: span("worker.orphan_ttl", Span::from_hours(24)),
        kill_grace: span("worker.kill_grace", Span::from_secs(30)),
        margin: span("worker.margin", Span::from_secs(1)),
        drain_timeout: span("worker.drain_timeout", Span::from_secs(30)),
        stop_timeout: stop_timeout(options),
        log_limit: count("limits.log_bytes").map_or(64 << 20, Into::into),
        containment: settings.text("worker.containment").unwrap_or("auto").into(),
        python: supervisor::Python {
            interpreter: settings.text("worker.python").unwrap_or("python3").into(),
            // A task's own place is another one.
            path: settings.text("dags.path").and_then(|path| std::path::absolute(path).ok()),
        },
        host_env: options.host_env.clone(),
        api: None,
        ships_logs: false,
        clock: ClockKind::Monotonic,
        now_ns: Arc::new(|| ClockKind::Monotonic.now_ns()),
        guards: options.guards,
    }
}

/// Said at the start, because it changes what a stop costs.
#[expect(clippy::print_stderr, reason = "a role's own trouble, for whoever reads its log")]
fn stop_timeout(options: &Options) -> Option<Duration> {
    let has_invocation = options.host_env.iter().any(|(name, _)| name == "INVOCATION_ID");
    let why = outliving::why_not(has_invocation)?;
    let most = options.settings.span("worker.stop_timeout").unwrap_or(Span::from_secs(25));
    eprintln!(
        "fencepost: tasks end with this process ({why}): a stop ends and reports them within {most}"
    );
    Some(most.to_std())
}

fn spawn_passes(
    cx: &Cx,
    (perform, watcher, callbacks): (Perform, Option<Watcher>, CallbackPass),
    keep: Keep,
    health: &SharedHealth,
    stopped: watch::Receiver<bool>,
) -> tokio::task::JoinHandle<Ended> {
    let mut passes: Vec<Box<dyn Pass>> = vec![
        Box::new(Scheduler),
        Box::new(Timers),
        Box::new(Dispatcher),
        Box::new(Reaper),
        Box::new(Watch::default()),
        Box::new(Outbox::new(perform)),
        Box::new(callbacks),
        Box::new(Retention::new(keep)),
    ];
    passes.extend(watcher.map(|watcher| Box::new(watcher) as Box<dyn Pass>));
    tokio::spawn(drive(cx.clone(), passes, Arc::clone(health), stopped))
}

/// Ready once a task has ended by itself.
async fn ended<T>(task: &tokio::task::JoinHandle<T>) {
    while !task.is_finished() {
        surroundings::pause(LOOK).await;
    }
}

/// Ready once a thread has ended.
async fn ended_thread<T>(thread: &std::thread::JoinHandle<T>) {
    while !thread.is_finished() {
        surroundings::pause(LOOK).await;
    }
}

/// Shows that this process turns, for a newcomer that wants its home.
async fn turn(home: Arc<Home>) {
    loop {
        home.turned(ClockKind::Boottime.now_ns());
        surroundings::pause(TURN).await;
    }
}
