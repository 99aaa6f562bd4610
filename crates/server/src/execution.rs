//! The execution API over the engine: strings of the wire to values of the domain and back.
//!
//! Beats of all workers that are under way at the same time share one transaction.

mod convert;
mod credential;
mod gather;
pub mod http;

use crate::render::Renderer;
pub(crate) use convert::problem;
use convert::{
    answer, attempt_token, beat, beaten, end_report, job, log_answer, piece, worker_identity,
};
use credential::{Credentials, Keys};
use fencepost_api::execution::{
    Answer, Assignment, Beat, Beaten, ExecutionApi, Found, HandedOver, LogAnswer, LogPiece, Poll,
    Polled, Register, Registered, Reply, Report, Start, StopOrder, TakeOver,
};
use fencepost_api::problem::Problem;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::{AttemptState, StopReason};
use fencepost_core::time::Span;
use fencepost_engine::Cx;
use fencepost_engine::facts::Facts;
use fencepost_engine::operations::{
    beat as beats, claim, logs, register, report, start, take_over,
};
use fencepost_store::query::attempt::Attempt;
use gather::Gather;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// From one flush of beats to the next: ten transactions a second of each server, whatever the fleet.
const PACE: Duration = Duration::from_millis(100);
/// Between two looks of a long poll that waits for a ramp.
const SHORTEST: Span = Span::from_millis(10);
/// Beats of one transaction at most: as many as 50,000 workers of one server send meanwhile.
const BEATS: usize = 1_000;

/// The execution API of this process. Cheap to clone; clones share what they gather.
#[derive(Debug, Clone)]
pub struct Execution {
    cx: Cx,
    renderer: Renderer,
    credentials: Credentials,
    beats: Arc<Gather<beats::Beat, Result<beats::Beaten, Problem>>>,
    /// Becomes true when the process is to end: long polls are answered at once.
    stop: Option<watch::Receiver<bool>>,
}

impl Execution {
    /// An API over an engine; `renderer` makes what its workers run.
    pub fn new(cx: Cx, renderer: Renderer) -> Self {
        let beats = Arc::new(Gather::new(PACE, BEATS));
        Self { cx, renderer, credentials: Credentials::default(), beats, stop: None }
    }

    /// The same; long polls are answered at once when that becomes true.
    pub fn until(self, stop: watch::Receiver<bool>) -> Self {
        Self { stop: Some(stop), ..self }
    }

    async fn registered(&self, request: Register) -> Result<Registered, Problem> {
        let who = worker_identity(&request)?;
        let handed = register::register(&self.cx, &who).await.map_err(|e| problem(&e))?;
        let keys = self.credentials.keys(&self.cx).await?;
        let handed_over = handed
            .into_iter()
            .map(|one| HandedOver {
                started: !matches!(one.attempt.state, AttemptState::Queued | AttemptState::Claimed),
                boot_id: one.attempt.boot_id.clone().unwrap_or_default(),
                assignment: self.assignment(keys, &one.attempt, one.facts),
            })
            .collect();
        Ok(Registered { handed_over, credential: None })
    }

    async fn polled(&self, request: Poll) -> Result<Polled, Problem> {
        let job = job(&request.job_id)?;
        let hint = std::sync::Arc::clone(&self.cx.wakes.workers);
        let waited = hint.notified();
        tokio::pin!(waited);
        waited.as_mut().enable();
        let mut left = Duration::from_millis(request.wait_ms.min(60_000));
        loop {
            let (found, due) = self.look(job, &request).await?;
            if left.is_zero() || !(found.assignments.is_empty() && found.stops.is_empty()) {
                return Ok(found);
            }
            // A ramp lets something go soon, and nobody hints at that.
            let wait = due.map_or(left, |due| due.min(left));
            left -= wait;
            tokio::select! {
                biased;
                // Hinted at: the next look answers either way.
                waited = tokio::time::timeout(wait, waited.as_mut()) => if waited.is_ok() {
                    left = Duration::ZERO;
                },
                () = ending(self.stop.clone()) => left = Duration::ZERO,
            }
        }
    }

    /// What there is for a worker, and how long it is until a ramp lets more go.
    async fn look(
        &self,
        job: JobId,
        request: &Poll,
    ) -> Result<(Polled, Option<Duration>), Problem> {
        let held: Vec<Token> =
            request.held.iter().map(|t| attempt_token(t)).collect::<Result<_, _>>()?;
        let wants = claim::Wants {
            call: request.call,
            held: &held,
            queues: &request.queues,
            free_slots: request.free_slots,
        };
        let found = claim::claim(&self.cx, job, &wants).await.map_err(|e| problem(&e))?;
        let keys = self.credentials.keys(&self.cx).await?;
        let known = |a: &Attempt| request.known_stops.contains(&a.token.as_i64().to_string());
        let due = found.next_due.map(|due| due.since(self.cx.store.clock().now()));
        let polled = Polled {
            assignments: found
                .claimed
                .into_iter()
                .map(|(a, facts)| self.assignment(keys, &a, facts))
                .collect(),
            stops: found.stopping.iter().filter(|a| !known(a)).map(stop_order).collect(),
        };
        Ok((polled, due.map(|due| due.max(SHORTEST).to_std())))
    }

    async fn beaten(&self, request: Beat) -> Result<Beaten, Problem> {
        let own = beat(request)?;
        let taken = self.beats.ask(own, |batch| renew(&self.cx, batch)).await?;
        Ok(beaten(&taken))
    }

    fn assignment(
        &self,
        keys: &Keys,
        attempt: &Attempt,
        facts: Result<Facts, String>,
    ) -> Assignment {
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
            work: facts
                .and_then(|facts| self.renderer.work(&facts).map_err(|error| error.to_string())),
            credential: Some(keys.for_attempt(attempt.attempt_id, attempt.token)),
        }
    }
}

/// All in one transaction; one by one where that fails, so that one bad row stops nobody else.
async fn renew(cx: &Cx, batch: Vec<beats::Beat>) -> Vec<Result<beats::Beaten, Problem>> {
    match beats::take(cx, &batch).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(error) if batch.len() == 1 => vec![Err(problem(&error))],
        Err(_) => {
            let mut answers = Vec::with_capacity(batch.len());
            for one in batch {
                let taken = beats::take(cx, &[one]).await;
                let taken = taken.map(|mut taken| taken.pop().unwrap_or_default());
                answers.push(taken.map_err(|error| problem(&error)));
            }
            answers
        }
    }
}

/// Ready when the process is to end.
async fn ending(stop: Option<watch::Receiver<bool>>) {
    match stop {
        Some(mut stop) => {
            // An error means that whoever would say so is gone: the process ends too.
            let _ = stop.wait_for(|stop| *stop).await;
        }
        None => std::future::pending().await,
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

impl ExecutionApi for Execution {
    fn register(&self, request: Register) -> Reply<'_, Registered> {
        Box::pin(self.registered(request))
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Answer> {
        Box::pin(async move {
            let TakeOver { job_id, call, token, found } = request;
            let (job, token) = (job(&job_id)?, attempt_token(&token)?);
            let found = match found {
                Found::Running { level } => take_over::Found::Running { level },
                Found::NeverRan => take_over::Found::NeverRan,
            };
            let said = take_over::Said { token, call, found };
            let answered = take_over::take_over(&self.cx, job, &said).await;
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
                let Start { start_id, boot_id, call, .. } = one;
                requests.push(start::StartRequest { token, start_id, boot_id, call });
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

    fn logs(&self, job_id: &str, pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>> {
        let job = job(job_id);
        Box::pin(async move {
            let sent = pieces.into_iter().map(piece).collect::<Result<Vec<_>, _>>()?;
            let taken = logs::take(&self.cx, job?, &sent).await.map_err(|e| problem(&e))?;
            Ok(taken.into_iter().map(log_answer).collect())
        })
    }
}
