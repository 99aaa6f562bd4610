//! A successor takes over what its predecessors in the same home left behind.
//!
//! For each attempt that they had claimed exactly one of these is true, and found out under its
//! lock: its shim lives (it is ours now), it ended (the outcome is there), or neither, and then the
//! proof of absence says `never_ran` (it is started, under the same token) or `gone` (lost). What
//! cannot be told is looked at again, never guessed.

use super::doubt::Doubt;
use super::launch::{blocking, start_all, watch};
use super::{Active, Shared, report};
use crate::attempt::{Absence, Attached, RunningAttempt};
use crate::outcome::{Outcome, OutcomeKind};
use crate::page::Lease;
use fencepost_api::execution::{Answer, Assignment, Found, HandedOver, Report, TakeOver};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was found of one attempt.
pub(super) enum State {
    /// `keeps`: it runs without a lease.
    Running {
        running: Arc<dyn RunningAttempt>,
        keeps: bool,
    },
    Ended(Outcome),
    /// There is no directory: the claim came no further.
    Untouched,
    /// It cannot be told; why.
    Unknown(String),
}

/// What lies in the home, and whether it is in hand as something to be ended.
pub(super) type Names = BTreeMap<String, bool>;

/// Takes what was handed over into hand, and what else lies in the home: it may still run.
pub(super) async fn hold(shared: &Arc<Shared>, handed_over: &[HandedOver]) -> Names {
    for one in handed_over {
        let active = Active { is_started: one.started, ..Active::default() };
        shared.active().insert(one.assignment.token.clone(), active);
    }
    let names = survey(shared).await;
    let hold = |name: &String| {
        let token = token_of(name);
        // An earlier start of an attempt says nothing about the one that followed.
        newest_name(&names, token) == *name && shared.take_disowned(token, name)
    };
    names.iter().map(|name| (name.clone(), hold(name))).collect()
}

pub(super) fn take_over(shared: &Arc<Shared>, handed_over: Vec<HandedOver>, found: Names) {
    let names: BTreeSet<String> = found.keys().cloned().collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    // What is to be ended is not held up by what goes on.
    for one in &handed_over {
        known.insert(newest_name(&names, &one.assignment.token));
    }
    for (name, is_taken) in found.into_iter().filter(|(name, _)| !known.contains(name)) {
        forget(shared, name, is_taken);
    }
    for one in handed_over {
        let newest = newest_name(&names, &one.assignment.token);
        // Beside each other: what cannot be told yet does not hold up the others, nor new work.
        let worker = Arc::clone(shared);
        shared.nursery.add(async move { settle(&worker, one, newest).await });
    }
}

pub(super) async fn survey(shared: &Arc<Shared>) -> BTreeSet<String> {
    loop {
        let inner = Arc::clone(shared);
        match blocking(shared, move || inner.host.survey()).await {
            Ok(names) => return names.into_iter().collect(),
            Err(_) => super::pause(super::AFTER_TROUBLE).await,
        }
    }
}

/// Each start of an attempt has a directory: `TOKEN`, `TOKEN-2`, ...
fn starts(names: &BTreeSet<String>, token: &str) -> BTreeMap<u32, String> {
    let number = |name: &String| match name.strip_prefix(token)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok(),
    };
    names.iter().filter_map(|name| Some((number(name)?, name.clone()))).collect()
}

/// Whose start a directory is of.
fn token_of(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

pub(super) fn newest_name(names: &BTreeSet<String>, token: &str) -> String {
    starts(names, token).pop_last().map_or_else(|| token.to_owned(), |(_, name)| name)
}

fn next_name(name: &str, token: &str) -> String {
    let number = name.strip_prefix(token).and_then(|rest| rest.strip_prefix('-'));
    let number: u32 = number.and_then(|n| n.parse().ok()).unwrap_or(1);
    format!("{token}-{}", number + 1)
}

async fn settle(shared: &Arc<Shared>, one: HandedOver, name: String) {
    let HandedOver { assignment, started, boot_id } = one;
    let new_boot = !boot_id.is_empty() && boot_id != shared.who.boot_id;
    let evidence = if new_boot { "boot_id" } else { "successor" };
    let mut doubt = Doubt::default();
    loop {
        let why = match look(shared, &name, shared.lease()).await {
            State::Running { running, .. } => {
                return adopt(shared, assignment, name, running).await;
            }
            State::Ended(outcome) if outcome.kind == OutcomeKind::NeverRan => {
                return start_again(shared, assignment, name).await;
            }
            State::Ended(outcome) => {
                report::outcome_known(shared, &assignment, name, &outcome, evidence).await;
                return;
            }
            // Its directory would have been made before its start was asked for; or it was put away with
            // its end, which the store has forgotten.
            State::Untouched if started && (new_boot || was_here(shared, &name).await) => {
                if let Some(report) = kept(shared, &name).await {
                    return report::send(shared, name, report).await;
                }
                let outcome = Outcome::bare(&assignment.token, OutcomeKind::Gone);
                report::outcome_known(shared, &assignment, name, &outcome, evidence).await;
                return;
            }
            State::Untouched if !started => {
                return fresh(shared, assignment, name).await;
            }
            State::Untouched => "its directory is gone".to_owned(),
            State::Unknown(why) => why,
        };
        if doubt.is_over(shared, (&assignment.token, &name), &why).await {
            return;
        }
    }
}

/// It ran to its end in this home, and was put away.
pub(super) async fn was_here(shared: &Arc<Shared>, name: &str) -> bool {
    let (inner, name) = (Arc::clone(shared), name.to_owned());
    blocking(shared, move || Ok(inner.host.was_archived(&inner.settings.home, &name)))
        .await
        .unwrap_or(false)
}

/// What was said of its end then, if that was kept.
pub(super) async fn kept(shared: &Arc<Shared>, name: &str) -> Option<Report> {
    let (inner, name) = (Arc::clone(shared), name.to_owned());
    blocking(shared, move || Ok(report::kept(&inner, &name))).await.ok()?
}

pub(super) async fn look(shared: &Arc<Shared>, name: &str, lease: Lease) -> State {
    let (inner, own) = (Arc::clone(shared), name.to_owned());
    let found = blocking(shared, move || {
        if !inner.host.exists(&own) {
            return Ok(State::Untouched);
        }
        let keeps = inner.host.spec(&own).is_some_and(|spec| spec.keeps);
        let lease = if keeps { inner.lease_of(keeps) } else { lease };
        Ok(match inner.host.attach(&own, lease)? {
            Attached::Running(running) => State::Running { running: Arc::from(running), keeps },
            Attached::Ended(outcome) => State::Ended(outcome),
            Attached::Absent(absent) => match absent.prove()? {
                Absence::Proven(outcome) => State::Ended(outcome),
                Absence::Unknown { why } => State::Unknown(why),
            },
        })
    });
    found.await.unwrap_or_else(|error| State::Unknown(report::chain(&error)))
}

async fn adopt(
    shared: &Arc<Shared>,
    assignment: Assignment,
    name: String,
    running: Arc<dyn RunningAttempt>,
) {
    shared.pass("attached");
    let level = running.progress().level.map_or_else(String::new, |l| l.as_str().to_owned());
    // The watch begins whatever the answer: what runs is to be looked after.
    watch(shared, assignment.clone(), name, running);
    answer(shared, &assignment.token, Found::Running { level }).await;
}

/// Proved not to have run: the start is taken back, and asked for again under the same token.
async fn start_again(shared: &Arc<Shared>, assignment: Assignment, name: String) {
    if answer(shared, &assignment.token, Found::NeverRan).await == Answer::Accepted {
        let next = next_name(&name, &assignment.token);
        report::archive_later(shared, name);
        start_all(shared, vec![(next, assignment)]).await;
    } else {
        report::archive_later(shared, name);
        shared.give_back(&assignment.token);
    }
}

/// A claim that came no further than the claim.
async fn fresh(shared: &Arc<Shared>, assignment: Assignment, name: String) {
    answer(shared, &assignment.token, Found::NeverRan).await;
    start_all(shared, vec![(name, assignment)]).await;
}

pub(super) async fn answer(shared: &Arc<Shared>, token: &str, found: Found) -> Answer {
    loop {
        let request = TakeOver {
            job_id: shared.who.job_id.clone(),
            call: shared.calls.next(),
            token: token.to_owned(),
            found: found.clone(),
        };
        match shared.api.take_over(request).await {
            Ok(answer) => return answer,
            Err(_) => super::pause(super::AFTER_TROUBLE).await,
        }
    }
}

/// Asks what runs to end, and waits until it has.
pub(super) async fn end(running: Arc<dyn RunningAttempt>) {
    running.request_stop(crate::outcome::Reason::Superseded, false);
    over(&running).await;
}

/// Ready when what runs has ended, or could not be watched.
async fn over(running: &Arc<dyn RunningAttempt>) {
    if running.exited().await.is_err() {
        super::pause(super::AFTER_TROUBLE).await;
    }
}

/// A directory of an attempt that was not handed over: what runs there is superseded and ended, its
/// deadline lowered and never pushed; what runs without a lease is watched to its end, unless the server
/// says that it is superseded. Until it is gone it is in our hands, and how it ended is said: it may be what
/// the store waits for.
fn forget(shared: &Arc<Shared>, name: String, is_taken: bool) {
    let worker = Arc::clone(shared);
    shared.nursery.add(async move {
        let mut doubt = Doubt::default();
        let outcome = loop {
            match look(&worker, &name, worker.spent_lease()).await {
                State::Running { running, keeps: true } if is_taken => {
                    worker.running(token_of(&name), &name, true, Arc::clone(&running));
                    over(&running).await;
                }
                State::Running { running, .. } => end(running).await,
                State::Ended(outcome) => break Some(outcome),
                State::Untouched => break None,
                // Nobody waits for it here: it takes no place from what is to run.
                State::Unknown(why) => {
                    if doubt.wait(&worker, &name, &why).await && is_taken {
                        worker.give_back(token_of(&name));
                    }
                }
            }
        };
        if is_taken {
            let token = token_of(&name).to_owned();
            let why = "an earlier worker of this home left it; it is gone";
            report::left_over(&worker, (name, &token), outcome.as_ref(), why).await;
        } else {
            report::archive_later(&worker, name);
        }
    });
}
