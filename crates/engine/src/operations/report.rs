//! The end of attempts, as their worker reports it or as evidence shows it.
//!
//! Accepted only with the current token and from the owner; a refused report has no side effect
//! but its line in the log, and its own answer (I3). The same report again is recognised by its
//! digest before currency is looked at.

use super::{Answer, Refused};
use crate::Cx;
use crate::catalog::Version;
use crate::contention;
use crate::error::EngineError;
use crate::log;
use crate::scheduler::MARK_NOW;
use fencepost_core::dag::{Action, Task};
use fencepost_core::id::{JobId, TaskId, Token};
use fencepost_core::lifecycle::{AttemptEvent, Rejected, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::{AttemptState, CountedAs, Outcome, StopReason, TiState};
use fencepost_core::time::Timestamp;
use fencepost_core::verdict::{Asked, Budgets, Death, Ending, Stop, Verdict, judge};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, AttemptEnd};
use fencepost_store::query::checkpoint;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::pool;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};
use fencepost_store::query::xcom;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is said of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct EndReport {
    pub token: Token,
    pub ending: Ending,
    pub asked: Option<Asked>,
    pub outputs: Vec<(String, Value)>,
    pub level: Option<String>,
    pub message: Option<String>,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    /// With `Ending::Gone`: `exit_status`, `successor`, `boot_id`, `self_fence`, `person`.
    pub evidence: Option<String>,
    /// Its last checkpoint, in hexadecimal.
    pub checkpoint: Option<String>,
    /// Of the report as it was sent.
    pub digest: String,
}

/// Takes reports of a job's attempts; an answer for each, in their order.
pub async fn report(
    cx: &Cx,
    job_id: JobId,
    reports: Vec<EndReport>,
) -> Result<Vec<Answer>, EngineError> {
    contention::again(|| report_once(cx, job_id, &reports)).await
}

async fn report_once(
    cx: &Cx,
    job_id: JobId,
    reports: &[EndReport],
) -> Result<Vec<Answer>, EngineError> {
    let tx = cx.store.begin("report").await?;
    let mut batch = Batch::load(cx, &tx, reports).await?;
    let answers: Vec<Answer> =
        reports.iter().map(|report| batch.take(cx, job_id, report)).collect();
    batch.apply(&tx).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(answers)
}

/// Ends attempts of a job that is over, within a transaction: as reports of its own would, on this
/// evidence.
pub(crate) async fn settle(
    cx: &Cx,
    tx: &Tx,
    job_id: JobId,
    reports: Vec<EndReport>,
    evidence: Value,
) -> Result<Vec<Answer>, EngineError> {
    let mut batch = Batch::load(cx, tx, &reports).await?;
    batch.evidence = Some(evidence);
    let answers = reports.iter().map(|report| batch.take(cx, job_id, report)).collect();
    batch.apply(tx).await?;
    Ok(answers)
}

type Outputs = Vec<(String, Value)>;

/// The rows that a batch of reports is about, and the changes that follow.
#[derive(Debug, Default)]
struct Batch {
    now: Timestamp,
    /// What is known of the death of all of them.
    evidence: Option<Value>,
    attempts: BTreeMap<Token, Attempt>,
    tis: BTreeMap<TiKey, Ti>,
    versions: BTreeMap<i64, Arc<Version>>,
    ends: Vec<AttemptEnd>,
    changes: Vec<TiChange>,
    outputs: Vec<(TiKey, Token, Outputs)>,
    marks: Vec<TiKey>,
    checkpoints: Vec<(TiKey, Token, String)>,
    events: Vec<Event>,
}

impl Batch {
    async fn load(cx: &Cx, tx: &Tx, reports: &[EndReport]) -> Result<Self, EngineError> {
        let tokens: Vec<Token> = reports.iter().map(|report| report.token).collect();
        let mut batch = Self { now: tx.now(), ..Self::default() };
        for ti in task_instance::of_attempts(tx, &tokens).await? {
            batch.tis.insert(ti.key, ti);
        }
        for found in attempt::get(tx, &tokens).await? {
            batch.attempts.insert(found.token, found);
        }
        let mut runs: Vec<i64> = batch.tis.keys().map(|key| key.run_pk).collect();
        runs.dedup();
        for run in run::by_pks(tx, &runs).await? {
            match cx.catalog.version(tx, run.version_pk).await {
                Ok(version) => drop(batch.versions.insert(run.run_pk, version)),
                // Its end is taken all the same: no input blocks the books (I22).
                Err(error) => drop(error.of_one_version()?),
            }
        }
        Ok(batch)
    }

    fn take(&mut self, cx: &Cx, job_id: JobId, report: &EndReport) -> Answer {
        let Some(attempt) = self.attempts.get(&report.token).cloned() else {
            let why = "no such attempt: its run was deleted".to_owned();
            return Answer::Refused(Refused::NotRunning, why);
        };
        let Some(ti) = self.tis.get(&attempt.ti).cloned() else {
            return Answer::Refused(Refused::NotRunning, "its task instance is gone".into());
        };
        match current(&attempt, &ti, job_id, report) {
            Currency::Again => return Answer::Accepted,
            Currency::Refused(why, text) => {
                return self.refuse(&attempt, &ti, report, (why, text));
            }
            Currency::Current => {}
        }
        let verdict = self.judge(cx, &attempt, &ti, report);
        match self.plan(&attempt, &ti, report, &verdict) {
            Ok(()) => Answer::Accepted,
            Err(Rejected::Stale) => {
                self.refuse(&attempt, &ti, report, (Refused::Superseded, String::new()))
            }
            Err(Rejected::Duplicate | Rejected::Illegal) => {
                let text = format!("{} does not follow from {}", verdict.outcome, ti.state);
                self.refuse(&attempt, &ti, report, (Refused::NotRunning, text))
            }
        }
    }

    fn judge(&self, cx: &Cx, attempt: &Attempt, ti: &Ti, report: &EndReport) -> Verdict {
        if attempt.state == AttemptState::Claimed {
            return unstarted(ti, cx.settings.requeue_limit);
        }
        let budgets = Budgets {
            try_number: ti.try_number,
            max_tries: ti.max_tries,
            infra_losses: ti.infra_losses,
            single_deaths: ti.single_deaths,
            requeues: ti.requeues,
            requeue_limit: cx.settings.requeue_limit,
        };
        let task = self
            .versions
            .get(&ti.key.run_pk)
            .and_then(|version| version.dag.tasks.get(ti.key.task_index as usize));
        let stop = attempt.stop_reason.map(|reason| Stop { reason, mark: mark_event(attempt) });
        let random = (cx.env.random)();
        let asked = report.asked.as_ref();
        match (task, task_of_unknown_version()) {
            (Some(task), _) => judge(&report.ending, asked, task, &budgets, stop, random),
            (None, Some(task)) => judge(&report.ending, asked, &task, &budgets, stop, random),
            (None, None) => unstarted(ti, 0),
        }
    }

    /// Writes down what a verdict changes, if the tables allow it.
    fn plan(
        &mut self,
        attempt: &Attempt,
        ti: &Ti,
        report: &EndReport,
        verdict: &Verdict,
    ) -> Result<(), Rejected> {
        let now = self.now;
        attempt_next(attempt.state, AttemptEvent::End(verdict.outcome))?;
        let record = TiRecord { state: ti.state, token: ti.token };
        let to = step(&record, verdict.event, Some(attempt.token))?;
        let mut change = TiChange::of(ti);
        change.to.state = to;
        follow(&mut change.to, report, verdict, now);
        if verdict.event == TiEvent::Succeed || verdict.event == TiEvent::SkipItself {
            self.outputs.push((ti.key, attempt.token, report.outputs.clone()));
        }
        if let Some(checkpoint) = &report.checkpoint {
            self.checkpoints.push((ti.key, attempt.token, checkpoint.clone()));
        }
        if to == TiState::None {
            self.marks.push(ti.key);
        }
        let mut line = log::ti_state(&change.to, ti.state, &actor(attempt));
        let evidence = self.evidence.clone().or_else(|| evidence(report, attempt, now));
        line.evidence.clone_from(&evidence);
        if verdict.outcome == Outcome::Lost {
            line.kind = "attempt_lost";
        }
        self.events.push(line);
        self.ends.push(ended(attempt, report, verdict, evidence));
        // A second report of the batch about the same attempt sees the first one's effect.
        if let Some(own) = self.attempts.get_mut(&attempt.token) {
            own.state = AttemptState::Ended;
            own.outcome = Some(verdict.outcome);
            own.report_digest = Some(report.digest.clone());
        }
        self.tis.insert(ti.key, change.to.clone());
        self.changes.push(change);
        Ok(())
    }

    fn refuse(
        &mut self,
        attempt: &Attempt,
        ti: &Ti,
        report: &EndReport,
        (why, text): (Refused, String),
    ) -> Answer {
        let mut line = log::ti_state(ti, ti.state, &actor(attempt));
        line.kind = "write_refused";
        line.token = Some(attempt.token);
        line.to = None;
        line.reason = Some(why.as_str().into());
        line.evidence = Some(json!({
            "tried": format!("{:?}", report.ending),
            "exit_code": report.exit_code,
            "outputs": report.outputs.len(),
            "current_token": ti.token.map(|token| token.as_i64().to_string()),
        }));
        self.events.push(line);
        Answer::Refused(why, text)
    }

    async fn apply(self, tx: &Tx) -> Result<(), EngineError> {
        let conflict = |what: &str| {
            let kind = fencepost_store::StoreErrorKind::Unavailable;
            fencepost_store::StoreError::new(kind, "report", format!("{what} moved meanwhile"))
        };
        // While the instance still runs under this token: the change below ends that.
        checkpoint::set(tx, &self.checkpoints).await?;
        if attempt::end(tx, &self.ends).await?.contains(&false) {
            return Err(conflict("an attempt").into());
        }
        if task_instance::change(tx, &self.changes).await?.contains(&false) {
            return Err(conflict("a task instance").into());
        }
        let tokens: Vec<Token> = self.ends.iter().map(|end| end.token).collect();
        pool::free(tx, &tokens).await?;
        for (key, token, outputs) in &self.outputs {
            let place = (key.task_index, key.map_index);
            xcom::replace(tx, key.run_pk, *token, place, outputs).await?;
        }
        mark_heads(tx, &self.marks).await?;
        event::append(tx, self.events).await?;
        Ok(())
    }
}

/// Marks the heads of instances that went back to `none`.
pub(crate) async fn mark_heads(tx: &Tx, keys: &[TiKey]) -> Result<(), EngineError> {
    for key in keys {
        let heads = task_instance::heads(tx, key.run_pk, &[key.task_index]).await?;
        let marks: Vec<(TiKey, u32)> = heads.iter().map(|head| (head.key, MARK_NOW)).collect();
        task_instance::set_recheck(tx, &marks).await?;
    }
    Ok(())
}

enum Currency {
    Current,
    Again,
    Refused(Refused, String),
}

fn current(attempt: &Attempt, ti: &Ti, job_id: JobId, report: &EndReport) -> Currency {
    if attempt.state == AttemptState::Ended {
        if attempt.report_digest.as_deref() == Some(report.digest.as_str()) {
            return Currency::Again;
        }
        let why = match attempt.outcome {
            Some(Outcome::Cancelled | Outcome::Cleared) => Refused::Cancelled,
            _ if ti.token != Some(attempt.token) => Refused::Superseded,
            _ => Refused::NotRunning,
        };
        let outcome = attempt.outcome.map_or("ended", Outcome::as_str);
        return Currency::Refused(why, format!("the attempt has ended: {outcome}"));
    }
    if ti.token != Some(attempt.token) {
        return Currency::Refused(Refused::Superseded, "a newer attempt exists".into());
    }
    if attempt.job_id != Some(job_id) {
        return Currency::Refused(Refused::RunningElsewhere, "another worker has it".into());
    }
    let unstarted = matches!(attempt.state, AttemptState::Queued | AttemptState::Claimed);
    if unstarted && report.ending != Ending::NeverRan {
        let text = format!("the attempt is {}: it was never started", attempt.state);
        return Currency::Refused(Refused::NotRunning, text);
    }
    Currency::Current
}

/// A claim that ends without a start costs nothing and is replaced at once, a bounded number of
/// times.
pub(crate) fn unstarted(ti: &Ti, requeue_limit: u32) -> Verdict {
    let event = if ti.requeues >= requeue_limit { TiEvent::GiveUp } else { TiEvent::Requeue };
    Verdict {
        outcome: Outcome::NeverRan,
        event,
        reason: "never_ran".into(),
        counted_as: CountedAs::None,
        delay: None,
    }
}

/// What is assumed of a task whose version cannot be read: the defaults; its tries are in its row.
fn task_of_unknown_version() -> Option<Task> {
    let task_id = TaskId::new("unknown").ok()?;
    Task::with_defaults(task_id, Action::Noop).ok()
}

fn mark_event(attempt: &Attempt) -> Option<TiEvent> {
    match attempt.stop_mark.as_deref() {
        Some("success") => Some(TiEvent::MarkSuccess),
        Some("skipped") => Some(TiEvent::MarkSkipped),
        Some("failed") => Some(TiEvent::MarkFailed),
        _ => None,
    }
}

fn actor(attempt: &Attempt) -> String {
    attempt.worker.as_ref().map_or_else(|| "worker".into(), |name| format!("worker:{name}"))
}

/// What a verdict writes into the task instance besides its state.
pub(crate) fn follow(ti: &mut Ti, report: &EndReport, verdict: &Verdict, now: Timestamp) {
    ti.reason = Some(verdict.reason.clone());
    ti.retry_at = None;
    if verdict.outcome == Outcome::NeverRan {
        ti.requeues += 1;
    } else {
        ti.requeues = 0;
        ti.prev_outcome = prev_outcome(verdict.outcome).into();
    }
    if verdict.counted_as == CountedAs::Infra {
        ti.infra_losses += 1;
        ti.single_deaths += u32::from(report.ending == Ending::Gone(Death::Single));
    }
    if ti.state.is_finished() {
        ti.ended_at = Some(now);
        ti.forward_due = true;
        return;
    }
    match ti.state {
        TiState::UpForRetry => {
            ti.retry_at = Some(now.plus(verdict.delay.unwrap_or_default()));
            ti.try_number += 1;
            ti.next_why = "retry".into();
            ti.ended_at = Some(now);
        }
        TiState::Scheduled => {
            ti.next_why = "replaces".into();
            ti.scheduled_at = Some(now);
        }
        TiState::None => {
            ti.next_why = "cleared".into();
            ti.started_at = None;
            ti.ended_at = None;
        }
        TiState::Queued
        | TiState::Running
        | TiState::Deferred
        | TiState::Restarting
        | TiState::Held
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => {}
    }
}

fn prev_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed | Outcome::Fenced => "failed",
        Outcome::Lost | Outcome::Released => "lost",
        Outcome::Deferred => "deferred",
        Outcome::Success
        | Outcome::Skipped
        | Outcome::Cancelled
        | Outcome::Cleared
        | Outcome::NeverRan => "cleared",
    }
}

fn evidence(report: &EndReport, attempt: &Attempt, now: Timestamp) -> Option<Value> {
    report.evidence.as_ref().map(|kind| {
        json!({
            "kind": kind,
            "at": now.to_string(),
            "job": attempt.job_id.map(|job| job.to_string()),
        })
    })
}

fn ended(
    attempt: &Attempt,
    report: &EndReport,
    verdict: &Verdict,
    evidence: Option<Value>,
) -> AttemptEnd {
    let self_fenced = report.evidence.as_deref() == Some("self_fence")
        && verdict.outcome == Outcome::Lost
        && attempt.stop_reason != Some(StopReason::Cancel);
    AttemptEnd {
        token: attempt.token,
        from: attempt.state,
        outcome: verdict.outcome,
        reason: if self_fenced { "self_fence".into() } else { verdict.reason.clone() },
        message: report.message.clone(),
        exit_code: report.exit_code,
        signal: report.signal,
        counted_as: verdict.counted_as,
        evidence: evidence.map(|json| json.to_string()),
        report_digest: Some(report.digest.clone()),
        containment: report.level.clone(),
    }
}
