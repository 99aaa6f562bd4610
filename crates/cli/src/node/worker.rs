//! The role `worker`: one home, one server to call.
//!
//! A home that was used before says whose it is, so it is locked before anything is asked; a fresh
//! one has to know its installation first, which the server says.

use super::{
    Options, TURN, ended, home_upkeep, host, identity, lock, serve, shared, surroundings, turn,
    worker_settings,
};
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_api::problem::Problem;
use fencepost_core::lease::Lease;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_worker::clock::ClockKind;
use fencepost_worker::home::Home;
use fencepost_worker::http::{Connect, HttpExecution};
use fencepost_worker::supervisor::{self, Beats, Supervisor, TaskApi};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Whom a worker works for.
#[derive(Debug, Clone)]
pub(crate) struct Employer {
    pub(crate) url: String,
    /// A file with certificates to trust.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) join_token: String,
}

/// A worker that works.
pub(crate) struct Worker {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<Vec<String>, Problem>>,
    turns: JoinHandle<()>,
    api: Arc<HttpExecution>,
    home: Arc<Home>,
    /// How long its shims wait, from the last acknowledged beat.
    self_fence: Span,
}

/// What a worker left when it stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Detached {
    pub(crate) running: Vec<String>,
    /// How long their shims wait for a successor.
    pub(crate) wait: Span,
    /// The server did not hear that it left.
    pub(crate) unheard: Option<String>,
}

impl Worker {
    /// Starts it; it works once it is registered (see [`Worker::registered`]).
    pub(crate) async fn start(options: &Options, employer: &Employer) -> Outcome<Self> {
        let lease = shared::lease(&options.settings, JobKind::Worker)?;
        let api = Arc::new(client(employer)?);
        let settings = settings(options, employer, lease, &api);
        let home = home(options, &api).await?;
        let who = identity::identity(&surroundings::uuid(), &home, &options.settings);
        let host = host(options, &home)?;
        let hooks = super::hooks::hooks(&options.crash)?;
        let calls = Arc::<HttpExecution>::clone(&api);
        let supervisor = Supervisor::new(calls, host, settings, who, hooks);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(supervisor.run(stopped));
        let turns = tokio::spawn(turn(Arc::clone(&home)));
        home_upkeep::begin(&options.settings, &options.home, true);
        Ok(Self { stop, task, turns, api, home, self_fence: lease.self_fence })
    }

    /// Ready once it is registered; an error if it ended before.
    pub(crate) async fn registered(&self) {
        tokio::select! {
            () = self.api.registered() => {}
            () = ended(&self.task) => {}
        }
    }

    /// Claims nothing more, waits `drain_timeout` for what runs, and leaves the rest to its shims.
    pub(crate) async fn stop(self) -> Outcome<Detached> {
        // It ends when it sees it; nobody listening is fine.
        let _ = self.stop.send(true);
        let done = self.task.await;
        self.turns.abort();
        let _ = self.turns.await;
        drop(self.home);
        let wait = self.self_fence;
        match done {
            Ok(Ok(running)) => Ok(Detached { running, wait, unheard: None }),
            // Nobody hears it now: the next process in this home goes on all the same.
            Ok(Err(problem)) if problem.status >= 500 => {
                Ok(Detached { running: Vec::new(), wait, unheard: Some(problem.detail) })
            }
            Ok(Err(problem)) => Err(CliError::from_problem(problem)),
            Err(_) => Err(CliError::new(Exit::Unexpected, "the worker ended by a panic")),
        }
    }

    /// Ready once it has ended by itself.
    pub(crate) async fn broken(&self) {
        ended(&self.task).await;
    }
}

/// A worker's settings with its lease. Beats have connections of their own.
fn settings(
    options: &Options,
    employer: &Employer,
    lease: Lease,
    api: &HttpExecution,
) -> supervisor::Settings {
    let beats = api.beside(lease.heartbeat_interval.to_std());
    supervisor::Settings {
        heartbeat_interval: lease.heartbeat_interval.to_std(),
        lease: Some(lease),
        beats: Some(Beats::on_own_thread(Arc::new(beats))),
        kill_grace: lease.kill_grace.to_std(),
        margin: lease.margin.to_std(),
        api: Some(TaskApi { url: employer.url.clone(), ca: employer.ca.clone() }),
        ships_logs: true,
        clock: ClockKind::Boottime,
        now_ns: Arc::new(|| ClockKind::Boottime.now_ns()),
        ..worker_settings(options)
    }
}

fn client(employer: &Employer) -> Outcome<HttpExecution> {
    let ca = serve::trusted(employer.ca.as_deref(), &employer.url)?;
    let connect = Connect {
        url: employer.url.clone(),
        ca,
        join_token: employer.join_token.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        random: Arc::new(surroundings::random),
        notice: Arc::new(say),
    };
    HttpExecution::new(connect).map_err(|error| CliError::usage(error.to_string()))
}

/// For the operator: when calls begin to fail, and when they are answered again.
#[expect(clippy::print_stderr, reason = "a role's own trouble, for whoever reads its log")]
fn say(trouble: Option<&Problem>) {
    match trouble {
        None => eprintln!("fencepost worker: the server answers"),
        Some(problem) => {
            let mend = problem.suggestion.as_ref().map(|s| format!(": {s}")).unwrap_or_default();
            eprintln!("fencepost worker: {}{mend}", problem.detail);
        }
    }
}

/// Takes the home, in the name of the server's installation.
async fn home(options: &Options, api: &HttpExecution) -> Outcome<Arc<Home>> {
    let known = identity::of_home(&options.home);
    let early = known.as_deref().map(|known| lock(options, known)).transpose()?;
    let hello = loop {
        match api.hello().await {
            Ok(hello) => break hello,
            // A worker may come before its server, or outlive it: what it says is on stderr.
            Err(problem) if problem.status >= 500 => surroundings::pause(TURN / 10).await,
            Err(problem) => return Err(CliError::from_problem(problem)),
        }
    };
    match early {
        Some(home) if known.as_deref() == Some(hello.installation_id.as_str()) => Ok(home),
        Some(_) => {
            let message = format!(
                "the home {} belongs to installation {}, and the server to {}",
                options.home.display(),
                known.unwrap_or_default(),
                hello.installation_id
            );
            Err(CliError::new(Exit::Conflict, message)
                .hint("give this worker a home of its own:  --home DIR"))
        }
        None => lock(options, &hello.installation_id),
    }
}
