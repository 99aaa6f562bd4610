//! Ends are collected, reported until they are answered, and their directories archived.

use super::Shared;
use super::checkpoint::Seen;
use super::doubt::Doubt;
use super::launch::blocking;
use super::question;
use super::work::state_dir;
use crate::attempt::{Absence, AttemptHost, Finished, FromTask, HostError, RunningAttempt};
use crate::outcome::{Outcome, OutcomeKind, Reason};
use fencepost_api::execution::{Answer, AskedFor, Assignment, Ended as End, Report};
use fencepost_core::dag::OutputType;
use fencepost_core::outputs;
use fencepost_core::time::Span;
use fencepost_core::verdict::EXIT_DEFER;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Reports sent in one call.
const BATCH: usize = 128;
/// Largest result file that is read.
const RESULT_MAX: u64 = 64 << 10;
/// Largest defer file.
const DEFER_MAX: u64 = 64 << 10;

/// An attempt whose end is known.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) report: Report,
}

/// Sends reports until each is answered. The results lie on the disk meanwhile: a worker that dies
/// here leaves them to its successor.
pub(super) async fn run(shared: Arc<Shared>, mut ended: mpsc::Receiver<Ended>) {
    let mut batch = Vec::with_capacity(BATCH);
    while ended.recv_many(&mut batch, BATCH).await > 0 {
        let reports: Vec<Report> = batch.iter().map(|one| one.report.clone()).collect();
        shared.pass("reporting");
        loop {
            match shared.api.report(&shared.who.job_id, reports.clone()).await {
                Ok(answers) => {
                    shared.pass("reported");
                    settle(&shared, batch.drain(..).zip(answers));
                    break;
                }
                Err(_) => super::pause(super::AFTER_TROUBLE).await,
            }
        }
    }
}

/// Accepted or refused, the attempt is over for this worker.
fn settle(shared: &Arc<Shared>, answered: impl Iterator<Item = (Ended, Answer)>) {
    for (one, answer) in answered {
        if shared.settings.ships_logs {
            shared.over().push(one.name.clone());
        }
        let token = one.report.token.clone();
        if answer == Answer::Accepted {
            question::remember(shared, one.name.clone(), one.report.clone());
            archive(shared, one.name, Some(one.report));
        } else {
            archive_later(shared, one.name);
        }
        shared.give_back(&token);
    }
}

/// Archives a directory beside the async threads. One that fails is found again at the next start.
pub(super) fn archive_later(shared: &Arc<Shared>, name: String) {
    archive(shared, name, None);
}

/// The same, with the report that was accepted: should the store forget it, a later worker of this home
/// tells it again.
fn archive(shared: &Arc<Shared>, name: String, report: Option<Report>) {
    let worker = Arc::clone(shared);
    shared.nursery.add(async move {
        let inner = Arc::clone(&worker);
        let _ = blocking(&worker, move || {
            inner.pass("archiving");
            // Without it a later worker only knows that there was an end.
            let _ = report.as_ref().map(|report| keep(&inner, &name, report));
            inner.host.archive(&inner.settings.home, &name)
        })
        .await;
    });
}

fn keep(shared: &Shared, name: &str, report: &Report) -> Result<(), HostError> {
    let bytes = serde_json::to_vec(report).unwrap_or_default();
    shared.host.keep_report(name, &bytes)
}

/// What an earlier worker of this home, or this one, said of an attempt that is archived under this name.
pub(super) fn kept(shared: &Shared, name: &str) -> Option<Report> {
    let bytes = shared.host.kept_report(&shared.settings.home, name)?;
    serde_json::from_slice(&bytes).ok()
}

/// The shim has ended: finds out how, and reports it.
pub(super) async fn finish(
    shared: &Arc<Shared>,
    assignment: Assignment,
    name: String,
    running: Arc<dyn RunningAttempt>,
) {
    let mut doubt = Doubt::default();
    loop {
        let handle = Arc::clone(&running);
        let found = blocking(shared, move || match handle.finish()? {
            Finished::Outcome(outcome) => Ok(Absence::Proven(outcome)),
            Finished::Absent(absent) => absent.prove(),
        })
        .await;
        // Not sure that nothing runs any more: looked at again, never guessed.
        let why = match found {
            Ok(Absence::Proven(outcome)) => {
                return outcome_known(shared, &assignment, name, &outcome, "exit_status").await;
            }
            Ok(Absence::Unknown { why }) => why,
            Err(error) => chain(&error),
        };
        if doubt.is_over(shared, (&assignment.token, &name), &why).await {
            return;
        }
    }
}

/// Reports an outcome. `evidence` is what an end without an exit status is known by.
pub(super) async fn outcome_known(
    shared: &Arc<Shared>,
    assignment: &Assignment,
    name: String,
    outcome: &Outcome,
    evidence: &str,
) {
    let declared = assignment.work.iter().flat_map(|work| work.outputs.clone()).collect();
    let of = Of { token: &assignment.token, name: &name, declared };
    let report = of_outcome(shared.host.as_ref(), &of, outcome, evidence);
    shared.host.drop_state(&state_dir(shared, assignment));
    send(shared, name, report).await;
}

/// Reports the end of an attempt that the store did not hand over: it may be open there, and waits for
/// just this. `why`: for people.
pub(super) async fn left_over(
    shared: &Arc<Shared>,
    (name, token): (String, &str),
    outcome: Option<&Outcome>,
    why: &str,
) {
    let host = shared.host.as_ref();
    let spec = host.spec(&name);
    // Ended by a worker of this home, because it is superseded: that is nothing that it did.
    let own = outcome.filter(|outcome| outcome.reason != Some(Reason::Superseded));
    let report = match (own, spec) {
        (Some(outcome), Some(spec)) => {
            let of = Of { token, name: &name, declared: spec.outputs };
            of_outcome(host, &of, outcome, "successor")
        }
        // Without what was declared no success can be told from a failure.
        _ => bare(token, End::Gone { evidence: "successor".into() }, None),
    };
    let message = report.message.clone().or_else(|| Some(why.to_owned()));
    send(shared, name, Report { message, ..report }).await;
}

/// An attempt whose end is collected.
struct Of<'a> {
    token: &'a str,
    /// Of its directory.
    name: &'a str,
    /// Its outputs: name and type.
    declared: Vec<(String, String)>,
}

fn of_outcome(host: &dyn AttemptHost, of: &Of<'_>, outcome: &Outcome, evidence: &str) -> Report {
    let mut report = Report {
        level: outcome.containment.map(|level| level.as_str().to_owned()),
        oom: outcome.oom,
        ..bare(of.token, ended(outcome, evidence), outcome.error.clone())
    };
    if matches!(report.ended, End::Exit { .. }) || outcome.success_before_signal {
        report.asked = asked(host, of.name);
    }
    if matches!(report.ended, End::Exit { code: EXIT_DEFER }) && report.asked.is_none() {
        (report.asked, report.message) = deferral(host, of.name);
    }
    let may_succeed = matches!(report.ended, End::Exit { code: 0 })
        || report.asked.as_ref().is_some_and(|asked| !matches!(asked, AskedFor::Defer { .. }));
    if may_succeed {
        read_outputs(host, of, &mut report);
    }
    if !matches!(report.ended, End::Exit { code: 0 }) {
        report.checkpoint = Seen::default().look(host, of.token, of.name);
    }
    report
}

pub(super) async fn send(shared: &Arc<Shared>, name: String, report: Report) {
    if let Some(active) = shared.active().get_mut(&report.token) {
        active.running = None;
        // It was in our hands, whatever the store remembers of that.
        active.name.clone_from(&name);
    }
    // The receiver lives as long as the worker.
    let _ = shared.ended.send(Ended { name, report }).await;
}

/// Reports that an attempt never ran.
pub(super) async fn never_ran(
    shared: &Arc<Shared>,
    assignment: &Assignment,
    name: &str,
    why: String,
) {
    unusable(shared, assignment, name, End::NeverRan, why).await;
}

/// Reports an end that no process had a part in.
pub(super) async fn unusable(
    shared: &Arc<Shared>,
    assignment: &Assignment,
    name: &str,
    ended: End,
    why: String,
) {
    send(shared, name.to_owned(), bare(&assignment.token, ended, Some(why))).await;
}

/// A report of an end without a result.
pub(super) fn bare(token: &str, ended: End, message: Option<String>) -> Report {
    Report {
        token: token.to_owned(),
        ended,
        asked: None,
        outputs: Vec::new(),
        level: None,
        message,
        oom: false,
        checkpoint: None,
    }
}

fn ended(outcome: &Outcome, evidence: &str) -> End {
    let code = outcome.exit_code.and_then(|code| u8::try_from(code).ok());
    match (outcome.kind, outcome.reason) {
        (OutcomeKind::Exited, _) => End::Exit { code: code.unwrap_or(u8::MAX) },
        (OutcomeKind::Signaled, _) => End::Signal { signal: outcome.signal.unwrap_or(9) },
        (OutcomeKind::CouldNotExec, _) => End::CouldNotExec { code: code.unwrap_or(126) },
        (OutcomeKind::NeverRan, _) => End::NeverRan,
        (OutcomeKind::Gone, _) => End::Gone { evidence: evidence.into() },
        (OutcomeKind::Stopped, Some(Reason::ExecutionTimeout)) => {
            End::ExecutionTimeout { code: graceful(outcome, code) }
        }
        (OutcomeKind::Stopped, Some(Reason::StallTimeout)) => {
            End::StallTimeout { code: graceful(outcome, code) }
        }
        (OutcomeKind::Stopped, Some(why @ (Reason::SelfFence | Reason::Drain))) => {
            End::Gone { evidence: why.as_str().into() }
        }
        (OutcomeKind::Stopped, _) => End::Stopped { code, signal: outcome.signal },
    }
}

fn graceful(outcome: &Outcome, code: Option<u8>) -> Option<u8> {
    code.filter(|_| outcome.graceful || outcome.success_before_signal)
}

/// What the result file asks for; a file that is not one asks for nothing.
fn asked(host: &dyn AttemptHost, name: &str) -> Option<AskedFor> {
    let bytes = host.read_file(name, FromTask::Result, RESULT_MAX)?;
    let result: Value = serde_json::from_slice(&bytes).ok()?;
    match result.get("status")?.as_str()? {
        "success" => Some(AskedFor::Success),
        "skip" => Some(AskedFor::Skip),
        "fail" => Some(AskedFor::Fail),
        "hold" => Some(AskedFor::Hold),
        "retry" => {
            let after = result.get("retry_after").and_then(Value::as_str);
            let after = after.and_then(|text| text.parse::<Span>().ok());
            Some(AskedFor::Retry { after_ms: after.map(Span::as_millis) })
        }
        _ => None,
    }
}

/// What the defer file asks to wait for, or what is wrong with it. Whether the wait makes sense is the
/// store's to say.
fn deferral(host: &dyn AttemptHost, name: &str) -> (Option<AskedFor>, Option<String>) {
    let bytes = host.read_file(name, FromTask::Defer, DEFER_MAX + 1).unwrap_or_default();
    let wrong = |why: &str| (None, Some(format!("exit code {EXIT_DEFER}: {why}")));
    if bytes.is_empty() {
        return wrong("it left nothing in $FENCEPOST_DEFER_FILE, so this is a failure");
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > DEFER_MAX {
        return wrong("its defer file is larger than 64 KiB");
    }
    let read: Value = match serde_json::from_slice(&bytes) {
        Ok(read) => read,
        Err(error) => return wrong(&format!("its defer file is no JSON: {error}")),
    };
    let Some(mut wait) = read.get("wait").and_then(Value::as_object).cloned() else {
        return wrong("its defer file has no object `wait`");
    };
    // What stands beside the wait belongs to it.
    for key in ["timeout", "poke_interval", "soft_fail", "context"] {
        if let Some(value) = read.get(key) {
            wait.insert(key.into(), value.clone());
        }
    }
    // A NUL cannot be stored as text.
    if Value::Object(wait.clone()).to_string().contains("\\u0000") {
        return wrong("its defer file holds a NUL");
    }
    (Some(AskedFor::Defer { wait: Value::Object(wait) }), None)
}

/// Reads the outputs; a success whose outputs are not as declared cannot be taken.
fn read_outputs(host: &dyn AttemptHost, of: &Of<'_>, report: &mut Report) {
    let most = u64::try_from(outputs::OUTPUT_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    let bytes = host.read_file(of.name, FromTask::Outputs, most).unwrap_or_default();
    let typed = |(name, of): &(String, String)| Some((name.clone(), OutputType::parse(of)?));
    let declared: Vec<(String, OutputType)> = of.declared.iter().filter_map(typed).collect();
    match outputs::parse(&bytes, &declared) {
        Ok(found) => report.outputs = found,
        Err(error) if matches!(report.asked, None | Some(AskedFor::Success)) => {
            report.ended = End::OutputsInvalid;
            report.asked = None;
            report.message = Some(error.to_string());
        }
        // Skipped or failed by its own word: its outputs are not taken anyway.
        Err(_) => {}
    }
}

/// An error with its causes.
pub(super) fn chain(error: &HostError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
