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
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::clear::{self, ClearRequest, Cleared};
use fencepost_engine::operations::mark::{self, MarkRequest};
use fencepost_store::query::run;
use fencepost_store::query::task_instance::Ti;
use std::collections::BTreeSet;

/// Runs before and after the named one that one call changes, on each side.
const RUNS: u32 = 1_000;

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

    /// The runs that a change is about: the named one, then those of earlier and of later dates, each by its
    /// own version.
    async fn runs(&self, call: &Call, past: bool, future: bool) -> Result<Vec<At>, Failure> {
        let mut all = vec![self.at.clone()];
        let sides = [("/past", past, false), ("/future", future, true)];
        for (pointer, _, is_after) in sides.into_iter().filter(|(_, is_asked, _)| *is_asked) {
            let Some(date) = self.at.run.logical_date else {
                let text = "the run has no logical date, by which runs come before and after it";
                return Err(Failure::field(pointer, text));
            };
            let tx = call.read().await?;
            let found = run::dated(&tx, &self.at.run.dag_id, (date, is_after), RUNS + 1).await?;
            if found.len() > RUNS as usize {
                let text = format!("more than {RUNS} runs: nothing was changed");
                return Err(Failure::field(pointer, text).suggest("begin with a later run"));
            }
            for run in found.into_iter().filter(|run| run.made) {
                let version = call.cx().catalog.version(&tx, run.version_pk).await?;
                all.push(At { run, version });
            }
        }
        Ok(all)
    }
}

/// The names of all tasks before or after some of them, without those themselves.
fn around(at: &At, named: &[Named], upstream: bool, downstream: bool) -> BTreeSet<String> {
    let tasks = &at.version.dag.tasks;
    let from: Vec<TaskIndex> = named.iter().map(|n| TaskIndex(n.task_index)).collect();
    let mut found: BTreeSet<TaskIndex> = BTreeSet::new();
    if upstream {
        found.extend(ancestors(tasks, &from));
    }
    if downstream {
        found.extend(descendants(tasks, &from));
    }
    found
        .iter()
        .filter(|index| !from.contains(index))
        .filter_map(|index| at.version.dag.task(*index).map(|task| task.task_id.to_string()))
        .collect()
}

/// The same tasks in another run: those that its version has.
fn named_in(at: &At, named: &[Named]) -> Vec<Named> {
    let one = |of: &Named| {
        let task_index = at.version.task_index(&of.task_id)?;
        Some(Named { task_index, ..of.clone() })
    };
    named.iter().filter_map(one).collect()
}

/// What a change of one of several runs comes to; that of the named run is refused as a whole, another
/// run stays as it is, and the answer says why.
fn of_one(
    at: &At,
    is_first: bool,
    done: Result<Vec<Change>, EngineError>,
) -> Result<Vec<Change>, Failure> {
    match done {
        Err(EngineError::Refused(why)) if !is_first => Ok(vec![Change {
            run_id: at.run.run_id.clone(),
            task_id: String::new(),
            map_index: -1,
            from: at.run.state.as_str().into(),
            to: None,
            new_key: false,
            reason: Some(why.to_string()),
        }]),
        done => Ok(done?),
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

/// Clears in the named run, and in those around it that are asked for; each run by itself, so that a call which is
/// interrupted can be made again.
async fn clear(call: &Call, scope: &Scope, body: Clear, named: &[Named]) -> Done {
    let dry_run = call.dry_run()?;
    check_text("/reason", body.reason.as_deref())?;
    if body.latest_version && scope.version != scope.latest_version {
        let text = "not supported yet: a run goes on with the version that it began with";
        return Err(Failure::field("/latest_version", text)
            .suggest("trigger a new run for the newest version"));
    }
    let mut changes = Vec::new();
    for (place, at) in scope.runs(call, body.past, body.future).await?.iter().enumerate() {
        let named_here = named_in(at, named);
        if named_here.is_empty() && !named.is_empty() {
            continue;
        }
        let done = clear_in(call, at, &body, &named_here, dry_run).await;
        let made = of_one(at, place == 0, done)?;
        if !dry_run && (place == 0 || made.iter().any(|change| change.to.is_some())) {
            keep_reason(call, of_run(&at.run), body.reason.clone()).await?;
        }
        changes.extend(made);
    }
    Answer::ok(&scope.plan(dry_run, changes))
}

/// Clears in one run: whole tasks in one transaction, and each named instance of a mapped task in its own.
async fn clear_in(
    call: &Call,
    at: &At,
    body: &Clear,
    named: &[Named],
    dry_run: bool,
) -> Result<Vec<Change>, EngineError> {
    let request = ClearRequest {
        dag_id: at.run.dag_id.clone(),
        run_id: at.run.run_id.clone(),
        only_failed: body.only_failed,
        new_keys: body.new_keys,
        dry_run,
        by: call.by().into(),
        ..ClearRequest::default()
    };
    let mut cleared = Vec::new();
    for (tasks, map_index) in bundles(at, body, named) {
        let request = ClearRequest { tasks, map_index, ..request.clone() };
        cleared.extend(clear::clear(call.cx(), &request).await?);
    }
    Ok(cleared.into_iter().map(|one| cleared_change(at, one)).collect())
}

/// What one call of the engine can clear: tasks as a whole, or an instance.
fn bundles(at: &At, body: &Clear, named: &[Named]) -> Vec<(Vec<String>, Option<i32>)> {
    if named.is_empty() {
        return vec![(Vec::new(), None)];
    }
    let mut whole = around(at, named, body.upstream, body.downstream);
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

fn cleared_change(at: &At, cleared: Cleared) -> Change {
    let runs = cleared.state == TiState::Running;
    let to = if runs { TiState::Restarting } else { TiState::None };
    Change {
        run_id: at.run.run_id.clone(),
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
    let mut changes = Vec::new();
    for (place, at) in scope.runs(call, body.past, body.future).await?.iter().enumerate() {
        let Some(named) = named_in(at, std::slice::from_ref(&named)).pop() else { continue };
        let done = mark_in(call, at, (&body, named, state), dry_run).await;
        let made = of_one(at, place == 0, done)?;
        if !dry_run && (place == 0 || made.iter().any(|change| change.to.is_some())) {
            keep_reason(call, of_run(&at.run), body.reason.clone()).await?;
        }
        changes.extend(made);
    }
    Answer::ok(&scope.plan(dry_run, changes))
}

async fn mark_in(
    call: &Call,
    at: &At,
    (body, named, state): (&Mark, Named, TiState),
    dry_run: bool,
) -> Result<Vec<Change>, EngineError> {
    let around = around(at, std::slice::from_ref(&named), body.upstream, body.downstream);
    let own = std::iter::once((named.task_id, named.map_index));
    let mut changes = Vec::new();
    for (task_id, map_index) in own.chain(around.into_iter().map(|task_id| (task_id, None))) {
        let request = MarkRequest {
            dag_id: at.run.dag_id.clone(),
            run_id: at.run.run_id.clone(),
            task_id,
            map_index,
            state,
            dry_run,
            only_held: false,
            by: call.by().into(),
        };
        let marked = mark::mark(call.cx(), &request).await?;
        changes.extend(marked.into_iter().map(|ti| marked_change(at, &ti, state)));
    }
    Ok(changes)
}

fn marked_change(at: &At, ti: &Ti, state: TiState) -> Change {
    let runs = matches!(ti.state, TiState::Running | TiState::Restarting);
    Change {
        run_id: at.run.run_id.clone(),
        task_id: ti.task_id.clone(),
        map_index: ti.key.map_index,
        from: ti.state.as_str().into(),
        to: Some(state.as_str().into()),
        new_key: false,
        reason: runs.then(|| "as soon as its processes are gone".into()),
    }
}
