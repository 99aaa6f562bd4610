//! From an assignment to what its shim is told, and the files that the task is given.

use super::Shared;
use super::lease::shim_margin;
use crate::attempt::{
    ASSET_EVENTS, CHECKPOINT_IN, DEFER_EVENT, ForTask, FromTask, INPUTS, PARAMS, SCRIPT,
};
use crate::dir::AttemptDir;
use crate::spec::{Containment, Resources, ShimSpec, version_of};
use fencepost_api::execution::{Assignment, Work};
use std::path::PathBuf;
use std::time::Duration;

/// The spec of an attempt; `private`: where its private files are, if it has some.
pub(super) fn spec(
    shared: &Shared,
    dir: &AttemptDir,
    (assignment, work): (&Assignment, &Work),
    private: Option<PathBuf>,
) -> ShimSpec {
    let settings = &shared.settings;
    let mut argv = work.argv.clone();
    if let (Some(program), Some(_)) = (argv.first_mut(), &work.python) {
        program.clone_from(&settings.python.interpreter);
    }
    if work.script.is_some() {
        argv.push(text(dir.io().join(SCRIPT)));
    }
    let own_grace = work.kill_grace_ms.and_then(|ms| u64::try_from(ms).ok());
    let positive = |ms: Option<i64>| ms.and_then(|ms| u64::try_from(ms).ok());
    ShimSpec {
        version: version_of(private.as_ref()),
        token: assignment.token.clone(),
        attempt_id: assignment.attempt_id.clone(),
        argv,
        env: environment(shared, dir, assignment, work),
        cwd: work.working_dir.as_ref().map_or_else(|| dir.work(), PathBuf::from),
        run_as_user: work.run_as_user.clone(),
        containment: containment(work, &settings.containment),
        resources: work.resources.map_or_else(Resources::default, |of| Resources {
            cpu_millis: of.cpu_millis,
            memory: of.memory,
        }),
        kill_grace_ms: own_grace.unwrap_or(u64::MAX),
        worker_kill_grace_ms: millis(settings.kill_grace),
        execution_timeout_ms: positive(work.execution_timeout_ms),
        stall_timeout_ms: positive(work.stall_timeout_ms),
        keeps: work.keeps,
        graceful_exit_codes: work.graceful_exit_codes.iter().map(|code| (*code).into()).collect(),
        log_limit: settings.log_limit,
        clock: settings.clock,
        margin_ms: settings
            .lease
            .map_or(millis(settings.margin), |lease| millis(shim_margin(&lease).to_std())),
        result_file: Some(FromTask::Result.path(dir)),
        outputs: work.outputs.clone(),
        private,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// The task's word goes before the worker's.
fn containment(work: &Work, default: &str) -> Containment {
    let named = if work.containment == "auto" { default } else { &work.containment };
    match named {
        "pidns" => Containment::Pidns,
        "cgroup" => Containment::Cgroup,
        "group" => Containment::Group,
        _ => Containment::Auto,
    }
}

/// The host's allow list, then the task's own, then the places that are this worker's to name.
fn environment(
    shared: &Shared,
    dir: &AttemptDir,
    assignment: &Assignment,
    work: &Work,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = Vec::new();
    let places = [
        ("FENCEPOST_OUTPUT_FILE", FromTask::Outputs.path(dir)),
        ("FENCEPOST_RESULT_FILE", FromTask::Result.path(dir)),
        ("FENCEPOST_DEFER_FILE", FromTask::Defer.path(dir)),
        ("FENCEPOST_CHECKPOINT_IN", dir.io().join(CHECKPOINT_IN)),
        ("FENCEPOST_CHECKPOINT_OUT", FromTask::Checkpoint.path(dir)),
        ("FENCEPOST_PARAMS_FILE", dir.io().join(PARAMS)),
        ("FENCEPOST_INPUTS_FILE", dir.io().join(INPUTS)),
        ("FENCEPOST_LEASE_FILE", dir.lease()),
        ("FENCEPOST_WORK_DIR", dir.work()),
        ("FENCEPOST_TMP_DIR", dir.tmp()),
        ("FENCEPOST_STATE_DIR", state_dir(shared, assignment)),
    ];
    // Set only for a process that resumes: so it knows that it does.
    let event = work.defer_event.is_some().then(|| dir.io().join(DEFER_EVENT));
    let event = event.map(|path| ("FENCEPOST_DEFER_EVENT_FILE", path));
    let assets = work.asset_events.is_some().then(|| dir.io().join(ASSET_EVENTS));
    let assets = assets.map(|path| ("FENCEPOST_ASSET_EVENTS_FILE", path));
    let places = places
        .into_iter()
        .chain(event)
        .chain(assets)
        .map(|(name, path)| (name.to_owned(), text(path)));
    let temporary = [("TMPDIR".to_owned(), text(dir.tmp()))];
    let all = shared.settings.allowed_env().chain(temporary).chain(work.env.clone()).chain(places);
    let all = all.chain(api(shared, assignment)).chain(python_path(shared, work));
    for (name, value) in all {
        // A NUL cannot be handed to a process; the value is cut there rather than the task lost.
        let value = value.split('\0').next().unwrap_or_default().to_owned();
        env.retain(|(other, _)| *other != name);
        env.push((name, value));
    }
    env
}

/// The DAG folder comes first on the path of a Python function, before what its task names.
fn python_path(shared: &Shared, work: &Work) -> Option<(String, String)> {
    const PATH: &str = "PYTHONPATH";
    work.python.as_ref()?;
    let own = shared.settings.python.path.as_ref()?.to_string_lossy().into_owned();
    let named = work.env.iter().rev().find(|(name, _)| name == PATH).map(|(_, value)| value);
    let path = named.map_or_else(|| own.clone(), |named| format!("{own}:{named}"));
    Some((PATH.into(), path))
}

/// What the task needs to ask the server something, for itself alone.
fn api(shared: &Shared, assignment: &Assignment) -> Vec<(String, String)> {
    let (Some(api), Some(credential)) = (&shared.settings.api, &assignment.credential) else {
        return Vec::new();
    };
    let mut env = vec![
        ("FENCEPOST_API_URL".to_owned(), api.url.clone()),
        ("FENCEPOST_API_TOKEN".to_owned(), credential.clone()),
    ];
    let ca = api.ca.as_ref().map(|path| ("FENCEPOST_API_CA".to_owned(), text(path.clone())));
    env.extend(ca);
    env
}

/// `FENCEPOST_STATE_DIR`: kept from one attempt of a task instance to the next.
pub(super) fn state_dir(shared: &Shared, assignment: &Assignment) -> PathBuf {
    let name = match assignment.map_index {
        index if index >= 0 => format!("{}.{index}", assignment.task_id),
        _ => assignment.task_id.clone(),
    };
    let state = shared.settings.home.join("state");
    state.join(&assignment.dag_id).join(&assignment.run_id).join(name)
}

/// What the task is given to read.
pub(super) fn for_task(shared: &Shared, assignment: &Assignment, work: &Work) -> ForTask {
    ForTask {
        private: None,
        script: work.script.clone(),
        defer_event: work.defer_event.as_ref().map(ToString::to_string),
        checkpoint: work.checkpoint.as_deref().and_then(super::checkpoint::decode),
        params: work.params.to_string(),
        inputs: work.inputs.to_string(),
        asset_events: work.asset_events.as_ref().map(ToString::to_string),
        owner: work.run_as_user.clone(),
        state: state_dir(shared, assignment),
    }
}
