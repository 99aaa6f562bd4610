//! The role `triggerer`: what deferred tasks wait for.
//!
//! Everything that it writes is written under its lease. When that is over its looks are dropped, another
//! triggerer takes its rows over, and the role goes on as a new job.

use super::looker::HostLooker;
use super::member::{Member, Membership};
use super::serve::{self, Address, Parts};
use super::{Options, StoreLogs, keyring, shared};
use crate::config::Settings;
use crate::error::Outcome;
use fencepost_core::state::JobKind;
use fencepost_engine::drive::{Ended, SharedHealth, drive};
use fencepost_engine::triggerer::{Timers, Watcher};
use fencepost_engine::{Cx, Pass};
use fencepost_server::vault::Keyring;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A triggerer that watches.
pub(crate) struct Triggerer {
    /// If it was told to listen.
    pub(crate) address: Option<Address>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// The pass that looks, as configured.
pub(super) fn watcher(cx: &Cx, keyring: &Arc<Keyring>, settings: &Settings) -> Watcher {
    let capacity = settings.text("triggerer.capacity").and_then(|text| text.parse().ok());
    let looker = HostLooker::of(cx.store.clone(), Arc::clone(keyring), settings);
    Watcher::new(Arc::new(looker), capacity.unwrap_or(1_000))
}

impl Triggerer {
    /// Starts it; `listens`: on the configured address, for people.
    pub(crate) async fn start(options: &Options, listens: bool) -> Outcome<Self> {
        let settings = &options.settings;
        let listener = if listens { Some(serve::bind(settings).await?) } else { None };
        let scraped = serve::bind_metrics(settings).await?;
        let membership = shared::open_as(options, JobKind::Triggerer).await?;
        let keyring = keyring::load(settings, keyring::Absent::DoWithout)?;
        let member = membership.join().await?;
        let (stop, stopped) = watch::channel(false);
        let health = SharedHealth::default();
        serve::listen_for_metrics(&membership.cx, options, scraped, &health, stopped.clone());
        let address = listener.map(|listener| {
            let cx = &membership.cx;
            let parts = Parts {
                health: Arc::clone(&health),
                trouble: Arc::new(|| None),
                logs: Arc::new(StoreLogs::new(cx.store.clone())),
                execution: None,
                keyring: Arc::clone(&keyring),
                stopped: stopped.clone(),
            };
            serve::listen(cx, options, listener, parts).0
        });
        let task = tokio::spawn(run((membership, keyring), health, member, stopped));
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

async fn run(
    (membership, keyring): (Membership, Arc<Keyring>),
    health: SharedHealth,
    mut member: Member,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let watcher = watcher(&member.cx, &keyring, &membership.settings);
        let passes: Vec<Box<dyn Pass>> = vec![Box::new(Timers), Box::new(watcher)];
        let turns = drive(member.cx.clone(), passes, Arc::clone(&health), stopped.clone());
        match tokio::spawn(turns).await {
            Ok(Ended::Stopped) => return member.leave().await,
            Ok(Ended::Fenced) => membership.fenced(),
            // A panic in a pass: the process is of no use any more.
            Err(_) => return member.leave().await,
        }
        member.drop_lease().await;
        let Some(next) = membership.join_again(&mut stopped).await else { return };
        member = next;
    }
}
