//! The role `server`: both APIs on one address, for people, workers and tasks.

use super::serve::{self, Address, Parts, Serving};
use super::shared::{self, Joined};
use super::{Options, StoreLogs};
use crate::error::Outcome;
use fencepost_core::state::JobKind;
use fencepost_engine::drive::SharedHealth;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::Serves;
use std::sync::Arc;
use tokio::sync::watch;

/// A server that serves.
pub(crate) struct Server {
    pub(crate) address: Address,
    joined: Joined,
    stop: watch::Sender<bool>,
    serving: Serving,
}

impl Server {
    /// Starts it; returns once it serves.
    pub(crate) async fn start(options: &Options) -> Outcome<Self> {
        // Before anything is written: settings that cannot be kept change nothing.
        let listener = serve::bind(&options.settings).await?;
        let joined = shared::join(&options.settings, JobKind::Server, &options.crash).await?;
        let (stop, stopped) = watch::channel(false);
        let cx = &joined.cx;
        let parts = Parts {
            health: SharedHealth::default(),
            trouble: Arc::new(|| None),
            logs: Arc::new(StoreLogs::new(cx.store.clone())),
            execution: Execution::new(cx.clone()).until(stopped.clone()),
            serves: Serves::Workers,
            stopped,
        };
        let (address, serving) = serve::listen(cx, options, listener, parts);
        Ok(Self { address, joined, stop, serving })
    }

    /// Takes no calls any more, answers long polls at once, and ends when those in flight are
    /// answered.
    pub(crate) async fn stop(self) {
        // Nobody listening is fine.
        let _ = self.stop.send(true);
        self.serving.end().await;
        shared::leave(&self.joined).await;
    }

    /// Ready once it has ended by itself.
    pub(crate) async fn broken(&self) {
        self.serving.broken().await;
    }
}
