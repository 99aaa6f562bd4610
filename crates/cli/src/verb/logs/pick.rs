//! Which attempts' logs are meant.

use crate::client::Client;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use crate::verb::target::AttemptRef;
use crate::view::{task_label, task_path};
use fencepost_api::rest::{Attempt, ListQuery, TaskInstance, TaskQuery, routes};

/// An attempt that has, or will have, a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) attempt_id: String,
    /// `load[emea]`.
    pub(super) label: String,
}

impl Picked {
    /// An attempt of that task instance.
    pub(super) fn of(instance: &TaskInstance, attempt: &Attempt) -> Self {
        let label = instance.map_label.as_deref();
        Self {
            attempt_id: attempt.attempt_id.clone(),
            label: task_label(&instance.task_id, instance.map_index, label),
        }
    }
}

/// The task instances that are meant, in topological order.
pub(super) fn instances(
    client: &Client,
    (dag, run): (&str, &str),
    task: Option<(&str, Option<u32>)>,
) -> Outcome<Vec<TaskInstance>> {
    let Some((task_id, index)) = task else {
        let items = client.list(routes::TASK_LIST, &[dag, run], &TaskQuery::default(), None)?;
        return items.into_iter().map(typed).collect();
    };
    if let Some(index) = index {
        let path = format!("{task_id};{index}");
        return Ok(vec![client.read(routes::TASK_SHOW, &[dag, run, &path])?]);
    }
    let query = TaskQuery { task_id: Some(task_id.into()), ..TaskQuery::default() };
    let items = client.list(routes::TASK_LIST, &[dag, run], &query, None)?;
    if items.is_empty() {
        // Lets the server say what is missing, and the client what is near.
        return Ok(vec![client.read(routes::TASK_SHOW, &[dag, run, task_id])?]);
    }
    items.into_iter().map(typed).collect()
}

/// Every attempt at a task instance, oldest first.
pub(super) fn attempts_of(
    client: &Client,
    (dag, run): (&str, &str),
    instance: &TaskInstance,
) -> Outcome<Vec<Attempt>> {
    let path = task_path(&instance.task_id, instance.map_index);
    let query = ListQuery::default();
    let items = client.list(routes::TASK_ATTEMPTS, &[dag, run, &path], &query, None)?;
    items.into_iter().map(typed).collect()
}

/// Of each task instance the wanted attempt, else the newest that started.
pub(super) fn attempts(
    client: &Client,
    at: (&str, &str),
    task: Option<(&str, Option<u32>)>,
    wanted: Option<AttemptRef>,
) -> Outcome<Vec<Picked>> {
    let mut picked = Vec::new();
    for instance in instances(client, at, task)? {
        if instance.attempt_count > 0 {
            let attempts = attempts_of(client, at, &instance)?;
            picked.extend(choose(&attempts, wanted).map(|attempt| Picked::of(&instance, attempt)));
        }
    }
    match (picked.is_empty(), wanted) {
        (true, Some(_)) => Err(CliError::new(Exit::NotFound, "there is no such attempt")
            .hint(format!("see  fencepost tasks attempts {} {} TASK", at.0, at.1))),
        _ => Ok(picked),
    }
}

/// The wanted attempt, else the newest that started, else the newest.
pub(super) fn choose(attempts: &[Attempt], wanted: Option<AttemptRef>) -> Option<&Attempt> {
    match wanted {
        Some(AttemptRef::Number(number)) => attempts.iter().find(|a| a.attempt_number == number),
        Some(AttemptRef::Token(token)) => {
            let token = token.as_i64().to_string();
            attempts.iter().find(|a| a.token == token)
        }
        None => attempts.iter().rev().find(|a| a.started_at.is_some()).or(attempts.last()),
    }
}
