//! What an address names within a run: a task, or one of its instances.

use super::call::Call;
use super::failure::Failure;
use fencepost_api::problem::ProblemCode;
use fencepost_core::dag::{Task, topological_order};
use fencepost_core::plan::runs::Instances;
use fencepost_core::state::RunState;
use fencepost_engine::catalog::Version;
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::find_run;
use fencepost_engine::scheduler::fresh_instance;
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use std::sync::Arc;

/// A run and its version.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) run: Run,
    pub(super) version: Arc<Version>,
}

/// A task of the run, or one instance of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) task_index: u32,
    pub(super) task_id: String,
    pub(super) map_index: Option<i32>,
}

impl At {
    /// The run that the address names.
    pub(super) async fn of(call: &Call, tx: &Tx) -> Result<Self, Failure> {
        let run = find_run(tx, call.arg(0), call.arg(1)).await?;
        let version = call.cx().catalog.version(tx, run.version_pk).await?;
        Ok(Self { run, version })
    }

    /// `task_id`, or `task_id;map_index`.
    pub(super) fn named(&self, text: &str) -> Result<Named, Failure> {
        let (task_id, index) = match text.split_once(';') {
            Some((task_id, index)) => (task_id, Some(index)),
            None => (text, None),
        };
        let map_index = match index.map(str::parse::<i32>) {
            None => None,
            Some(Ok(index)) if index >= -1 => Some(index),
            Some(_) => return Err(self.no_task(text)),
        };
        let task_index = self.version.task_index(task_id).ok_or_else(|| self.no_task(task_id))?;
        Ok(Named { task_index, task_id: task_id.into(), map_index })
    }

    /// There is no such task, or no such instance of it.
    pub(super) fn no_task(&self, task_id: &str) -> Failure {
        Refusal::NoTask { run_id: self.run.run_id.clone(), task_id: task_id.into() }.into()
    }

    /// The task of that index.
    pub(super) fn task(&self, task_index: u32) -> Option<&Task> {
        self.version.dag.tasks.get(usize::try_from(task_index).unwrap_or(usize::MAX))
    }

    /// The instances of a task.
    pub(super) fn instances(&self, task_index: u32) -> Option<&Instances> {
        self.version.instances.get(usize::try_from(task_index).unwrap_or(usize::MAX))
    }

    /// Task indexes in topological order.
    pub(super) fn order(&self) -> Vec<u32> {
        let tasks = &self.version.dag.tasks;
        match topological_order(tasks) {
            Ok(order) => order.into_iter().map(|index| index.0).collect(),
            // A validated DAG has no circle; the order of the file is always there.
            Err(_) => (0..u32::try_from(tasks.len()).unwrap_or(0)).collect(),
        }
    }

    /// Whether its instances are still to be made.
    pub(super) fn is_unmade(&self) -> bool {
        !self.run.made && self.run.state == RunState::Queued
    }

    /// The key of exactly one instance; a mapped task needs its index.
    pub(super) fn key(&self, named: &Named) -> Result<TiKey, Failure> {
        let made = self.instances(named.task_index).ok_or_else(|| self.no_task(&named.task_id))?;
        let is_mapped = made.first >= 0;
        let map_index = match named.map_index {
            Some(index) => index,
            None if !is_mapped => made.first,
            None => {
                let (task, last) = (&named.task_id, made.count.saturating_sub(1));
                let text = format!("`{task}` is mapped: say which of its {} instances", made.count);
                return Err(Failure::new(ProblemCode::ValidationFailed, text)
                    .suggest(format!("{task};0 .. {task};{last}")));
            }
        };
        Ok(TiKey { run_pk: self.run.run_pk, task_index: named.task_index, map_index })
    }

    /// Exactly one instance.
    pub(super) async fn one(&self, tx: &Tx, named: &Named) -> Result<Ti, Failure> {
        let key = self.key(named)?;
        let found = if self.is_unmade() {
            self.unmade(key)
        } else {
            task_instance::get(tx, &[key]).await?.pop()
        };
        found.ok_or_else(|| match named.map_index {
            Some(index) => self.no_task(&format!("{};{index}", named.task_id)),
            None => self.no_task(&named.task_id),
        })
    }

    /// An instance of a queued run as it is going to be made.
    pub(super) fn unmade(&self, key: TiKey) -> Option<Ti> {
        let made = self.instances(key.task_index)?;
        let place = u32::try_from(i64::from(key.map_index) - i64::from(made.first)).ok()?;
        let fresh = || fresh_instance(&self.version, &self.run, made, key.map_index);
        (place < made.count).then(fresh).flatten()
    }
}
