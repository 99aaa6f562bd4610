//! Who is told of what: a task's own callbacks, and those of its DAG.

use super::{Dag, Task, TaskIndex};
use crate::callback::{Occasion, Occasions};
use crate::state::RunType;
use crate::time::Timestamp;
use serde_json::Value;

impl Dag {
    /// The occasions on which somebody is called about a run.
    pub fn calls(&self) -> Occasions {
        let own = self.callbacks.occasions().filter(|occasion| occasion.is_of_runs());
        own.chain(self.deadline.as_ref().map(|_| Occasion::Deadline)).collect()
    }

    /// When somebody is told that a run has not finished.
    pub fn alert_at(
        &self,
        run_type: RunType,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.deadline.as_ref()?.instant(&self.timing.timezone, run_type, run_after, now)
    }

    /// The occasions on which somebody is called about an instance of a task.
    pub fn calls_of(&self, task: &Task) -> Occasions {
        let shared = self.callbacks.occasions().filter(|occasion| !occasion.is_of_runs());
        task.callbacks.occasions().chain(shared).collect()
    }

    /// What is called about a run, or about an instance of a task: its own callbacks, then the DAG's.
    pub fn called(&self, task: Option<TaskIndex>, occasion: Occasion) -> Vec<&Value> {
        if occasion == Occasion::Deadline {
            return self.deadline.iter().flat_map(|deadline| &deadline.callbacks).collect();
        }
        let Some(task) = task else { return self.callbacks.of(occasion).iter().collect() };
        let own = self.task(task).map_or(&[][..], |task| task.callbacks.of(occasion));
        let shared = if occasion.is_of_runs() { &[][..] } else { self.callbacks.of(occasion) };
        own.iter().chain(shared).collect()
    }
}
