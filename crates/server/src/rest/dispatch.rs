//! Which handler answers which route, by the route's name.

use super::answer::Done;
use super::call::Call;
use super::failure::Failure;
use super::{
    attempts, dags, events, health, logs, marks, openapi, pools, rendered, runs, schedule, system,
    tasks, tokens, workers,
};
use fencepost_api::problem::ProblemCode;

/// How often a request is served while others are in its way.
const TRIES: u32 = 4;

/// Answers a call that was let in.
pub(super) async fn serve(call: &Call) -> Done {
    for _ in 1..TRIES {
        match handle(call).await {
            Err(failure) if failure.is_contended() => {}
            done => return done,
        }
    }
    handle(call).await
}

async fn handle(call: &Call) -> Done {
    match call.route.name {
        "dag_list" => dags::list(call).await,
        "dag_show" => dags::show(call).await,
        "dag_patch" => schedule::patch(call).await,
        "dag_versions" => dags::versions(call).await,
        "dag_version" => dags::version(call).await,
        "dag_next" => schedule::next(call).await,
        "schedule" => schedule::list(call).await,
        "import_errors" => dags::import_errors(call).await,
        "run_trigger" => runs::trigger(call).await,
        "run_list" => runs::list(call).await,
        "run_list_all" => runs::list_all(call).await,
        "run_show" => runs::show(call).await,
        "run_patch" => runs::patch(call).await,
        "run_delete" => runs::delete(call).await,
        "run_cancel" => runs::cancel(call, false).await,
        "run_kill" => runs::cancel(call, true).await,
        "run_pause" => runs::pause(call, true).await,
        "run_resume" => runs::pause(call, false).await,
        "run_clear" => marks::clear_run(call).await,
        "run_explain" => tasks::explain_run(call).await,
        "task_list" => tasks::list(call).await,
        "task_show" => tasks::show(call).await,
        "task_clear" => marks::clear_task(call).await,
        "task_mark" => marks::mark(call).await,
        "task_attempts" => attempts::of_task(call).await,
        "task_outputs" => tasks::outputs(call).await,
        "task_rendered" => rendered::show(call).await,
        "task_explain" => tasks::explain(call).await,
        "attempt_list" => attempts::list(call).await,
        "attempt_show" => attempts::show(call).await,
        "attempt_events" => events::of_attempt(call).await,
        "attempt_log" => logs::show(call).await,
        "attempt_kill" => attempts::kill(call).await,
        "attempt_confirm_dead" => attempts::confirm_dead(call).await,
        "events" => events::list(call).await,
        "pool_list" => pools::list(call).await,
        "pool_show" => pools::show(call).await,
        "pool_put" => pools::put(call).await,
        "pool_delete" => pools::delete(call).await,
        "worker_list" => workers::list(call).await,
        "worker_show" => workers::show(call).await,
        "worker_drain" => workers::drain(call).await,
        "worker_resume" => workers::resume(call).await,
        "worker_remove" => workers::remove(call).await,
        "worker_confirm_dead" => workers::confirm_dead(call).await,
        "inspect" => workers::inspect(call).await,
        "token_list" => tokens::list(call).await,
        "token_create" => tokens::create(call).await,
        "token_revoke" => tokens::revoke(call).await,
        "health_live" => health::live(call),
        "health_ready" => health::ready(call).await,
        "version" => system::version(call).await,
        "doctor" => system::doctor(call).await,
        "config" => system::config(call),
        "openapi" => openapi::show(),
        // A test walks the whole table, so this is for a table that is ahead of this build.
        other => Err(Failure::new(ProblemCode::NoSuchRoute, format!("`{other}` has no handler"))),
    }
}
