//! The ledger of the simulated tasks and the fenced sink that they write to: what really ran, told
//! by nobody but the processes themselves.

use crate::time::Time;
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A task instance, by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    pub dag: String,
    pub run: String,
    pub task: String,
    pub map_index: i32,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.dag, self.run, self.task)?;
        if self.map_index >= 0 { write!(f, "[{}]", self.map_index) } else { Ok(()) }
    }
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub key: TaskKey,
    pub token: i64,
    pub host: String,
    pub begun_ns: u64,
    pub ended_ns: Option<u64>,
}

/// The ledger and the sink. Clones are the same.
#[derive(Debug, Clone)]
pub struct Ledger {
    time: Time,
    trace: Trace,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    executions: Vec<Execution>,
    tokens: BTreeSet<i64>,
    /// The token of the last visible write, by instance.
    sink: BTreeMap<TaskKey, i64>,
    /// Limits of pools, and the slots that a task takes.
    pools: BTreeMap<String, u32>,
    takes: BTreeMap<(String, String), (String, u32)>,
    /// Limits of the runs of a DAG, and of the instances of a task, of which processes run.
    runs: BTreeMap<String, usize>,
    instances: BTreeMap<(String, String), usize>,
}

impl Ledger {
    pub fn new(time: Time, trace: Trace) -> Self {
        Self { time, trace, state: Arc::default() }
    }

    /// A pool whose limit is watched: processes of its tasks never take more.
    pub fn watch_pool(&self, pool: &str, slots: u32) {
        self.state().pools.insert(pool.into(), slots);
    }

    /// A task of a watched pool.
    pub fn watch_task(&self, dag: &str, task: &str, pool: &str, slots: u32) {
        self.state().takes.insert((dag.into(), task.into()), (pool.into(), slots));
    }

    /// A DAG of which processes of so many runs may run at once.
    pub fn watch_runs(&self, dag: &str, most: usize) {
        self.state().runs.insert(dag.into(), most);
    }

    /// A task of which so many instances may run at once.
    pub fn watch_instances(&self, dag: &str, task: &str, most: usize) {
        self.state().instances.insert((dag.into(), task.into()), most);
    }

    /// A process begins.
    pub fn begin(&self, key: TaskKey, token: i64, host: &str) {
        let mut broken = Vec::new();
        let mut state = self.state();
        let own = |one: &&Execution| one.key == key;
        if !state.tokens.insert(token) {
            broken.push(format!("I5: attempt {token} of {key} was executed twice"));
        }
        if let Some(other) = state.executions.iter().filter(own).find(|e| e.ended_ns.is_none()) {
            let (of, at) = (other.token, &other.host);
            broken.push(format!("I5: {key} runs twice: {token} on {host} beside {of} on {at}"));
        }
        if let Some(later) = state.executions.iter().filter(own).find(|e| e.token > token) {
            broken.push(format!("I2: {key} begins under {token} after {}", later.token));
        }
        let begun_ns = self.time.nanos();
        let host = host.to_owned();
        state.executions.push(Execution {
            key: key.clone(),
            token,
            host,
            begun_ns,
            ended_ns: None,
        });
        broken.extend(state.over_pool(&key));
        broken.extend(state.over_limits(&key));
        drop(state);
        self.trace.note(|| format!("task {key} begins under {token}"));
        for what in broken {
            self.trace.violate(what);
        }
    }

    /// A process ends.
    pub fn end(&self, token: i64, how: &str) {
        let now = self.time.nanos();
        let mut state = self.state();
        let found = state.executions.iter_mut().rev().find(|e| e.token == token);
        if let Some(execution) = found.filter(|e| e.ended_ns.is_none()) {
            execution.ended_ns = Some(now);
            let key = execution.key.clone();
            drop(state);
            self.trace.note(|| format!("task {key} under {token} {how}"));
        }
    }

    /// Writes into the sink; false if a later attempt has written.
    pub fn write(&self, key: &TaskKey, token: i64) -> bool {
        let mut state = self.state();
        let newest = state.sink.get(key).copied();
        if newest.is_some_and(|newest| newest > token) {
            return false;
        }
        state.sink.insert(key.clone(), token);
        true
    }

    /// Whether the write of an attempt is what is seen.
    pub fn shows(&self, key: &TaskKey) -> Option<i64> {
        self.state().sink.get(key).copied()
    }

    /// All executions in the order of their beginnings.
    pub fn executions(&self) -> Vec<Execution> {
        self.state().executions.clone()
    }

    /// Executions that have not ended.
    pub fn running(&self) -> Vec<Execution> {
        let state = self.state();
        state.executions.iter().filter(|e| e.ended_ns.is_none()).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn over_pool(&self, key: &TaskKey) -> Option<String> {
        let (pool, _) = self.takes.get(&(key.dag.clone(), key.task.clone()))?;
        let slots = *self.pools.get(pool)?;
        let taken: u32 = self
            .executions
            .iter()
            .filter(|e| e.ended_ns.is_none())
            .filter_map(|e| self.takes.get(&(e.key.dag.clone(), e.key.task.clone())))
            .filter(|(of, _)| of == pool)
            .map(|(_, takes)| takes)
            .sum();
        (taken > slots).then(|| format!("I14: processes take {taken} slots of {slots} of {pool}"))
    }

    fn over_limits(&self, key: &TaskKey) -> Option<String> {
        let running = || self.executions.iter().filter(|e| e.ended_ns.is_none());
        let of_dag = || running().filter(|e| e.key.dag == key.dag);
        let runs: BTreeSet<&String> = of_dag().map(|e| &e.key.run).collect();
        let of_task = of_dag().filter(|e| e.key.task == key.task).count();
        let task = (key.dag.clone(), key.task.clone());
        let over = |most: Option<&usize>, found: usize, what: &str| {
            let most = most.filter(|most| found > **most)?;
            Some(format!("I14: processes of {found} {what} of {most} run, with {key}"))
        };
        over(self.runs.get(&key.dag), runs.len(), "runs")
            .or_else(|| over(self.instances.get(&task), of_task, "instances"))
    }
}
