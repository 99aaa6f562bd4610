//! The role `scheduler`: the passes, and the DAG folder.

use super::shared::{self, Joined};
use super::{DagFolder, Options, effects, spawn_passes};
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::drive::{Ended, SharedHealth};
use std::path::PathBuf;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A scheduler that schedules.
pub(crate) struct Scheduler {
    joined: Joined,
    stop: watch::Sender<bool>,
    passes: JoinHandle<Ended>,
}

impl Scheduler {
    /// Starts it.
    pub(crate) async fn start(options: &Options) -> Outcome<Self> {
        let settings = &options.settings;
        let joined = shared::join(settings, JobKind::Scheduler, &options.crash).await?;
        let (stop, stopped) = watch::channel(false);
        let health = SharedHealth::default();
        let passes = spawn_passes(&joined.cx, effects::none(), &health, stopped);
        let dags = PathBuf::from(settings.text("dags.path").unwrap_or("dags"));
        let interval = settings.span("scheduler.parse_interval").unwrap_or(Span::from_secs(5));
        DagFolder::new(dags)
            .watch(joined.cx.clone(), interval.to_std())
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        Ok(Self { joined, stop, passes })
    }

    /// Ends after the turn that is under way.
    pub(crate) async fn stop(self) {
        // Nobody listening is fine.
        let _ = self.stop.send(true);
        self.joined.cx.wakes.engine();
        let _ = self.passes.await;
        shared::leave(&self.joined).await;
    }

    /// Ready once it has ended by itself.
    pub(crate) async fn broken(&self) {
        super::ended(&self.passes).await;
    }
}
