//! From what was written to a trigger's row.

use crate::Cx;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts;
use fencepost_core::dag::{Action, Task};
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;
use fencepost_core::wait::{Begins, Memory, Waiting, render};
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::trigger::Trigger;
use serde_json::Value;

/// Where and when a wait of a run begins.
pub(crate) fn begins(version: &Version, run: &Run, now: Timestamp) -> Begins {
    let timezone = version.dag.timing.timezone.clone();
    Begins { now, timezone, logical_date: run.logical_date }
}

/// An instance that goes to sleep.
pub(crate) struct Asleep<'a> {
    pub(crate) ti: &'a Ti,
    /// Of the attempt that is deferred.
    pub(crate) token: Token,
    /// When its try was deferred first.
    pub(crate) since: Timestamp,
    /// A process resumes.
    pub(crate) resumes: bool,
}

/// The row of a wait.
pub(crate) fn trigger(of: &Asleep<'_>, waiting: &Waiting, now: Timestamp) -> Trigger {
    let deadline_at = waiting.deadline(of.since);
    Trigger {
        token: of.token,
        ti: of.ti.key,
        dag_id: of.ti.dag_id.clone(),
        kind: waiting.wait.kind().into(),
        wait: waiting.to_json(),
        memory: Memory::default().to_json(),
        resumes: of.resumes,
        created_at: now,
        due_at: waiting.due_at(deadline_at),
        deadline_at,
        // What was awaited may have come before.
        next_at: waiting.wait.is_looked_at().then_some(now),
        job_id: String::new(),
    }
}

/// The wait of a `wait:` task that begins now; `None` if it does something else. What is wrong with it is
/// said in words: it fails its instance, and nothing else.
pub(crate) async fn of_task(
    cx: &Cx,
    tx: &Tx,
    (version, run): (&Version, &Run),
    (task, ti): (&Task, &Ti),
) -> Result<Option<Result<Waiting, String>>, EngineError> {
    let Action::Wait(written) = &task.action else { return Ok(None) };
    let text = written.to_string();
    let begins = begins(version, run, tx.now());
    let rendered: Result<Value, String> = if text.contains("{{") || text.contains("{%") {
        let facts = facts::load(tx, &cx.catalog, run.clone(), ti.clone()).await?;
        render(written, &mut |template| (cx.env.render)(template, &facts))
    } else {
        Ok(written.clone())
    };
    let read = |json: Value| Waiting::read(&json, &begins).map_err(|error| error.to_string());
    Ok(Some(rendered.and_then(read)))
}
