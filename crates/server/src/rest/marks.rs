//! Clear and mark: what would change, and the change.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::runs::{check_text, keep_reason, of_run};
use super::target::{At, Named};
use super::{dag_view, dags};
use fencepost_api::problem::FieldError;
use fencepost_api::rest::{Change, ChangePlan, Clear, Mark};
use fencepost_core::dag::{TaskIndex, ancestors, descendants};
use fencepost_core::state::TiState;
use fencepost_engine::operations::clear::{self, ClearRequest, Cleared};
use fencepost_engine::operations::mark::{self, MarkRequest};
use fencepost_store::query::task_instance::Ti;
use std::collections::BTreeSet;

/// The run of a change, and the newest version's number.
pub(super) struct Scope {
    pub(super) at: At,
    latest_version: u32,
    version: u32,
}

impl Scope {
    pub(super) async fn of(call: &Call) -> Result<Self, Failure> {
        let tx = call.read().await?;
        let at = At::of(call, &tx).await?;
        let row = dags::find(&tx, &at.run.dag_id).await?;
        let version = u32::try_from(at.version.version).unwrap_or(0);
        Ok(Self { at, latest_version: dag_view::narrow(row.version), version })
    }

    pub(super) fn plan(&self, dry_run: bool, changes: Vec<Change>) -> ChangePlan {
        ChangePlan {
            dag_id: self.at.run.dag_id.clone(),
            run_id: self.at.run.run_id.clone(),
            dry_run,
            version: self.version,
            latest_version: self.latest_version,
            changes,
        }
    }

    /// The names of all tasks before or after some of them, without those themselves.
    fn around(&self, named: &[Named], upstream: bool, downstream: bool) -> BTreeSet<String> {
        let tasks = &self.at.version.dag.tasks;
        let from: Vec<TaskIndex> = named.iter().map(|n| TaskIndex(n.task_index)).collect();
        let mut found: BTreeSet<TaskIndex> = BTreeSet::new();
        if upstream {
            found.extend(ancestors(tasks, &from));
        }
        if downstream {
            found.extend(descendants(tasks, &from));
        }
        let task = |index: &TaskIndex| self.at.version.dag.task(*index);
        found
            .iter()
            .filter(|index| !from.contains(index))
            .filter_map(|index| task(index).map(|task| task.task_id.to_string()))
            .collect()
    }
}

pub(super) async fn clear_run(call: &Call) -> Done {
    let body: Clear = call.body()?;
    let scope = Scope::of(call).await?;
    let mut named = Vec::new();
    let mut errors = Vec::new();
    for (place, text) in body.tasks.iter().enumerate() {
        match scope.at.named(text) {
            Ok(one) => named.push(one),
            Err(_) if body.tasks.len() > 1 => errors.push(FieldError {
                pointer: format!("/tasks/{place}"),
                message: format!("the run has no task `{text}`"),
                suggestion: None,
            }),
            Err(failure) => return Err(failure),
        }
    }
    if errors.is_empty() {
        clear(call, &scope, body, &named).await
    } else {
        Err(Failure::fields(errors))
    }
}

pub(super) async fn clear_task(call: &Call) -> Done {
    let body: Clear = call.body()?;
    let scope = Scope::of(call).await?;
    let named = scope.at.named(call.arg(2))?;
    clear(call, &scope, body, &[named]).await
}

/// Clears whole tasks in one transaction, and each named instance of a mapped task in its own.
async fn clear(call: &Call, scope: &Scope, body: Clear, named: &[Named]) -> Done {
    let dry_run = call.dry_run()?;
    check_text("/reason", body.reason.as_deref())?;
    if body.latest_version && scope.version != scope.latest_version {
        let text = "not supported yet: a run goes on with the version that it began with";
        return Err(Failure::field("/latest_version", text)
            .suggest("trigger a new run for the newest version"));
    }
    let request = ClearRequest {
        dag_id: scope.at.run.dag_id.clone(),
        run_id: scope.at.run.run_id.clone(),
        only_failed: body.only_failed,
        new_keys: body.new_keys,
        dry_run,
        by: call.by().into(),
        ..ClearRequest::default()
    };
    let mut cleared = Vec::new();
    for (tasks, map_index) in bundles(scope, &body, named) {
        let request = ClearRequest { tasks, map_index, ..request.clone() };
        cleared.extend(clear::clear(call.cx(), &request).await?);
    }
    if !dry_run {
        keep_reason(call, of_run(&scope.at.run), body.reason).await?;
    }
    Answer::ok(&scope.plan(dry_run, cleared.into_iter().map(cleared_change).collect()))
}

/// What one call of the engine can clear: tasks as a whole, or an instance.
fn bundles(scope: &Scope, body: &Clear, named: &[Named]) -> Vec<(Vec<String>, Option<i32>)> {
    if named.is_empty() {
        return vec![(Vec::new(), None)];
    }
    let mut whole = scope.around(named, body.upstream, body.downstream);
    whole.extend(named.iter().filter(|n| n.map_index.is_none()).map(|n| n.task_id.clone()));
    let single: BTreeSet<(String, i32)> = named
        .iter()
        .filter_map(|n| Some((n.task_id.clone(), n.map_index?)))
        .filter(|(task_id, _)| !whole.contains(task_id))
        .collect();
    let mut bundles: Vec<(Vec<String>, Option<i32>)> = Vec::new();
    if !whole.is_empty() {
        bundles.push((whole.into_iter().collect(), None));
    }
    bundles.extend(single.into_iter().map(|(task_id, index)| (vec![task_id], Some(index))));
    bundles
}

fn cleared_change(cleared: Cleared) -> Change {
    let runs = cleared.state == TiState::Running;
    let to = if runs { TiState::Restarting } else { TiState::None };
    Change {
        task_id: cleared.task_id,
        map_index: cleared.map_index,
        from: cleared.state.as_str().into(),
        to: Some(to.as_str().into()),
        new_key: cleared.new_key,
        reason: runs.then(|| "it is stopped first".into()),
    }
}

pub(super) async fn mark(call: &Call) -> Done {
    let dry_run = call.dry_run()?;
    let body: Mark = call.body()?;
    check_text("/reason", body.reason.as_deref())?;
    let Some(state @ (TiState::Success | TiState::Failed | TiState::Skipped)) =
        TiState::parse(&body.state)
    else {
        return Err(Failure::field("/state", "success, failed or skipped"));
    };
    let scope = Scope::of(call).await?;
    let named = scope.at.named(call.arg(2))?;
    let around = scope.around(std::slice::from_ref(&named), body.upstream, body.downstream);
    let own = std::iter::once((named.task_id, named.map_index));
    let mut changes = Vec::new();
    for (task_id, map_index) in own.chain(around.into_iter().map(|task_id| (task_id, None))) {
        let request = MarkRequest {
            dag_id: scope.at.run.dag_id.clone(),
            run_id: scope.at.run.run_id.clone(),
            task_id,
            map_index,
            state,
            dry_run,
            only_held: false,
            by: call.by().into(),
        };
        let marked = mark::mark(call.cx(), &request).await?;
        changes.extend(marked.into_iter().map(|ti| marked_change(&ti, state)));
    }
    if !dry_run {
        keep_reason(call, of_run(&scope.at.run), body.reason).await?;
    }
    Answer::ok(&scope.plan(dry_run, changes))
}

fn marked_change(ti: &Ti, state: TiState) -> Change {
    let runs = matches!(ti.state, TiState::Running | TiState::Restarting);
    Change {
        task_id: ti.task_id.clone(),
        map_index: ti.key.map_index,
        from: ti.state.as_str().into(),
        to: Some(state.as_str().into()),
        new_key: false,
        reason: runs.then(|| "as soon as its processes are gone".into()),
    }
}
