//! Task instances on the wire.

use super::attempt_view::evidence;
use super::dag_view::{time, upstreams};
use super::failure::Failure;
use super::target::At;
use crate::render::Renderer;
use fencepost_api::rest::{HeldTask, TaskInstance};
use fencepost_core::id::Token;
use fencepost_core::state::TiState;
use fencepost_core::time::Timestamp;
use fencepost_dagfile::template;
use fencepost_engine::facts::Facts;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::Ti;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Instances with their newest attempts, read for all at once.
pub(super) async fn instances(
    tx: &Tx,
    at: &At,
    found: Vec<Ti>,
) -> Result<Vec<TaskInstance>, Failure> {
    let newest = newest(tx, &found).await?;
    let one = |ti: Ti| {
        let attempt = ti.token.and_then(|token| newest.get(&token));
        wire(at, ti, attempt)
    };
    Ok(found.into_iter().map(one).collect())
}

async fn newest(tx: &Tx, found: &[Ti]) -> Result<BTreeMap<Token, Attempt>, Failure> {
    let tokens: Vec<Token> = found.iter().filter_map(|ti| ti.token).collect();
    Ok(attempt::get(tx, &tokens).await?.into_iter().map(|a| (a.token, a)).collect())
}

/// Held instances, with what is known of the end of their newest attempts.
pub(super) async fn held(tx: &Tx, at: &At, found: Vec<Ti>) -> Result<Vec<HeldTask>, Failure> {
    let newest = newest(tx, &found).await?;
    let one = |ti: Ti| {
        let attempt = ti.token.and_then(|token| newest.get(&token));
        HeldTask {
            dag_id: at.run.dag_id.clone(),
            run_id: at.run.run_id.clone(),
            map_index: ti.key.map_index,
            map_label: map_label(at, &ti),
            state: ti.state.as_str().into(),
            reason: ti.reason.clone(),
            since: time(since(&ti, &at.run)),
            try_number: ti.try_number,
            attempt_count: ti.attempts,
            token: ti.token.map(|token| token.as_i64().to_string()),
            attempt_id: attempt.map(|attempt| attempt.attempt_id.to_string()),
            worker: attempt.and_then(|attempt| attempt.worker.clone()),
            evidence: attempt.and_then(evidence),
            task_id: ti.task_id,
        }
    };
    Ok(found.into_iter().map(one).collect())
}

fn wire(at: &At, ti: Ti, newest: Option<&Attempt>) -> TaskInstance {
    let task = at.task(ti.key.task_index);
    let waits = ti.state == TiState::UpForRetry;
    TaskInstance {
        dag_id: at.run.dag_id.clone(),
        run_id: at.run.run_id.clone(),
        map_index: ti.key.map_index,
        map_label: map_label(at, &ti),
        state: ti.state.as_str().into(),
        reason: ti.reason.clone(),
        try_number: ti.try_number,
        max_tries: ti.max_tries,
        infra_used: ti.infra_losses,
        infra_retries: task.map_or(0, |task| task.infra_retries),
        attempt_count: ti.attempts,
        token: ti.token.map(|token| token.as_i64().to_string()),
        attempt_id: newest.map(|attempt| attempt.attempt_id.to_string()),
        worker: newest.and_then(|attempt| attempt.worker.clone()),
        pool_slots: super::dag_view::narrow(ti.pool_slots),
        queue: task.map_or_else(String::new, |task| task.limits.queue.to_string()),
        priority_weight: ti.priority,
        trigger_rule: task.map_or("", |task| task.trigger_rule.as_str()).into(),
        depends_on: task.map(|task| upstreams(&at.version.dag, task)).unwrap_or_default(),
        since: time(since(&ti, &at.run)),
        started_at: time(ti.started_at),
        ended_at: time(ti.ended_at.filter(|_| ti.state.is_finished() || waits)),
        next_try_at: time(ti.retry_at.filter(|_| waits)),
        task_id: ti.task_id,
        pool: ti.pool,
    }
}

/// When it entered its state, as far as that is kept.
fn since(ti: &Ti, run: &Run) -> Option<Timestamp> {
    match ti.state {
        TiState::None => run.started_at.or(Some(run.created_at)),
        TiState::Scheduled => ti.scheduled_at,
        TiState::Queued => ti.queued_at,
        TiState::Running | TiState::Restarting => ti.started_at,
        TiState::Deferred | TiState::Held => ti.started_at.or(ti.queued_at),
        TiState::UpForRetry
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => ti.ended_at,
    }
}

/// What `map_index_template` says of an instance; nothing if it cannot be rendered.
fn map_label(at: &At, ti: &Ti) -> Option<String> {
    let template = at.task(ti.key.task_index)?.map_index_template.as_deref()?;
    if ti.key.map_index < 0 {
        return None;
    }
    let facts = Facts {
        version: Arc::clone(&at.version),
        run: at.run.clone(),
        ti: ti.clone(),
        outputs: BTreeMap::new(),
        kept: Vec::new(),
        asset_events: serde_json::Map::new(),
        attempt: None,
        telling: None,
    };
    let renderer = Renderer::without_keys();
    template::render("map_index_template", template, &renderer.context(&facts)).ok()
}
