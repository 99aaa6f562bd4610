//! What people want meanwhile.

use crate::random::Random;
use crate::sim::Sim;
use fencepost_core::state::TiState;
use fencepost_engine::Cx;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::clear::{ClearRequest, clear};
use fencepost_engine::operations::mark::{MarkRequest, mark};
use fencepost_engine::operations::run_control::cancel;
use fencepost_engine::operations::trigger::{TriggerRequest, trigger};

/// People at the CLI; their store is always in reach.
pub(super) struct People {
    cx: Cx,
    sim: Sim,
    random: Random,
    runs: Vec<(&'static str, String)>,
}

impl People {
    pub(super) fn new(sim: &Sim) -> Self {
        let (cx, random) = (sim.quiet_cx("person"), sim.random.fork("people"));
        Self { cx, sim: sim.clone(), random, runs: Vec::new() }
    }

    /// One thing that somebody asks for. Refusals are answers like any other.
    pub(super) async fn want(&mut self) {
        let done = match self.random.below(8) {
            _ if self.runs.is_empty() => self.trigger().await,
            0..=3 => self.trigger().await,
            4 => self.cancel().await,
            5 | 6 => self.clear().await,
            _ => self.mark().await,
        };
        match done {
            Ok(()) | Err(EngineError::Refused(_) | EngineError::Store(_)) => {}
            Err(other) => self.sim.trace.violate(format!("a person is told: {other}")),
        }
    }

    async fn trigger(&mut self) -> Result<(), EngineError> {
        let dag = ["d", "e", "h"][self.random.below(3)];
        let run = format!("r{}", self.runs.len());
        self.runs.push((dag, run.clone()));
        let request = TriggerRequest {
            dag_id: dag.into(),
            run_id: Some(run),
            by: "me".into(),
            ..TriggerRequest::default()
        };
        trigger(&self.cx, request).await.map(drop)
    }

    fn a_run(&self) -> (&'static str, String) {
        self.runs[self.random.below(self.runs.len())].clone()
    }

    fn a_task(&self, dag: &str) -> String {
        let tasks = match dag {
            "d" => ["a", "m", "s", "z"],
            "e" => ["t", "u", "k", "t"],
            _ => ["t", "u", "t", "u"],
        };
        tasks[self.random.below(4)].into()
    }

    async fn cancel(&self) -> Result<(), EngineError> {
        let (dag, run) = self.a_run();
        cancel(&self.cx, dag, &run, self.random.chance(500), "me").await.map(drop)
    }

    async fn clear(&self) -> Result<(), EngineError> {
        let (dag, run) = self.a_run();
        let request = ClearRequest {
            dag_id: dag.into(),
            run_id: run,
            tasks: vec![self.a_task(dag)],
            downstream: self.random.chance(500),
            by: "me".into(),
            ..ClearRequest::default()
        };
        clear(&self.cx, &request).await.map(drop)
    }

    async fn mark(&self) -> Result<(), EngineError> {
        let (dag, run) = self.a_run();
        let states = [TiState::Success, TiState::Failed, TiState::Skipped];
        let request = MarkRequest {
            dag_id: dag.into(),
            run_id: run,
            task_id: self.a_task(dag),
            map_index: None,
            state: states[self.random.below(3)],
            dry_run: false,
            only_held: false,
            by: "me".into(),
        };
        mark(&self.cx, &request).await.map(drop)
    }
}
