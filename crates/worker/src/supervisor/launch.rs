//! From claims to shims: prepare the directories, have the store accept the starts, launch.

use super::doubt::Doubt;
use super::reattach::{self, State};
use super::work::{for_task, spec};
use super::{Shared, report, secrets};
use crate::attempt::{HostError, PreparedAttempt, RunningAttempt};
use crate::outcome::OutcomeKind;
use crate::private;
use fencepost_api::execution::{Answer, Assignment, Ended, RefusedReason, Report, Start};
use std::sync::Arc;

/// A claim that is ready to be started.
struct Ready {
    assignment: Assignment,
    name: String,
    how: How,
}

/// What is done once its start was accepted.
enum How {
    Launch(Box<dyn PreparedAttempt>),
    /// Its work cannot be run as it is: it is started to be reported.
    Unusable(Ended, String),
    /// It ended here before, and the store has forgotten start and end: it is told again.
    Again(Box<report::Ended>),
}

/// What came of the preparation.
enum Prepared {
    Ready(Box<dyn PreparedAttempt>),
    /// It ended in this home before; with what was said of that, if it was kept.
    Archived(Option<Report>),
    NoSecret(String),
}

/// EX_TEMPFAIL: the exit status of what may go well the next time.
const TEMPORARY: u8 = 75;

/// Starts fresh claims, beside the loop: an end of the loop does not cut a start in half.
pub(super) fn begin(shared: &Arc<Shared>, assignments: Vec<Assignment>) {
    shared.pass("claimed");
    let named: Vec<(String, Assignment)> = assignments
        .into_iter()
        // One that is in hand already is on its way, and one that was denied comes too late.
        .filter(|assignment| shared.take_new(&assignment.token))
        .map(|assignment| (assignment.token.clone(), assignment))
        .collect();
    if named.is_empty() {
        return;
    }
    let worker = Arc::clone(shared);
    shared.nursery.add(async move { start_all(&worker, named).await });
}

/// Starts claims in directories of the given names. One whose secrets may let it wait holds up no other.
pub(super) async fn start_all(shared: &Arc<Shared>, claims: Vec<(String, Assignment)>) {
    let may_wait = |assignment: &Assignment| assignment.work.as_ref().is_ok_and(secrets::may_wait);
    let (slow, others): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|(_, assignment)| may_wait(assignment));
    for one in slow {
        let worker = Arc::clone(shared);
        shared.nursery.add(async move { start_together(&worker, vec![one]).await });
    }
    start_together(shared, others).await;
}

async fn start_together(shared: &Arc<Shared>, claims: Vec<(String, Assignment)>) {
    let mut ready = Vec::new();
    for (name, assignment) in claims {
        ready.extend(prepare(shared, name, assignment).await);
    }
    if ready.is_empty() {
        return;
    }
    shared.pass("prepared");
    let starts: Vec<Start> = ready
        .iter()
        .map(|one| Start {
            token: one.assignment.token.clone(),
            start_id: shared.start_id(),
            boot_id: shared.who.boot_id.clone(),
            call: 0,
        })
        .collect();
    let answers = accepted(shared, starts).await;
    shared.pass("accepted");
    for (one, answer) in ready.into_iter().zip(answers) {
        match answer {
            Answer::Accepted => {
                shared.started(&one.assignment.token);
                launch(shared, one).await;
            }
            Answer::Refused { reason, detail } => refuse(shared, one, (reason, &detail)).await,
        }
    }
}

/// Asks until the store has answered: the same start ids get the same answers, so a lost reply
/// starts nothing twice, and nothing is started without one.
async fn accepted(shared: &Arc<Shared>, starts: Vec<Start>) -> Vec<Answer> {
    loop {
        let call = shared.calls.next();
        let numbered = starts.iter().map(|start| Start { call, ..start.clone() }).collect();
        match shared.api.start(&shared.who.job_id, numbered).await {
            Ok(answers) => return answers,
            Err(_) => super::pause(super::AFTER_TROUBLE).await,
        }
    }
}

async fn prepare(shared: &Arc<Shared>, name: String, assignment: Assignment) -> Option<Ready> {
    if let Some(ended) = shared.reported(&assignment.token) {
        if ended.report.ended == Ended::NeverRan {
            ended_before(shared, &assignment, &name).await;
            return None;
        }
        return Some(Ready { assignment, name, how: How::Again(Box::new(ended)) });
    }
    let work = match assignment.work.clone() {
        Ok(work) => work,
        Err(why) => {
            let how = How::Unusable(Ended::TemplateError, why);
            return Some(Ready { assignment, name, how });
        }
    };
    let (inner, own, dir_name) = (Arc::clone(shared), assignment.clone(), name.clone());
    let prepared = blocking(shared, move || {
        // An earlier worker of this home may have told its end.
        if inner.host.was_archived(&inner.settings.home, &dir_name) {
            return Ok(Prepared::Archived(report::kept(&inner, &dir_name)));
        }
        let dir = inner.host.dir(&dir_name);
        let place = private::place(&dir, &own.attempt_id);
        let mut private = match secrets::find(&inner, &work, &place) {
            Ok(private) => private,
            Err(why) => return Ok(Prepared::NoSecret(why)),
        };
        let at = (!private.is_empty()).then(|| place.clone());
        let mut spec = spec(&inner, &dir, (&own, &work), at);
        let mut files = for_task(&inner, &own, &work);
        if !private.is_empty() {
            secrets::withdraw(&mut private, &place, &mut spec, &mut files);
            files.private = Some((place, private));
        }
        let prepared = inner.host.prepare(&dir_name, &spec, inner.lease_of(spec.keeps))?;
        inner.host.write_files(&dir_name, &files)?;
        Ok(Prepared::Ready(prepared))
    })
    .await;
    match prepared {
        Ok(Prepared::Archived(Some(report))) if report.ended != Ended::NeverRan => {
            let ended = report::Ended { name: name.clone(), report };
            Some(Ready { assignment, name, how: How::Again(Box::new(ended)) })
        }
        Ok(Prepared::Archived(_)) => {
            ended_before(shared, &assignment, &name).await;
            None
        }
        // Where secrets come from may be away for a while: as temporary as a task says it.
        Ok(Prepared::NoSecret(why)) => {
            let how = How::Unusable(Ended::Exit { code: TEMPORARY }, why);
            Some(Ready { assignment, name, how })
        }
        Ok(Prepared::Ready(prepared)) => {
            Some(Ready { assignment, name, how: How::Launch(prepared) })
        }
        Err(error) => {
            hand_back(shared, assignment, name, &error).await;
            None
        }
    }
}

/// Claimed once more, after the store forgot its end, and how it ended is not known here any more: it is
/// not executed under this token again.
async fn ended_before(shared: &Arc<Shared>, assignment: &Assignment, name: &str) {
    let why = "it ended here before, and the store has forgotten that".to_owned();
    report::never_ran(shared, assignment, name, why).await;
}

/// The claim cannot be started here (a full disk, a missing right): it goes back, unstarted.
async fn hand_back(shared: &Arc<Shared>, assignment: Assignment, name: String, error: &HostError) {
    let why = report::chain(error);
    report::never_ran(shared, &assignment, &name, why).await;
    super::pause(super::AFTER_TROUBLE).await;
}

/// It is not to be started. Where the store may hold it for started all the same (the answer to an
/// earlier request was lost, and a stop came since), it is told that nothing ran.
async fn refuse(shared: &Arc<Shared>, ready: Ready, (reason, why): (RefusedReason, &str)) {
    let Ready { assignment, name, how } = ready;
    if let How::Launch(prepared) = how {
        // What cannot be written now is proved by the next look at the directory.
        let _ = prepared.discard(why);
    }
    if reason == RefusedReason::NotRunning {
        return report::never_ran(shared, &assignment, &name, why.to_owned()).await;
    }
    report::archive_later(shared, name);
    shared.give_back(&assignment.token);
}

async fn launch(shared: &Arc<Shared>, ready: Ready) {
    let Ready { assignment, name, how } = ready;
    let prepared = match how {
        How::Launch(prepared) => prepared,
        How::Unusable(ended, why) => {
            return report::unusable(shared, &assignment, &name, ended, why).await;
        }
        How::Again(ended) => return report::send(shared, ended.name, ended.report).await,
    };
    shared.pass("launching");
    match blocking(shared, move || prepared.launch()).await {
        Ok(running) => {
            shared.pass("launched");
            watch(shared, assignment, name, Arc::from(running));
        }
        Err(error) => prove(shared, assignment, name, report::chain(&error)).await,
    }
}

/// The shim could not be spawned: nothing ran, which is proved as any other absence.
async fn prove(shared: &Arc<Shared>, assignment: Assignment, name: String, why: String) {
    let mut doubt = Doubt::default();
    loop {
        let unknown = match reattach::look(shared, &name, shared.lease()).await {
            State::Running { running, .. } => {
                return watch(shared, assignment, name, running);
            }
            State::Ended(outcome) if outcome.kind != OutcomeKind::NeverRan => {
                let evidence = "exit_status";
                return report::outcome_known(shared, &assignment, name, &outcome, evidence).await;
            }
            State::Ended(_) | State::Untouched => {
                return report::never_ran(shared, &assignment, &name, why).await;
            }
            State::Unknown(unknown) => unknown,
        };
        if doubt.is_over(shared, (&assignment.token, &name), &unknown).await {
            return;
        }
    }
}

/// Watches a running attempt to its end.
pub(super) fn watch(
    shared: &Arc<Shared>,
    assignment: Assignment,
    name: String,
    running: Arc<dyn RunningAttempt>,
) {
    let keeps = assignment.work.as_ref().is_ok_and(|work| work.keeps);
    shared.running(&assignment.token, &name, keeps, Arc::clone(&running));
    let worker = Arc::clone(shared);
    shared.nursery.add(async move {
        while running.exited().await.is_err() {
            super::pause(super::AFTER_TROUBLE).await;
        }
        worker.pass("ended");
        report::finish(&worker, assignment, name, running).await;
    });
}

/// Runs what may block on the disk beside the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    if !shared.host.blocks() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(HostError::Contended("a task of this worker that panicked".into())),
    }
}

impl Shared {
    /// The owner word of this incarnation: part of its job id, for people and checks.
    pub(super) fn owner(&self) -> u64 {
        let digits: String =
            self.who.job_id.chars().filter(char::is_ascii_hexdigit).skip(16).take(16).collect();
        u64::from_str_radix(&digits, 16).unwrap_or(1).max(1)
    }
}
