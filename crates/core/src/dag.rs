//! A workflow definition after validation: what the DAG file said, with every default filled in.
//!
//! `Dag::new` is the only way to make one: names are unique, edges point at tasks of the DAG, and
//! the graph has no cycle. Tasks are kept in the order of the file; an edge is a pair of indexes.
//! Templates (Jinja) are kept as text: they are rendered when an attempt is claimed.

mod action;
mod called;
mod companion;
mod graph;
mod group;
mod output;
mod resources;

pub use action::{Action, TriggerDag};
pub use companion::{CALLBACK_PARAM, CALLBACK_VARIABLES, callback_param, companion_id};
pub use graph::{
    DagError, INSTANCES_MAX, TASKS_MAX, ancestors, descendants, downstream_edges, priority_weights,
    topological_order,
};
pub use group::TaskGroup;
pub use output::OutputType;
pub use resources::Resources;

use crate::callback::{Callbacks, Deadline};
use crate::id::{DagId, IdError, PoolName, QueueName, TaskId};
use crate::kept::{self, SecretSource};
use crate::retry::{RetryPolicy, RetryRule};
use crate::schedule::{SlotPolicy, Timing};
use crate::time::Span;
use crate::trigger_rule::TriggerRule;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The place of a task in its DAG, from 0 in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// The index of the task at that place.
    pub fn new(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Its place in `Dag::tasks`.
    pub fn at(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A validated workflow definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Dag {
    pub dag_id: DagId,
    pub description: String,
    pub doc_md: String,
    pub owner: String,
    pub tags: Vec<String>,
    /// When it runs by itself; `timing.schedule` is `Schedule::Manual` for `schedule: null`.
    pub timing: Timing,
    /// What becomes of a slot that cannot start when it is due.
    pub slots: SlotPolicy,
    pub is_paused_upon_creation: bool,
    pub limits: DagLimits,
    /// The whole run, from its start.
    pub dagrun_timeout: Option<Span>,
    /// The first failed task stops the rest of the run.
    pub fail_fast: bool,
    /// Tasks get Airflow's variables too (`compat: airflow`).
    pub is_airflow_compatible: bool,
    pub params: Vec<Param>,
    /// Variables of every task's environment, as templates, in the order of the file.
    pub env: Vec<(String, String)>,
    /// What every task is given.
    pub access: Access,
    /// Keep ended runs this long (`retention`); `None`: the installation's setting.
    pub retention: Option<Span>,
    /// Those of its runs, and those of all its tasks.
    pub callbacks: Callbacks,
    pub deadline: Option<Deadline>,
    pub tasks: Vec<Task>,
    /// The groups that tasks stand in, each after the one that it stands in.
    pub groups: Vec<TaskGroup>,
}

impl Dag {
    /// The defaults of a DAG file with these tasks, checked.
    pub fn with_defaults(dag_id: DagId, tasks: Vec<Task>) -> Result<Self, DagError> {
        Self::new(Self {
            dag_id,
            description: String::new(),
            doc_md: String::new(),
            owner: String::new(),
            tags: Vec::new(),
            timing: Timing::manual(),
            slots: SlotPolicy::default(),
            is_paused_upon_creation: false,
            limits: DagLimits { max_active_runs: 16, max_active_tasks: 16 },
            dagrun_timeout: None,
            fail_fast: false,
            is_airflow_compatible: false,
            params: Vec::new(),
            env: Vec::new(),
            access: Access::default(),
            retention: None,
            callbacks: Callbacks::default(),
            deadline: None,
            tasks,
            groups: Vec::new(),
        })
    }

    /// Checks a draft: names are unique, edges point at other tasks and make no circle, sizes are
    /// within the limits. Sorts each task's upstreams and removes repeats.
    pub fn new(mut draft: Self) -> Result<Self, DagError> {
        for task in &mut draft.tasks {
            task.depends_on.sort_unstable();
            task.depends_on.dedup();
        }
        graph::check(&draft.tasks)?;
        group::check(&draft.groups, draft.tasks.len())?;
        Ok(draft)
    }

    /// The task at that place.
    pub fn task(&self, index: TaskIndex) -> Option<&Task> {
        self.tasks.get(index.at())
    }

    /// The setups that a teardown depends on; it is skipped if none of them succeeded.
    pub fn setups_of(&self, index: TaskIndex) -> Vec<u32> {
        let is_setup = |up: &&TaskIndex| self.task(**up).is_some_and(|up| up.part == Part::Setup);
        match self.task(index).filter(|task| task.part == Part::Teardown) {
            Some(task) => task.depends_on.iter().filter(is_setup).map(|up| up.0).collect(),
            None => Vec::new(),
        }
    }

    /// The tasks whose ends decide how a run ends: the last ones, teardowns aside.
    pub fn deciding(&self, downstreams: &[Vec<TaskIndex>]) -> Vec<u32> {
        let is_teardown =
            |index: &TaskIndex| self.task(*index).is_some_and(|task| task.part == Part::Teardown);
        let all = (0_u32..).zip(downstreams).map(|(index, below)| (TaskIndex(index), below));
        let last = all
            .clone()
            .filter(|(index, below)| !is_teardown(index) && below.iter().all(is_teardown));
        let last: Vec<u32> = last.map(|(index, _)| index.0).collect();
        if !last.is_empty() {
            return last;
        }
        all.filter(|(_, below)| below.is_empty()).map(|(index, _)| index.0).collect()
    }

    /// Tasks with the setups before them and the teardowns after them, which are cleared together.
    pub fn with_setups_and_teardowns(&self, tasks: &[TaskIndex]) -> Vec<TaskIndex> {
        let part = |index: &TaskIndex| self.task(*index).map(|task| task.part);
        let before = ancestors(&self.tasks, tasks).into_iter();
        let after = descendants(&self.tasks, tasks).into_iter();
        let before = before.filter(|index| part(index) == Some(Part::Setup));
        let after = after.filter(|index| part(index) == Some(Part::Teardown));
        tasks.iter().copied().chain(before).chain(after).collect()
    }

    /// What is kept for the task of that place: what it is given, and what its templates speak of.
    pub fn kept_for(&self, index: TaskIndex) -> Vec<kept::Name> {
        let Some(task) = self.task(index) else { return Vec::new() };
        let access = self.access.under(&task.access);
        let secrets = access.secrets.into_iter().filter_map(|(_, source)| match source {
            SecretSource::Store(name) => Some((kept::Kind::Secret, name)),
            SecretSource::Env(_) | SecretSource::File(_) | SecretSource::Exec(_) => None,
        });
        let connections = access.connections.into_iter();
        let connections = connections.map(|name| (kept::Kind::Connection, name));
        let shared = self.env.iter().map(|(_, value)| Cow::from(value));
        let texts = shared.chain(task.texts());
        let spoken_of = texts.flat_map(|text| kept::mentioned(&text));
        let all: BTreeSet<kept::Name> = secrets.chain(connections).chain(spoken_of).collect();
        all.into_iter().collect()
    }

    /// The place of the task of that name.
    pub fn index_of(&self, task_id: &str) -> Option<TaskIndex> {
        self.tasks.iter().position(|task| task.task_id.as_str() == task_id).map(TaskIndex::new)
    }
}

/// What tasks are given of what the installation keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Variables of the environment and where their values come from, in the order of the file.
    pub secrets: Vec<(String, SecretSource)>,
    /// Connections by their names.
    pub connections: Vec<String>,
}

impl Access {
    /// This laid under `over`: a secret of both is that of `over`.
    pub fn under(&self, over: &Self) -> Self {
        let mut all = self.clone();
        for (name, source) in &over.secrets {
            all.secrets.retain(|(known, _)| known != name);
            all.secrets.push((name.clone(), source.clone()));
        }
        let new = over.connections.iter().filter(|name| !self.connections.contains(name));
        all.connections.extend(new.cloned());
        all
    }
}

/// How much of a DAG may be active at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DagLimits {
    pub max_active_runs: u32,
    /// Task instances of this DAG over all its runs.
    pub max_active_tasks: u32,
}

/// A parameter of a run: its default and what a value must look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    pub default: Value,
    pub description: String,
    /// JSON Schema of the value as written in the file (`type`, `enum`, `items`, `minimum`, ...).
    /// For the short form `{"type": <type of the default>}`; empty for a null default.
    pub schema: Value,
}

/// A node of the DAG.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub task_id: TaskId,
    pub action: Action,
    /// Upstream tasks, ascending, without repeats.
    pub depends_on: Vec<TaskIndex>,
    pub trigger_rule: TriggerRule,
    /// A Jinja expression; false: the task is skipped.
    pub when: Option<String>,
    /// What it is mapped over, in the order of the file; several keys: their cross product.
    pub expand: Vec<(String, Elements)>,
    pub map_index_template: Option<String>,
    pub depends_on_past: bool,
    pub part: Part,
    /// Implies `depends_on_past`: the tasks right after it in the run before must have ended well too.
    pub wait_for_downstream: bool,
    pub limits: TaskLimits,
    pub retry: RetryPolicy,
    /// First match wins, before `retry`.
    pub retry_rules: Vec<RetryRule>,
    pub infra_retries: u32,
    pub on_lost: OnLost,
    pub replace: Replace,
    pub on_disconnect: OnDisconnect,
    pub times: TaskTimes,
    pub containment: Containment,
    pub resources: Resources,
    /// Exit codes that count as success after our own stop signal.
    pub graceful_exit_codes: Vec<u8>,
    /// Exit codes that end the task as skipped (default 99).
    pub skip_exit_codes: Vec<u8>,
    /// Templates, in the order of the file; they go over those of the DAG.
    pub env: Vec<(String, String)>,
    /// It goes over what the DAG gives every task.
    pub access: Access,
    /// Assets that it reads; shown, and nothing more.
    pub inlets: Vec<String>,
    /// Assets of which its success is an event each.
    pub outlets: Vec<String>,
    /// Declared outputs and their types; empty: any.
    pub outputs: Vec<(String, OutputType)>,
    /// A template; `None`: the attempt's own work directory.
    pub working_dir: Option<String>,
    /// The interpreter of `run`; default `bash -euo pipefail`.
    pub shell: Vec<String>,
    pub run_as_user: Option<String>,
    pub callbacks: Callbacks,
}

impl Task {
    /// A task with the defaults of a DAG file.
    pub fn with_defaults(task_id: TaskId, action: Action) -> Result<Self, IdError> {
        Ok(Self {
            task_id,
            action,
            depends_on: Vec::new(),
            trigger_rule: TriggerRule::AllSuccess,
            when: None,
            expand: Vec::new(),
            map_index_template: None,
            depends_on_past: false,
            part: Part::Work,
            wait_for_downstream: false,
            limits: TaskLimits::with_defaults()?,
            retry: RetryPolicy {
                retries: 0,
                retry_delay: Span::from_mins(5),
                exponential_backoff: false,
                max_retry_delay: None,
            },
            retry_rules: Vec::new(),
            infra_retries: 5,
            on_lost: OnLost::Retry,
            replace: Replace::AfterLeaseExpiry,
            on_disconnect: OnDisconnect::Stop,
            times: TaskTimes {
                execution_timeout: None,
                queued_timeout: Span::from_mins(20),
                stall_timeout: None,
                kill_grace: None,
            },
            containment: Containment::Auto,
            resources: Resources::default(),
            graceful_exit_codes: Vec::new(),
            skip_exit_codes: vec![99],
            env: Vec::new(),
            access: Access::default(),
            inlets: Vec::new(),
            outlets: Vec::new(),
            outputs: Vec::new(),
            working_dir: None,
            shell: ["bash", "-euo", "pipefail"].map(String::from).to_vec(),
            run_as_user: None,
            callbacks: Callbacks::default(),
        })
    }

    /// How many instances of it one run begins with: one, or the size of the cross product of
    /// `expand`. What a template gives is known when its turn comes.
    pub fn instance_count(&self) -> u64 {
        let length = |elements: &Elements| match elements {
            Elements::List(values) => values.len() as u64,
            Elements::Template(_) => 1,
        };
        if self.is_dynamic() { 1 } else { product(self.expand.iter().map(|(_, e)| length(e))) }
    }

    /// Every text of it that may be a template, but those of its DAG.
    pub fn texts(&self) -> Vec<Cow<'_, str>> {
        let mut texts: Vec<Cow<'_, str>> = match &self.action {
            Action::Run(script) => vec![script.into()],
            Action::Command(words) => words.iter().map(Into::into).collect(),
            Action::TriggerDag(of) => {
                let values = of.params.iter().map(|(_, value)| value.to_string().into());
                let named = [Some(&of.dag_id), of.run_id.as_ref(), of.logical_date.as_ref()];
                values.chain(named.into_iter().flatten().map(Into::into)).collect()
            }
            Action::Http(written) | Action::Wait(written) => vec![written.to_string().into()],
            Action::Python(_) | Action::Noop => Vec::new(),
        };
        let lists = self.expand.iter().filter_map(|(_, elements)| match elements {
            Elements::List(_) => None,
            Elements::Template(text) => Some(text),
        });
        let others = [&self.when, &self.map_index_template, &self.working_dir];
        let others = others.into_iter().flatten();
        let env = self.env.iter().map(|(_, value)| value);
        texts.extend(lists.chain(others).chain(env).map(Into::into));
        texts
    }

    /// Whether it has an `expand`.
    pub const fn is_mapped(&self) -> bool {
        !self.expand.is_empty()
    }

    /// Whether its `expand` is known only when its turn comes.
    pub fn is_dynamic(&self) -> bool {
        self.expand.iter().any(|(_, elements)| matches!(elements, Elements::Template(_)))
    }
}

fn product(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(1, u64::saturating_mul)
}

/// The part that a task plays in its DAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Work,
    /// It prepares for what comes after it: what is cleared below it clears it too.
    Setup,
    /// It cleans up, however the tasks before it ended, if a setup that it depends on succeeded. It does
    /// not decide how its run ends.
    Teardown,
}

/// The elements of one key of `expand`.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    List(Vec<Value>),
    /// A Jinja expression in `{{ }}` that gives a list.
    Template(String),
}

/// Where a task may run, and how many of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimits {
    pub queue: QueueName,
    pub pool: PoolName,
    pub pool_slots: u32,
    pub priority_weight: i32,
    pub weight_rule: WeightRule,
    pub max_active_tis_per_dag: Option<u32>,
    pub max_active_tis_per_dagrun: Option<u32>,
}

impl TaskLimits {
    fn with_defaults() -> Result<Self, IdError> {
        Ok(Self {
            queue: QueueName::new("default")?,
            pool: PoolName::new("default_pool")?,
            pool_slots: 1,
            priority_weight: 1,
            weight_rule: WeightRule::Downstream,
            max_active_tis_per_dag: None,
            max_active_tis_per_dagrun: None,
        })
    }
}

/// How a task's effective priority follows from the weights around it, as in Airflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightRule {
    /// Its own weight and those of all its descendants.
    Downstream,
    /// Its own weight and those of all its ancestors.
    Upstream,
    /// Its own weight.
    Absolute,
}

/// What happens when an attempt that had started is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLost {
    /// Another attempt, charged to `infra_retries`.
    Retry,
    /// A person decides.
    Hold,
    Fail,
}

/// When a lost attempt may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Its processes are gone by then, where the kernel keeps running.
    AfterLeaseExpiry,
    /// Only on evidence that they are gone, or a person's word.
    AfterConfirmedDead,
}

/// What becomes of a task whose worker is cut off, or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It ends before the lease of its worker does.
    Stop,
    /// It runs to its end without a lease. What was lost with it stays open until its end is known.
    Keep,
}

/// The clocks that run over one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// One attempt, from start to exit.
    pub execution_timeout: Option<Span>,
    /// From queued to claimed.
    pub queued_timeout: Span,
    /// No output, CPU or checkpoint for that long.
    pub stall_timeout: Option<Span>,
    /// From SIGTERM to SIGKILL; `None`: the worker's.
    pub kill_grace: Option<Span>,
}

/// How the process tree of an attempt is contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// The strongest that the machine allows.
    Auto,
    Pidns,
    Cgroup,
    Group,
}
