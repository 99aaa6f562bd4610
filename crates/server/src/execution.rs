//! The execution API over the engine: strings of the wire to values of the domain and back.

mod convert;

use crate::render;
pub(crate) use convert::problem;
use convert::{answer, attempt_token, end_report, job, worker_identity};
use fencepost_api::execution::{
    Answer, Assignment, Beat, Beaten, ExecutionApi, Found, HandedOver, Poll, Polled, Register,
    Registered, Reply, Report, Start, StopOrder,
};
use fencepost_api::problem::Problem;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::{AttemptState, StopReason};
use fencepost_engine::Cx;
use fencepost_engine::error::EngineError;
use fencepost_engine::facts::Facts;
use fencepost_engine::operations::{claim, register, report, start, take_over};
use fencepost_store::query::attempt::{self, Attempt};
use std::time::Duration;

/// The execution API of this process.
#[derive(Debug, Clone)]
pub struct Execution {
    cx: Cx,
}

impl Execution {
    /// An API over an engine.
    pub fn new(cx: Cx) -> Self {
        Self { cx }
    }

    async fn registered(&self, request: Register) -> Result<Registered, Problem> {
        let who = worker_identity(&request)?;
        let handed = register::register(&self.cx, &who).await.map_err(|e| problem(&e))?;
        let handed_over = handed
            .into_iter()
            .map(|one| HandedOver {
                started: !matches!(one.attempt.state, AttemptState::Queued | AttemptState::Claimed),
                boot_id: one.attempt.boot_id.clone().unwrap_or_default(),
                assignment: assignment(&one.attempt, one.facts),
            })
            .collect();
        Ok(Registered { handed_over })
    }

    async fn polled(&self, request: Poll) -> Result<Polled, Problem> {
        let job = job(&request.job_id)?;
        let hint = std::sync::Arc::clone(&self.cx.wakes.workers);
        let waited = hint.notified();
        tokio::pin!(waited);
        waited.as_mut().enable();
        let first = self.look(job, &request).await?;
        if request.wait_ms == 0 || !(first.assignments.is_empty() && first.stops.is_empty()) {
            return Ok(first);
        }
        let wait = Duration::from_millis(request.wait_ms.min(60_000));
        // Over or hinted at: the second look answers either way.
        let _ = tokio::time::timeout(wait, waited).await;
        self.look(job, &request).await
    }

    async fn look(&self, job: JobId, request: &Poll) -> Result<Polled, Problem> {
        let held: Vec<Token> =
            request.held.iter().map(|t| attempt_token(t)).collect::<Result<_, _>>()?;
        let wants =
            claim::Wants { held: &held, queues: &request.queues, free_slots: request.free_slots };
        let found = claim::claim(&self.cx, job, &wants).await.map_err(|e| problem(&e))?;
        let known = |a: &Attempt| request.known_stops.contains(&a.token.as_i64().to_string());
        Ok(Polled {
            assignments: found
                .claimed
                .into_iter()
                .map(|(a, facts)| assignment(&a, facts))
                .collect(),
            stops: found.stopping.iter().filter(|a| !known(a)).map(stop_order).collect(),
        })
    }

    async fn beaten(&self, request: Beat) -> Result<Beaten, Problem> {
        let job = job(&request.job_id)?;
        let failed = |e: EngineError| problem(&e);
        let mut checkpoints = Vec::new();
        for (token, content) in request.checkpoints {
            checkpoints.push((attempt_token(&token)?, content));
        }
        register::renew(&self.cx, job, request.seq, &checkpoints).await.map_err(failed)?;
        let tokens: Vec<Token> =
            request.inventory.iter().map(|t| attempt_token(t)).collect::<Result<_, _>>()?;
        let tx = self.cx.store.read("inventory").await.map_err(|e| problem(&e.into()))?;
        let found = attempt::get(&tx, &tokens).await.map_err(|e| problem(&e.into()))?;
        let own = |token: &Token| {
            let of = |a: &Attempt| {
                a.token == *token && a.job_id == Some(job) && a.state != AttemptState::Ended
            };
            found.iter().any(of)
        };
        let disowned = tokens.iter().filter(|token| !own(token));
        Ok(Beaten { disowned: disowned.map(|token| token.as_i64().to_string()).collect() })
    }
}

fn stop_order(attempt: &Attempt) -> StopOrder {
    let reason = attempt.stop_reason.unwrap_or(StopReason::Kill);
    StopOrder {
        token: attempt.token.as_i64().to_string(),
        reason: reason.as_str().into(),
        by: attempt.stop_by.clone().unwrap_or_default(),
        kill_now: reason == StopReason::Kill,
    }
}

fn assignment(attempt: &Attempt, facts: Result<Facts, String>) -> Assignment {
    let (run, ti) = facts
        .as_ref()
        .map(|facts| (facts.run.run_id.clone(), facts.ti.task_id.clone()))
        .unwrap_or_default();
    Assignment {
        token: attempt.token.as_i64().to_string(),
        attempt_id: attempt.attempt_id.to_string(),
        dag_id: attempt.dag_id.clone(),
        run_id: run,
        task_id: ti,
        map_index: attempt.ti.map_index,
        try_number: attempt.try_number,
        attempt_number: attempt.attempt_number,
        work: facts.and_then(|facts| render::work(&facts).map_err(|error| error.to_string())),
    }
}

impl ExecutionApi for Execution {
    fn register(&self, request: Register) -> Reply<'_, Registered> {
        Box::pin(self.registered(request))
    }

    fn take_over(&self, job_id: &str, token: &str, found: Found) -> Reply<'_, Answer> {
        let ids = job(job_id).and_then(|job| Ok((job, attempt_token(token)?)));
        Box::pin(async move {
            let (job, token) = ids?;
            let found = match found {
                Found::Running { level } => take_over::Found::Running { level },
                Found::NeverRan => take_over::Found::NeverRan,
            };
            let answered = take_over::take_over(&self.cx, job, token, &found).await;
            answered.map(answer).map_err(|e| problem(&e))
        })
    }

    fn poll(&self, request: Poll) -> Reply<'_, Polled> {
        Box::pin(self.polled(request))
    }

    fn start(&self, job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>> {
        let job = job(job_id);
        Box::pin(async move {
            let job = job?;
            let mut requests = Vec::new();
            for one in starts {
                let token = attempt_token(&one.token)?;
                let (start_id, boot_id) = (one.start_id, one.boot_id);
                requests.push(start::StartRequest { token, start_id, boot_id });
            }
            let answers = start::start(&self.cx, job, &requests).await.map_err(|e| problem(&e))?;
            Ok(answers.into_iter().map(answer).collect())
        })
    }

    fn report(&self, job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let job = job(job_id);
        Box::pin(async move {
            let job = job?;
            let reports = reports.into_iter().map(end_report).collect::<Result<Vec<_>, _>>()?;
            let answers = report::report(&self.cx, job, reports).await.map_err(|e| problem(&e))?;
            Ok(answers.into_iter().map(answer).collect())
        })
    }

    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        Box::pin(self.beaten(request))
    }

    fn release(&self, job_id: &str, tokens: Vec<String>) -> Reply<'_, Vec<Answer>> {
        let job = job(job_id);
        Box::pin(async move {
            let tokens =
                tokens.iter().map(|t| attempt_token(t)).collect::<Result<Vec<Token>, _>>()?;
            let answers = claim::release(&self.cx, job?, &tokens).await.map_err(|e| problem(&e))?;
            Ok(answers.into_iter().map(answer).collect())
        })
    }

    fn leave(&self, job_id: &str) -> Reply<'_, ()> {
        let job = job(job_id);
        Box::pin(async move { register::leave(&self.cx, job?).await.map_err(|e| problem(&e)) })
    }
}
