//! DAG versions in memory: decoded once, shared, forgotten when unused.

use crate::env::Env;
use crate::error::EngineError;
use fencepost_core::dag::{
    Action, Dag, Task, TaskIndex, ancestors, descendants, downstream_edges, priority_weights,
};
use fencepost_core::id::{DagId, TaskId};
use fencepost_core::kept;
use fencepost_core::plan::runs::{Instances, instances};
use fencepost_store::Tx;
use fencepost_store::query::dag;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Versions kept decoded; a version of 10,000 tasks takes some 20 MB.
const KEPT: usize = 32;

/// A DAG version with what follows from it.
#[derive(Debug)]
pub struct Version {
    pub version_pk: i64,
    pub version: i64,
    pub dag: Dag,
    /// Edges turned round, by task.
    pub downstreams: Vec<Vec<TaskIndex>>,
    /// The tasks that decide how a run ends.
    pub leaves: Vec<u32>,
    /// Effective priorities, by task.
    pub priorities: Vec<i32>,
    /// The instances of a run.
    pub instances: Vec<Instances>,
    /// What is kept for a task, by task.
    pub kept: Vec<Vec<kept::Name>>,
}

impl Version {
    fn new(version_pk: i64, version: i64, dag: Dag) -> Self {
        let downstreams = downstream_edges(&dag.tasks);
        let leaves = dag.deciding(&downstreams);
        let priorities = priority_weights(&dag.tasks);
        let instances = instances(&dag);
        let all = (0..dag.tasks.len()).map(TaskIndex::new);
        let kept = all.map(|index| dag.kept_for(index)).collect();
        Self { version_pk, version, dag, downstreams, leaves, priorities, instances, kept }
    }

    /// What stands in where a version cannot be read and its runs are shown all the same: it has no tasks.
    pub fn unreadable(version_pk: i64, dag_id: &str) -> Option<Self> {
        let nothing = Task::with_defaults(TaskId::new("unknown").ok()?, Action::Noop).ok()?;
        let mut dag = Dag::with_defaults(DagId::new(dag_id).ok()?, vec![nothing]).ok()?;
        dag.tasks.clear();
        Some(Self::new(version_pk, 0, dag))
    }

    /// The index of a task.
    pub fn task_index(&self, task_id: &str) -> Option<u32> {
        let at = self.dag.tasks.iter().position(|task| task.task_id.as_str() == task_id)?;
        u32::try_from(at).ok()
    }

    /// Tasks whose outputs a task may use.
    pub fn inputs_of(&self, task_index: u32) -> Vec<u32> {
        let Some(task) = self.dag.tasks.get(task_index as usize) else { return Vec::new() };
        let direct = task.depends_on.iter().map(|up| up.0);
        if mentions_outputs(task) {
            let all = ancestors(&self.dag.tasks, &[TaskIndex(task_index)]);
            all.into_iter().map(|index| index.0).collect()
        } else {
            direct.collect()
        }
    }

    /// Some tasks and everything below them.
    pub fn with_descendants(&self, tasks: &[u32]) -> BTreeSet<u32> {
        let from: Vec<TaskIndex> = tasks.iter().map(|index| TaskIndex(*index)).collect();
        let below = descendants(&self.dag.tasks, &from).into_iter().map(|index| index.0);
        tasks.iter().copied().chain(below).collect()
    }
}

fn mentions_outputs(task: &Task) -> bool {
    // A function may ask for any of them.
    let asks = matches!(task.action, Action::Python(_));
    asks || task.texts().iter().any(|text| text.contains("outputs") || text.contains("xcom"))
}

/// The cache.
#[derive(Debug)]
pub struct Catalog {
    env: Env,
    kept: Mutex<BTreeMap<i64, Arc<Version>>>,
}

impl Catalog {
    /// An empty cache.
    pub fn new(env: Env) -> Self {
        Self { env, kept: Mutex::new(BTreeMap::new()) }
    }

    /// The version of that key. One that cannot be decoded stops only its own runs.
    pub async fn version(&self, tx: &Tx, version_pk: i64) -> Result<Arc<Version>, EngineError> {
        if let Some(found) = self.kept().get(&version_pk) {
            return Ok(Arc::clone(found));
        }
        let content = dag::content(tx, version_pk).await?;
        let content = content.ok_or(EngineError::NoVersion(version_pk))?;
        let decoded = (self.env.decode)(&content.ir);
        let dag = decoded.map_err(|why| EngineError::BadVersion { version_pk, why })?;
        let version = Arc::new(Version::new(version_pk, content.version, dag));
        let mut kept = self.kept();
        while kept.len() >= KEPT {
            // The oldest version goes first; one in use stays alive through its `Arc`.
            kept.pop_first();
        }
        kept.insert(version_pk, Arc::clone(&version));
        Ok(version)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<i64, Arc<Version>>> {
        // A panic of another holder leaves the map whole: it is only read and inserted into.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
