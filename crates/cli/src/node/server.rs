//! The role `server`: both APIs on one address, for people, workers and tasks.
//!
//! A server is never an authority: each of its answers follows a committed conditional statement, so
//! it serves whatever becomes of its lease, which says only that it lives and can be called.

use super::member::{Member, Membership, told};
use super::serve::{self, Address, Parts, Serving};
use super::{Options, StoreLogs, keyring, shared};
use crate::error::Outcome;
use fencepost_core::state::JobKind;
use fencepost_engine::drive::SharedHealth;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::Serves;
use fencepost_server::render::Renderer;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A server that serves.
pub(crate) struct Server {
    pub(crate) address: Address,
    stop: watch::Sender<bool>,
    serving: Serving,
    /// Keeps a job registered.
    member: JoinHandle<()>,
    leave: watch::Sender<bool>,
}

impl Server {
    /// Starts it; returns once it serves.
    pub(crate) async fn start(options: &Options) -> Outcome<Self> {
        // Before anything is written: settings that cannot be kept change nothing.
        let keyring = keyring::load(&options.settings, keyring::Absent::DoWithout)?;
        let listener = serve::bind(&options.settings).await?;
        let scraped = serve::bind_metrics(&options.settings).await?;
        let membership = shared::open_as(options, JobKind::Server).await?;
        let member = membership.join().await?;
        let (stop, stopped) = watch::channel(false);
        let cx = membership.cx.clone();
        let health = SharedHealth::default();
        serve::listen_for_metrics(&cx, options, scraped, &health, stopped.clone());
        let renderer = Renderer::new(Arc::clone(&keyring));
        let execution = Execution::new(cx.clone(), renderer).until(stopped.clone());
        let parts = Parts {
            health,
            trouble: Arc::new(|| None),
            logs: Arc::new(StoreLogs::new(cx.store.clone())),
            execution: Some((execution, Serves::Workers)),
            keyring,
            stopped,
        };
        let (address, serving) = serve::listen(&cx, options, listener, parts);
        let (leave, left) = watch::channel(false);
        let member = tokio::spawn(stay(membership, member, left));
        Ok(Self { address, stop, serving, member, leave })
    }

    /// Takes no calls any more, answers long polls at once, and ends when those in flight are
    /// answered.
    pub(crate) async fn stop(self) {
        // Nobody listening is fine.
        let _ = self.stop.send(true);
        self.serving.end().await;
        let _ = self.leave.send(true);
        let _ = self.member.await;
    }

    /// Ready once it has ended by itself.
    pub(crate) async fn broken(&self) {
        self.serving.broken().await;
    }
}

/// Is a job until `leave` says so; a new one whenever its lease is over.
async fn stay(membership: Membership, mut member: Member, mut leave: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = told(&mut leave) => return member.leave().await,
            () = member.over() => membership.fenced(),
        }
        member.drop_lease().await;
        let Some(next) = membership.join_again(&mut leave).await else { return };
        member = next;
    }
}
