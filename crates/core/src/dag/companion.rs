//! The DAG that carries out a DAG's `run` callbacks.
//!
//! A command that is to run after something happened is work like any other: it needs a live worker, a lease, a
//! token, a log and tries. So a DAG with such callbacks has a companion of one task, and each callback is a
//! run of it, on whatever worker lives, whoever of the first DAG's workers is dead.

use super::{Action, Dag, DagLimits, Param, Task};
use crate::callback::{Callbacks, kind_of};
use crate::id::{DagId, IdError, TaskId};
use crate::retry::RetryPolicy;
use crate::time::Span;
use serde_json::{Value, json};

/// The param of a companion's run: what to do, and what happened.
pub const CALLBACK_PARAM: &str = "fencepost_callback";
/// Behind the name of a DAG: that of its companion.
const SUFFIX: &str = ".callbacks";
const SCRIPT: &str = "{{ params.fencepost_callback.script }}";
/// Variables of the command, and what of the event each tells; empty where the event has no such thing.
pub const CALLBACK_VARIABLES: [(&str, &str); 11] = [
    ("CALLBACK_OCCASION", "occasion"),
    ("CALLBACK_AT", "at"),
    ("CALLBACK_REASON", "reason"),
    ("CALLBACK_DAG_ID", "dag_id"),
    ("CALLBACK_RUN_ID", "run_id"),
    ("CALLBACK_RUN_URL", "run_url"),
    ("CALLBACK_TASK_ID", "task_id"),
    ("CALLBACK_MAP_INDEX", "map_index"),
    ("CALLBACK_TRY_NUMBER", "try_number"),
    ("CALLBACK_ATTEMPT_ID", "attempt_id"),
    ("CALLBACK_TOKEN", "token"),
];

/// The name of the companion of a DAG of that name.
pub fn companion_id(dag_id: &str) -> Result<DagId, IdError> {
    DagId::new(format!("{dag_id}{SUFFIX}"))
}

/// The value of [`CALLBACK_PARAM`] for a callback: `told` is what happened, an object.
pub fn callback_param(id: &str, script: &str, told: &Value) -> Value {
    let mut out = told.as_object().cloned().unwrap_or_default();
    out.retain(|_, value| !value.is_null());
    out.insert("id".into(), json!(id));
    out.insert("script".into(), json!(script));
    Value::Object(out)
}

impl Dag {
    /// Whether a callback of it is a command.
    pub fn has_run_callbacks(&self) -> bool {
        let of_tasks = self.tasks.iter().flat_map(|task| all(&task.callbacks));
        let at_deadline = self.deadline.iter().flat_map(|deadline| &deadline.callbacks);
        all(&self.callbacks)
            .chain(of_tasks)
            .chain(at_deadline)
            .any(|callback| kind_of(callback) == Some("run"))
    }

    /// The companion, if it has a callback that is a command and its name leaves room for another's.
    pub fn companion(&self) -> Option<Self> {
        if !self.has_run_callbacks() {
            return None;
        }
        let of = self.dag_id.as_str();
        let draft = Self {
            description: format!("Carries out the `run` callbacks of {of}."),
            owner: self.owner.clone(),
            tags: self.tags.clone(),
            limits: DagLimits { max_active_runs: 64, max_active_tasks: 16 },
            params: self.params.iter().cloned().chain([param()]).collect(),
            env: self.env.clone(),
            access: self.access.clone(),
            retention: self.retention,
            is_airflow_compatible: self.is_airflow_compatible,
            ..Self::with_defaults(companion_id(of).ok()?, vec![self.callback_task().ok()?]).ok()?
        };
        Self::new(draft).ok()
    }

    /// It runs where all tasks of the DAG run, as whom they all run; where these differ, as by default.
    fn callback_task(&self) -> Result<Task, IdError> {
        let mut task = Task::with_defaults(TaskId::new("run")?, Action::Run(SCRIPT.into()))?;
        let mut queues = self.tasks.iter().map(|task| &task.limits.queue);
        if let Some(first) = queues.next().filter(|first| queues.all(|other| other == *first)) {
            task.limits.queue = first.clone();
        }
        let mut users = self.tasks.iter().map(|task| &task.run_as_user);
        if let Some(first) = users.next().filter(|first| users.all(|other| other == *first)) {
            task.run_as_user.clone_from(first);
        }
        task.retry = RetryPolicy {
            retries: 3,
            retry_delay: Span::from_secs(30),
            exponential_backoff: true,
            max_retry_delay: Some(Span::from_mins(10)),
        };
        task.times.execution_timeout = Some(Span::from_hours(1));
        let variable = |(name, told): &(&str, &str)| {
            let value = format!("{{{{ params.{CALLBACK_PARAM}.{told} | default('') }}}}");
            ((*name).to_owned(), value)
        };
        task.env = CALLBACK_VARIABLES.iter().map(variable).collect();
        Ok(task)
    }
}

fn all(callbacks: &Callbacks) -> impl Iterator<Item = &Value> {
    callbacks.0.values().flatten()
}

fn param() -> Param {
    Param {
        name: CALLBACK_PARAM.into(),
        default: json!({ "script": "echo 'no callback: a run of this DAG is made by one'" }),
        description: "What to run, and what happened.".into(),
        schema: json!({ "type": "object" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::{Deadline, Occasion, When};
    use crate::id::QueueName;

    fn dag(queues: &[&str]) -> Dag {
        let task = |(index, queue): (usize, &&str)| {
            let mut task =
                Task::with_defaults(TaskId::new(format!("t{index}")).unwrap(), Action::Noop)
                    .unwrap();
            task.limits.queue = QueueName::new(*queue).unwrap();
            task
        };
        let tasks = queues.iter().enumerate().map(task).collect();
        Dag::with_defaults(DagId::new("sales").unwrap(), tasks).unwrap()
    }

    fn run_callbacks() -> Callbacks {
        Callbacks([(Occasion::Lost, vec![json!({ "run": "echo lost" })])].into())
    }

    #[test]
    fn a_dag_has_a_companion_if_any_callback_of_it_is_a_command() {
        let plain = dag(&["default"]);
        assert_eq!(plain.companion(), None);
        let mut by_dag = plain.clone();
        by_dag.callbacks = run_callbacks();
        let mut by_task = plain.clone();
        by_task.tasks[0].callbacks = run_callbacks();
        let mut by_deadline = plain;
        by_deadline.deadline = Some(Deadline {
            when: When::After(Span::from_secs(1)),
            callbacks: vec![json!({ "run": "echo late" })],
        });
        for dag in [by_dag, by_task, by_deadline] {
            let companion = dag.companion().unwrap();
            assert_eq!(companion.dag_id.as_str(), "sales.callbacks");
            assert_eq!(companion.companion(), None, "it calls nobody itself");
        }
    }

    #[test]
    fn a_command_runs_in_the_queue_that_all_tasks_name_else_in_the_default_one() {
        for (queues, expected) in [
            (&["gpu", "gpu"][..], "gpu"),
            (&["gpu", "default"], "default"),
            (&["a", "b"], "default"),
        ] {
            let mut dag = dag(queues);
            dag.callbacks = run_callbacks();
            let companion = dag.companion().unwrap();
            assert_eq!(companion.tasks[0].limits.queue.as_str(), expected);
        }
    }

    #[test]
    fn a_name_without_room_has_no_companion() {
        assert!(companion_id(&"x".repeat(190)).is_ok());
        assert!(companion_id(&"x".repeat(191)).is_err());
    }
}
