//! Which handler answers which route, by the route's name.

use super::answer::Done;
use super::call::Call;
use super::failure::Failure;
use super::{
    answers, assets, attempts, backfills, callbacks, connections, dags, events, health, held,
    incidents, logs, marks, openapi, pools, rendered, runs, schedule, system, tasks, tokens, vault,
    workers,
};
use fencepost_api::problem::ProblemCode;
use fencepost_core::kept::Kind;
use std::future::ready;
use std::pin::Pin;

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

/// An answer on its way.
type Answering<'a> = Pin<Box<dyn Future<Output = Done> + Send + 'a>>;

/// Made and boxed in a frame of its own: in the frame of [`handle`] all handlers together would be larger
/// than a thread's stack.
fn boxed<'a, F: Future<Output = Done> + Send + 'a>(make: impl FnOnce() -> F) -> Answering<'a> {
    Box::pin(make())
}

fn handle(call: &Call) -> Answering<'_> {
    match call.route.name {
        "dag_list" => boxed(|| dags::list(call)),
        "dag_show" => boxed(|| dags::show(call)),
        "dag_patch" => boxed(|| schedule::patch(call)),
        "dag_versions" => boxed(|| dags::versions(call)),
        "dag_version" => boxed(|| dags::version(call)),
        "dag_next" => boxed(|| schedule::next(call)),
        "dag_explain" => boxed(|| tasks::explain_dag(call)),
        "schedule" => boxed(|| schedule::list(call)),
        "import_errors" => boxed(|| dags::import_errors(call)),
        "run_trigger" => boxed(|| runs::trigger(call)),
        "run_list" => boxed(|| runs::list(call)),
        "run_list_all" => boxed(|| runs::list_all(call)),
        "run_show" => boxed(|| runs::show(call)),
        "run_patch" => boxed(|| runs::patch(call)),
        "run_delete" => boxed(|| runs::delete(call)),
        "run_cancel" => boxed(|| runs::cancel(call, false)),
        "run_kill" => boxed(|| runs::cancel(call, true)),
        "run_pause" => boxed(|| runs::pause(call, true)),
        "run_resume" => boxed(|| runs::pause(call, false)),
        "run_clear" => boxed(|| marks::clear_run(call)),
        "run_explain" => boxed(|| tasks::explain_run(call)),
        "task_list" => boxed(|| tasks::list(call)),
        "task_show" => boxed(|| tasks::show(call)),
        "task_clear" => boxed(|| marks::clear_task(call)),
        "task_mark" => boxed(|| marks::mark(call)),
        "task_approve" => boxed(|| answers::answer(call, true)),
        "task_reject" => boxed(|| answers::answer(call, false)),
        "task_attempts" => boxed(|| attempts::of_task(call)),
        "task_outputs" => boxed(|| tasks::outputs(call)),
        "task_rendered" => boxed(|| rendered::show(call)),
        "task_explain" => boxed(|| tasks::explain(call)),
        "attempt_list" => boxed(|| attempts::list(call)),
        "attempt_show" => boxed(|| attempts::show(call)),
        "attempt_events" => boxed(|| events::of_attempt(call)),
        "attempt_log" => boxed(|| logs::show(call)),
        "attempt_kill" => boxed(|| attempts::kill(call)),
        "attempt_confirm_dead" => boxed(|| attempts::confirm_dead(call)),
        "attempt_refused_writes" => boxed(|| events::refused_writes(call)),
        "incident_list" => boxed(|| incidents::list(call)),
        "incident_show" => boxed(|| incidents::show(call)),
        "incident_close" => boxed(|| incidents::close(call)),
        name if name.starts_with("backfill_") => of_backfills(call),
        name if name.starts_with("callback_") => of_callbacks(call),
        name if name.starts_with("asset_") => of_assets(call),
        "held_list" => boxed(|| held::list(call)),
        "held_resolve" => boxed(|| held::resolve(call)),
        "events" => boxed(|| events::list(call)),
        "pool_list" => boxed(|| pools::list(call)),
        "pool_show" => boxed(|| pools::show(call)),
        "pool_put" => boxed(|| pools::put(call)),
        "pool_delete" => boxed(|| pools::delete(call)),
        "worker_list" => boxed(|| workers::list(call)),
        "worker_show" => boxed(|| workers::show(call)),
        "worker_drain" => boxed(|| workers::drain(call)),
        "worker_resume" => boxed(|| workers::resume(call)),
        "worker_remove" => boxed(|| workers::remove(call)),
        "worker_confirm_dead" => boxed(|| workers::confirm_dead(call)),
        "inspect" => boxed(|| workers::inspect(call)),
        "token_list" => boxed(|| tokens::list(call)),
        "token_create" => boxed(|| tokens::create(call)),
        "token_revoke" => boxed(|| tokens::revoke(call)),
        "health_live" => boxed(|| ready(health::live(call))),
        "health_ready" => boxed(|| health::ready(call)),
        "version" => boxed(|| system::version(call)),
        "doctor" => boxed(|| system::doctor(call)),
        "config" => boxed(|| ready(system::config(call))),
        "openapi" => boxed(|| ready(openapi::show())),
        _ => of_the_vault(call),
    }
}

fn of_the_vault(call: &Call) -> Answering<'_> {
    match call.route.name {
        "variable_list" => boxed(|| vault::list(call, Kind::Variable)),
        "variable_show" => boxed(|| vault::show(call, Kind::Variable)),
        "variable_put" => boxed(|| vault::put(call, Kind::Variable)),
        "variable_delete" => boxed(|| vault::delete(call, Kind::Variable)),
        "connection_list" => boxed(|| vault::list(call, Kind::Connection)),
        "connection_show" => boxed(|| vault::show(call, Kind::Connection)),
        "connection_put" => boxed(|| vault::put(call, Kind::Connection)),
        "connection_delete" => boxed(|| vault::delete(call, Kind::Connection)),
        "secret_list" => boxed(|| vault::list(call, Kind::Secret)),
        "secret_show" => boxed(|| vault::show(call, Kind::Secret)),
        "secret_put" => boxed(|| vault::put(call, Kind::Secret)),
        "secret_delete" => boxed(|| vault::delete(call, Kind::Secret)),
        "connection_test" => boxed(|| connections::test(call)),
        "vault_rotate" => boxed(|| vault::rotate(call)),
        _ => nobody(call),
    }
}

fn of_assets(call: &Call) -> Answering<'_> {
    match call.route.name {
        "asset_list" => boxed(|| assets::list(call)),
        "asset_show" => boxed(|| assets::show(call)),
        "asset_events" => boxed(|| assets::events(call)),
        "asset_emit" => boxed(|| assets::emit(call)),
        _ => nobody(call),
    }
}

fn of_callbacks(call: &Call) -> Answering<'_> {
    match call.route.name {
        "callback_list" => boxed(|| callbacks::list(call)),
        "callback_show" => boxed(|| callbacks::show(call)),
        "callback_retry" => boxed(|| callbacks::retry(call)),
        _ => nobody(call),
    }
}

fn of_backfills(call: &Call) -> Answering<'_> {
    match call.route.name {
        "backfill_create" => boxed(|| backfills::create(call)),
        "backfill_preview" => boxed(|| backfills::preview(call)),
        "backfill_list" => boxed(|| backfills::list(call)),
        "backfill_show" => boxed(|| backfills::show(call)),
        "backfill_pause" => boxed(|| backfills::pause(call, true)),
        "backfill_resume" => boxed(|| backfills::pause(call, false)),
        "backfill_cancel" => boxed(|| backfills::cancel(call)),
        _ => nobody(call),
    }
}

/// A test walks the whole table, so this is for a table that is ahead of this build.
fn nobody(call: &Call) -> Answering<'_> {
    boxed(|| {
        let text = format!("`{}` has no handler", call.route.name);
        ready(Err(Failure::new(ProblemCode::NoSuchRoute, text)))
    })
}
