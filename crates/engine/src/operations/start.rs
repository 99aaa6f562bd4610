//! claimed -> running: a worker execs only after this was accepted.

use super::{Answer, Refused, owner, ramp};
use crate::Cx;
use crate::contention;
use crate::error::EngineError;
use crate::liveness::gate;
use crate::log;
use fencepost_core::guard::Guard;
use fencepost_core::id::{JobId, Token};
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::{AttemptState, Outcome};
use fencepost_store::query::attempt::{self, Attempt, Started};
use fencepost_store::query::event;
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};
use std::collections::{BTreeMap, BTreeSet};
use tokio::try_join;

/// A start that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    pub token: Token,
    /// Made by the worker for this start; the same again gets the same answer.
    pub start_id: String,
    pub boot_id: String,
    /// The number of its worker's call.
    pub call: i64,
}

/// Starts claimed attempts of a job; an answer for each, in their order.
pub async fn start(
    cx: &Cx,
    job_id: JobId,
    requests: &[StartRequest],
) -> Result<Vec<Answer>, EngineError> {
    contention::again(|| start_once(cx, job_id, requests)).await
}

async fn start_once(
    cx: &Cx,
    job_id: JobId,
    requests: &[StartRequest],
) -> Result<Vec<Answer>, EngineError> {
    let Some(acting) = owner::begin(cx, "start", job_id).await? else {
        let fenced = Answer::Refused(Refused::Fenced, "the worker's lease is over".into());
        return Ok(vec![fenced; requests.len()]);
    };
    let is_admitted = acting.is_admitted(cx).await?;
    let tx = acting.tx;
    let tokens: Vec<Token> = requests.iter().map(|request| request.token).collect();
    let (tis, attempts) = try_join!(
        biased;
        task_instance::of_attempts(&tx, &tokens),
        attempt::get(&tx, &tokens),
    )?;
    let tis: BTreeMap<TiKey, Ti> = tis.into_iter().map(|ti| (ti.key, ti)).collect();
    let mut attempts: BTreeMap<Token, Attempt> =
        attempts.into_iter().map(|a| (a.token, a)).collect();
    let mut starts = Vec::new();
    let mut changes = Vec::new();
    let mut answers = Vec::new();
    for request in requests {
        let attempt = attempts.get_mut(&request.token);
        let ti = attempt.as_ref().and_then(|attempt| tis.get(&attempt.ti));
        let (Some(attempt), Some(ti)) = (attempt, ti) else {
            answers.push(Answer::Refused(Refused::NotRunning, "no such attempt".into()));
            continue;
        };
        let answer = decide(cx, attempt, ti, (job_id, request));
        let is_open = attempt.state != AttemptState::Ended;
        if answer == Answer::Accepted && attempt.start_id.is_none() && is_open {
            starts.push(Started {
                token: attempt.token,
                job_id,
                start_id: request.start_id.clone(),
                boot_id: request.boot_id.clone(),
                call: request.call,
            });
            changes.extend(running(ti, attempt, tx.now()));
            // A second request of the batch for the same attempt sees the first one's effect.
            attempt.state = AttemptState::Running;
            attempt.start_id = Some(request.start_id.clone());
        }
        answers.push(answer);
    }
    if !is_admitted && !starts.is_empty() {
        return Err(gate::shut("start").into());
    }
    let started: BTreeSet<Token> = starts.iter().map(|start| start.token).collect();
    let lines = changes.iter().map(|c| log::ti_state(&c.to, c.from, "worker")).collect();
    try_join!(
        biased;
        attempt::start(&tx, &starts),
        task_instance::change(&tx, &changes),
        event::append(&tx, lines),
    )?;
    let started = attempts.values().filter(|attempt| started.contains(&attempt.token));
    ramp::succeeded(cx, &tx, started).await?;
    tx.commit().await?;
    Ok(answers)
}

fn decide(
    cx: &Cx,
    attempt: &Attempt,
    ti: &Ti,
    (job_id, request): (JobId, &StartRequest),
) -> Answer {
    let is_current = attempt.state != AttemptState::Ended && ti.token == Some(attempt.token);
    if !is_current && !cx.settings.guards.on(Guard::StartToken) {
        return Answer::Accepted;
    }
    if attempt.state == AttemptState::Ended {
        let why = match attempt.outcome {
            Some(Outcome::Cancelled | Outcome::Cleared) => Refused::Cancelled,
            _ => Refused::Superseded,
        };
        return Answer::Refused(why, "the attempt has ended".into());
    }
    if ti.token != Some(attempt.token) {
        return Answer::Refused(Refused::Superseded, "a newer attempt exists".into());
    }
    if attempt.job_id != Some(job_id) {
        return Answer::Refused(Refused::RunningElsewhere, "another worker has it".into());
    }
    if attempt.state == AttemptState::Running {
        // Without a start id the start was taken back: proved not to have happened.
        let same = attempt.start_id.as_ref().is_none_or(|id| *id == request.start_id);
        return if same {
            Answer::Accepted
        } else {
            Answer::Refused(Refused::RunningElsewhere, "it was started already".into())
        };
    }
    match attempt_next(attempt.state, AttemptEvent::Start) {
        Ok(_) => Answer::Accepted,
        Err(_) => Answer::Refused(Refused::NotRunning, format!("it is {}", attempt.state)),
    }
}

fn running(ti: &Ti, attempt: &Attempt, now: fencepost_core::time::Timestamp) -> Option<TiChange> {
    if attempt.state != AttemptState::Claimed {
        return None;
    }
    let record = TiRecord { state: ti.state, token: ti.token };
    let to = step(&record, TiEvent::Start, Some(attempt.token)).ok()?;
    let mut change = TiChange::of(ti);
    change.to.state = to;
    change.to.started_at = Some(now);
    change.to.ended_at = None;
    change.to.reason = None;
    Some(change)
}
