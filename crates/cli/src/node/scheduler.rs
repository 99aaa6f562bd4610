//! The role `scheduler`: the passes, and the DAG folder.
//!
//! Everything that it writes is written under its lease. When that is over the passes end, what they
//! believed is dropped, and the role goes on as a new job.

use super::member::{Member, Membership};
use super::ping::Pinger;
use super::serve::{self, Address, Parts};
use super::{DagFolder, Options, StoreLogs, courier, effects, keep, keyring, shared, spawn_passes};
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::Cx;
use fencepost_engine::drive::{Ended, SharedHealth};
use fencepost_server::vault::Keyring;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A scheduler that schedules.
pub(crate) struct Scheduler {
    /// If it was told to listen.
    pub(crate) address: Option<Address>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// The context of the job that the role is now.
type Current = Arc<RwLock<Cx>>;

impl Scheduler {
    /// Starts it; `listens`: on the configured address, for people.
    pub(crate) async fn start(options: &Options, listens: bool) -> Outcome<Self> {
        let settings = &options.settings;
        let keyring = keyring::load(settings, keyring::Absent::DoWithout)?;
        let listener = if listens { Some(serve::bind(settings).await?) } else { None };
        let scraped = serve::bind_metrics(settings).await?;
        let membership = shared::open_as(options, JobKind::Scheduler).await?;
        let member = membership.join().await?;
        let current: Current = Arc::new(RwLock::new(member.cx.clone()));
        let dags = PathBuf::from(settings.text("dags.path").unwrap_or("dags"));
        let interval = settings.span("scheduler.parse_interval").unwrap_or(Span::from_secs(5));
        let of_now = Arc::clone(&current);
        let cx = move || of_now.read().unwrap_or_else(PoisonError::into_inner).clone();
        DagFolder::new(dags)
            .watch(cx, interval.to_std())
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        let (stop, stopped) = watch::channel(false);
        let health = SharedHealth::default();
        serve::listen_for_metrics(&membership.cx, options, scraped, &health, stopped.clone());
        let address = listener.map(|listener| {
            let cx = &membership.cx;
            let parts = Parts {
                keyring: Arc::clone(&keyring),
                health: Arc::clone(&health),
                trouble: Arc::new(|| None),
                logs: Arc::new(StoreLogs::new(cx.store.clone())),
                execution: None,
                stopped: stopped.clone(),
            };
            serve::listen(cx, options, listener, parts).0
        });
        let pinger = Pinger {
            health: Arc::clone(&health),
            meters: Arc::clone(&membership.cx.meters),
            journal: Arc::clone(&membership.journal),
        };
        pinger.start(settings, stopped.clone())?;
        let task =
            tokio::spawn(run(Lives { membership, current, health, keyring }, member, stopped));
        Ok(Self { address, stop, task })
    }

    /// Ends after the turn that is under way.
    pub(crate) async fn stop(self) {
        // Nobody listening is fine.
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }

    /// Ready once it has ended by itself.
    pub(crate) async fn broken(&self) {
        super::ended(&self.task).await;
    }
}

/// What a scheduler keeps from one job to the next.
struct Lives {
    membership: Membership,
    current: Current,
    health: SharedHealth,
    keyring: Arc<Keyring>,
}

async fn run(lives: Lives, mut member: Member, mut stopped: watch::Receiver<bool>) {
    let Lives { membership, current, health, keyring } = lives;
    loop {
        let keep = keep(&membership.settings);
        let keyring = Arc::clone(&keyring);
        let callbacks = courier::pass(&member.cx, &membership.settings, keyring, None);
        let effects = (effects::none(), None, callbacks);
        let passes = spawn_passes(&member.cx, effects, keep, &health, stopped.clone());
        match passes.await {
            Ok(Ended::Stopped) => return member.leave().await,
            Ok(Ended::Fenced) => membership.fenced(),
            // A panic in a pass: the process is of no use any more.
            Err(_) => return member.leave().await,
        }
        member.drop_lease().await;
        let Some(next) = membership.join_again(&mut stopped).await else { return };
        *current.write().unwrap_or_else(PoisonError::into_inner) = next.cx.clone();
        member = next;
    }
}
