//! The end of attempts, as their worker reports it or as evidence shows it.
//!
//! Accepted only with the current token and from the owner; a refused report has no side effect
//! but its line in the log, and its own answer (I3). The same report again is recognised by its
//! digest before currency is looked at.

mod currency;
mod deferral;
mod end;
mod heads;
mod outlets;

pub(crate) use end::{follow, unstarted};
pub(crate) use heads::mark_heads;

use super::ramp::{self, RECOVERS};
use super::{Answer, Refused};
use crate::Cx;
use crate::assets::Emissions;
use crate::catalog::Version;
use crate::contention;
use crate::error::EngineError;
use crate::liveness::gate;
use crate::liveness::incidents::Deaths;
use crate::log;
use currency::{Currency, current};
use deferral::Deferrals;
use end::{ended, evidence, mark_event, task_of_unknown_version};
use fencepost_core::dag::{OnDisconnect, Task};
use fencepost_core::id::{JobId, Token};
use fencepost_core::lifecycle::{AttemptEvent, Rejected, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::{AttemptState, CountedAs, Outcome, TiState};
use fencepost_core::time::Timestamp;
use fencepost_core::verdict::{Asked, Budgets, Ending, Stop, Verdict, judge};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, AttemptEnd, LostOpen};
use fencepost_store::query::checkpoint;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::installation;
use fencepost_store::query::job;
use fencepost_store::query::pool;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};
use fencepost_store::query::xcom::{self, Produced};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::try_join;

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
    /// With `Ending::Gone`: `exit_status`, `successor`, `boot_id`, `self_fence`, `person`; `drain`: its worker ended it.
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
    contention::again(|| report_once(cx, job_id, &reports, None, false)).await
}

/// The same of claims that their worker hands back as it leaves: nothing has failed, and no ramp is slower
/// for it.
pub(super) async fn hand_back(
    cx: &Cx,
    job_id: JobId,
    reports: Vec<EndReport>,
) -> Result<Vec<Answer>, EngineError> {
    contention::again(|| report_once(cx, job_id, &reports, None, true)).await
}

/// The same about attempts of whose end somebody else knows, who is named in the evidence (a JSON
/// object; it gets its instant here).
pub(super) async fn report_on(
    cx: &Cx,
    job_id: JobId,
    reports: Vec<EndReport>,
    evidence: &Value,
) -> Result<Vec<Answer>, EngineError> {
    contention::again(|| report_once(cx, job_id, &reports, Some(evidence), false)).await
}

async fn report_once(
    cx: &Cx,
    job_id: JobId,
    reports: &[EndReport],
    evidence: Option<&Value>,
    hands_back: bool,
) -> Result<Vec<Answer>, EngineError> {
    let tx = cx.store.begin("report").await?;
    let deferrals = Deferrals::begin(cx, &tx, job_id, reports).await?;
    let mut batch = Batch { hands_back, deferrals, ..Batch::load(cx, &tx, reports).await? };
    batch.read_deferrals(&tx, reports).await?;
    if let Some(known) = evidence {
        let mut known = known.clone();
        known["at"] = tx.now().to_string().into();
        batch.evidence = Some(known);
    }
    batch.recognise(&tx, job_id).await?;
    if batch.may_be_forgotten(job_id, reports) && !is_settled(cx, &tx).await? {
        // Its claim or start may be lost with the last commits of another server: it is asked again
        // once the worker's inventory has been heard.
        return Err(gate::shut("report").into());
    }
    let answers: Vec<Answer> =
        reports.iter().map(|report| batch.take(cx, job_id, report)).collect();
    let deaths = std::mem::take(&mut batch.deaths);
    batch.apply(&tx).await?;
    deaths.write(&tx, job_id).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(answers)
}

/// Whether the store's epoch is that of its server, and everybody has come to it.
async fn is_settled(cx: &Cx, tx: &Tx) -> Result<bool, EngineError> {
    Ok(gate::is_open(cx, installation::standing(tx).await?.as_ref()))
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
    batch.recovers = true;
    let answers = reports.iter().map(|report| batch.take(cx, job_id, report)).collect();
    batch.apply(tx).await?;
    Ok(answers)
}

/// The rows that a batch of reports is about, and the changes that follow.
#[derive(Debug, Default)]
struct Batch {
    now: Timestamp,
    /// What is known of the death of all of them.
    evidence: Option<Value>,
    /// Whatever replaces them is recovered work, also where nothing had started.
    recovers: bool,
    /// What did not start was handed back in order: no failure of the infrastructure.
    hands_back: bool,
    /// Pools by whose ramp one of them came that the infrastructure did not start.
    ramps: BTreeSet<String>,
    attempts: BTreeMap<Token, Attempt>,
    tis: BTreeMap<TiKey, Ti>,
    versions: BTreeMap<i64, Arc<Version>>,
    ends: Vec<AttemptEnd>,
    opens: Vec<LostOpen>,
    /// Of these, the ones that may run on without a lease.
    kept: Vec<Token>,
    /// Open lost attempts whose owner was in the reporter's home.
    kin: BTreeSet<Token>,
    changes: Vec<TiChange>,
    outputs: Vec<Produced>,
    marks: Vec<TiKey>,
    checkpoints: Vec<(TiKey, Token, String)>,
    events: Vec<Event>,
    deaths: Deaths,
    deferrals: Deferrals,
    emissions: Emissions,
}

impl Batch {
    async fn load(cx: &Cx, tx: &Tx, reports: &[EndReport]) -> Result<Self, EngineError> {
        let tokens: Vec<Token> = reports.iter().map(|report| report.token).collect();
        let mut batch = Self { now: tx.now(), ..Self::default() };
        let (tis, attempts, runs) = try_join!(
            biased;
            task_instance::of_attempts(tx, &tokens),
            attempt::get(tx, &tokens),
            run::versions_of(tx, &tokens),
        )?;
        batch.tis.extend(tis.into_iter().map(|ti| (ti.key, ti)));
        batch.attempts.extend(attempts.into_iter().map(|found| (found.token, found)));
        for (run_pk, version_pk) in runs {
            match cx.catalog.version(tx, version_pk).await {
                Ok(version) => drop(batch.versions.insert(run_pk, version)),
                // Its end is taken all the same: no input blocks the books (I22).
                Err(error) => drop(error.of_one_version()?),
            }
        }
        Ok(batch)
    }

    /// Whether a report is about an attempt that the store does not know to have started.
    fn may_be_forgotten(&self, job_id: JobId, reports: &[EndReport]) -> bool {
        reports.iter().filter(|report| report.ending != Ending::NeverRan).any(|report| {
            self.attempts.get(&report.token).is_some_and(|attempt| match attempt.state {
                AttemptState::Queued => true,
                AttemptState::Claimed => attempt.job_id == Some(job_id),
                AttemptState::Running
                | AttemptState::Stopping
                | AttemptState::LostOpen
                | AttemptState::Ended => false,
            })
        })
    }

    fn take(&mut self, cx: &Cx, job_id: JobId, report: &EndReport) -> Answer {
        let Some(attempt) = self.attempts.get(&report.token).cloned() else {
            let why = "no such attempt: its run was deleted".to_owned();
            return Answer::Refused(Refused::NotRunning, why);
        };
        let Some(ti) = self.tis.get(&attempt.ti).cloned() else {
            return Answer::Refused(Refused::NotRunning, "its task instance is gone".into());
        };
        let is_kin = self.kin.contains(&attempt.token);
        let guards = cx.settings.guards;
        if attempt.state == AttemptState::Ended {
            // Late, and yet it says that nothing runs any more.
            self.deaths.gone.push(attempt.token);
        }
        match current(&attempt, &ti, (job_id, is_kin), report, guards) {
            Currency::Again => return Answer::Accepted,
            Currency::Afterwards => return self.close(&attempt, report),
            // That nothing is left of one that has ended is no late write.
            Currency::Refused(why, text)
                if attempt.state == AttemptState::Ended
                    && report.evidence.as_deref() == Some("successor") =>
            {
                return Answer::Refused(why, text);
            }
            Currency::Refused(why, text) => {
                return self.refuse(&attempt, &ti, report, (why, text));
            }
            Currency::Current if self.deferrals.refuses(report) => {
                let why = (Refused::Fenced, "its worker's job is over: it defers nothing".into());
                return self.refuse(&attempt, &ti, report, why);
            }
            Currency::Current => {}
        }
        let report = &*self.deferrals.readable(&attempt, report);
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

    /// Looks which open lost attempts were those of an earlier job in the reporter's home: it may say
    /// that they are gone.
    async fn recognise(&mut self, tx: &Tx, job_id: JobId) -> Result<(), EngineError> {
        let foreign = |a: &&Attempt| a.state == AttemptState::LostOpen && a.job_id != Some(job_id);
        let open: Vec<Attempt> = self.attempts.values().filter(foreign).cloned().collect();
        if open.is_empty() {
            return Ok(());
        }
        let Some(reporter) = job::get(tx, job_id).await? else { return Ok(()) };
        for attempt in open {
            let Some(owner) = attempt.job_id else { continue };
            let owner = job::get(tx, owner).await?;
            if owner.is_some_and(|owner| owner.home_id == reporter.home_id) {
                self.kin.insert(attempt.token);
            }
        }
        Ok(())
    }

    /// The instance was settled before its attempt's processes were known to be gone.
    fn close(&mut self, attempt: &Attempt, report: &EndReport) -> Answer {
        let verdict = Verdict {
            outcome: Outcome::Cancelled,
            event: TiEvent::Stopped,
            reason: attempt.reason.clone().unwrap_or_default(),
            counted_as: CountedAs::None,
            delay: None,
            stays_open: false,
        };
        let evidence = evidence(report, attempt, self.now);
        self.ends.push(ended(attempt, report, &verdict, evidence));
        if let Some(own) = self.attempts.get_mut(&attempt.token) {
            own.state = AttemptState::Ended;
            own.report_digest = Some(report.digest.clone());
        }
        Answer::Accepted
    }

    /// `None`: its version cannot be read.
    fn task(&self, ti: &Ti) -> Option<&Task> {
        let version = self.versions.get(&ti.key.run_pk)?;
        version.dag.tasks.get(ti.key.task_index as usize)
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
        let task = self.task(ti);
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
        let event = if verdict.stays_open {
            AttemptEvent::Open
        } else {
            AttemptEvent::End(verdict.outcome)
        };
        // Ended already: only with the guard of the token switched off.
        let is_late = attempt.state == AttemptState::Ended;
        if !is_late {
            attempt_next(attempt.state, event)?;
        }
        let record = TiRecord { state: ti.state, token: ti.token };
        let to = match step(&record, verdict.event, Some(attempt.token).filter(|_| !is_late)) {
            // Its death was confirmed, and a person decides all the same.
            Err(Rejected::Duplicate) if ti.state == TiState::Held => TiState::Held,
            next => next?,
        };
        let mut change = TiChange::of(ti);
        change.to.state = to;
        follow(&mut change.to, report, verdict, now);
        self.recover(attempt, verdict, &mut change.to);
        self.produce((attempt, ti), report, (verdict, to));
        if let Some(checkpoint) = &report.checkpoint {
            self.checkpoints.push((ti.key, attempt.token, checkpoint.clone()));
        }
        if to == TiState::None {
            self.marks.push(ti.key);
        }
        if to == TiState::Deferred {
            self.deferrals.accept(&change.to, attempt.token);
        }
        let mut line = log::ti_state(&change.to, ti.state, &self.actor(attempt));
        let evidence = self.evidence.clone().or_else(|| evidence(report, attempt, now));
        line.evidence.clone_from(&evidence);
        if verdict.outcome == Outcome::Lost {
            line.kind = "attempt_lost";
            if let Some(kind) = report.evidence.clone().filter(|_| !verdict.stays_open) {
                self.deaths.lost.push((attempt.token, attempt.job_id, kind));
            }
        }
        let holds = to == TiState::Held && ti.state != TiState::Held;
        self.events.push(line);
        self.events.extend(holds.then(|| log::held(&change.to, &self.actor(attempt))));
        if verdict.stays_open {
            if self.task(ti).is_some_and(|task| task.on_disconnect == OnDisconnect::Keep) {
                self.kept.push(attempt.token);
            }
            let evidence = evidence.map(|json| json.to_string());
            let reason = verdict.reason.clone();
            self.opens.push(LostOpen {
                token: attempt.token,
                from: attempt.state,
                reason,
                evidence,
            });
        } else if !is_late {
            self.ends.push(ended(attempt, report, verdict, evidence));
        }
        // A second report of the batch about the same attempt sees the first one's effect.
        if let Some(own) = self.attempts.get_mut(&attempt.token) {
            own.state =
                if verdict.stays_open { AttemptState::LostOpen } else { AttemptState::Ended };
            own.outcome = (!verdict.stays_open).then_some(verdict.outcome);
            own.report_digest = (!verdict.stays_open).then(|| report.digest.clone());
        }
        self.tis.insert(ti.key, change.to.clone());
        self.changes.push(change);
        Ok(())
    }

    /// What replaces a loss comes back by the ramp, as does what came by it before and did not start.
    fn recover(&mut self, attempt: &Attempt, verdict: &Verdict, to: &mut Ti) {
        let has_not_started = verdict.outcome == Outcome::NeverRan;
        if has_not_started && !self.hands_back {
            self.ramps.extend(attempt.ramp.clone());
        }
        let again = has_not_started && attempt.ramp.is_some();
        if to.state == TiState::Scheduled
            && (verdict.outcome == Outcome::Lost || self.recovers || again)
        {
            to.next_why = RECOVERS.into();
        }
    }

    /// Who says so: whoever the evidence names, or else the worker.
    fn actor(&self, attempt: &Attempt) -> String {
        let named = self.evidence.as_ref().and_then(|known| known["declared_by"].as_str());
        let worker = attempt.worker.as_ref().map(|name| format!("worker:{name}"));
        named.map(ToOwned::to_owned).or(worker).unwrap_or_else(|| "worker".into())
    }

    fn refuse(
        &mut self,
        attempt: &Attempt,
        ti: &Ti,
        report: &EndReport,
        (why, text): (Refused, String),
    ) -> Answer {
        let mut line = log::ti_state(ti, ti.state, &self.actor(attempt));
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
        let ends = self.ends.iter().map(|end| end.token);
        // Slots follow the processes: most ended by their own deadline.
        let open = self.opens.iter().map(|open| open.token);
        let open = open.filter(|token| !self.kept.contains(token));
        let tokens: Vec<Token> = ends.chain(open).collect();
        let ((), ended, opened, changed, (), ()) = try_join!(
            biased;
            // While the instance still runs under this token: the change below ends that.
            checkpoint::set(tx, &self.checkpoints),
            attempt::end(tx, &self.ends),
            attempt::keep_open(tx, &self.opens),
            task_instance::change(tx, &self.changes),
            pool::free(tx, &tokens),
            event::append(tx, self.events),
        )?;
        if ended.contains(&false) || opened.contains(&false) {
            return Err(conflict("an attempt").into());
        }
        if changed.contains(&false) {
            return Err(conflict("a task instance").into());
        }
        pool::keep(tx, &self.kept).await?;
        xcom::replace(tx, &self.outputs).await?;
        self.deferrals.write(tx).await?;
        self.emissions.write(tx).await?;
        ramp::failed(tx, &self.ramps).await?;
        mark_heads(tx, &self.marks).await
    }
}
