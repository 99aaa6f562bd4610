//! What became of an attempt that the server shows in our hands, and that our inventory does not name?
//!
//! Each answer is one of those that are given anyway: it runs (`take_over`), it ended (the report once
//! more), it never ran or it is gone (a report). What was answered with `never_ran` never starts from
//! then on, whatever reply still arrives. While its start or its report is on its way there is nothing
//! to add.

use super::doubt::Doubt;
use super::reattach::{self, State};
use super::report::{self, Ended as Sent};
use super::{Active, Shared};
use crate::outcome::OutcomeKind;
use fencepost_api::execution::{Ended, Found, Report};
use std::sync::Arc;

/// What is known without looking at the disk.
enum Known {
    /// It runs, or ran and is being reported.
    Running(String),
    /// Its start or the look at it is on its way.
    UnderWay,
    /// This was accepted once, and the store has forgotten it.
    Reported(Box<Sent>),
    Unknown,
}

/// Answers, beside everything else.
pub(super) fn answer(shared: &Arc<Shared>, tokens: Vec<String>) {
    for token in tokens {
        let worker = Arc::clone(shared);
        shared.nursery.add(async move { one(&worker, token).await });
    }
}

async fn one(shared: &Arc<Shared>, token: String) {
    match known(shared, &token) {
        Known::Running(level) => {
            reattach::answer(shared, &token, Found::Running { level }).await;
        }
        Known::UnderWay => {}
        Known::Reported(sent) => report::send(shared, sent.name, sent.report).await,
        Known::Unknown => look(shared, token).await,
    }
}

/// From here on an unknown token is in hand: it is answered for once, and no assignment of it counts.
fn known(shared: &Shared, token: &str) -> Known {
    let mut active = shared.active();
    if let Some(active) = active.get(token) {
        let level = active.running.as_ref().and_then(|running| running.progress().level);
        // What ran and is reported now was ours too: the store may have forgotten that.
        let is_ours = active.is_started && !active.is_disowned && !active.name.is_empty();
        let level = level.map_or_else(String::new, |level| level.as_str().to_owned());
        return if is_ours { Known::Running(level) } else { Known::UnderWay };
    }
    active.insert(token.to_owned(), Active { name: token.to_owned(), ..Active::default() });
    let sent = shared.reported(token);
    sent.map_or(Known::Unknown, |sent| Known::Reported(Box::new(sent)))
}

/// Nothing of it is in memory: what is on the disk?
async fn look(shared: &Arc<Shared>, token: String) {
    let name = reattach::newest_name(&reattach::survey(shared).await, &token);
    let mut doubt = Doubt::default();
    let ended = loop {
        match reattach::look(shared, &name, shared.spent_lease()).await {
            // Left by a start that nobody asks for any more: it is ended, and looked at again.
            State::Running { running, .. } => reattach::end(running).await,
            State::Ended(outcome) if outcome.kind == OutcomeKind::NeverRan => {
                break Ended::NeverRan;
            }
            State::Ended(_) => break Ended::Gone { evidence: "exit_status".into() },
            State::Untouched if reattach::was_here(shared, &name).await => {
                if let Some(report) = reattach::kept(shared, &name).await {
                    return report::send(shared, name, report).await;
                }
                break Ended::Gone { evidence: "successor".into() };
            }
            State::Untouched => break Ended::NeverRan,
            State::Unknown(why) => {
                if doubt.is_over(shared, (&token, &name), &why).await {
                    return;
                }
            }
        }
    };
    if ended == Ended::NeverRan {
        shared.calls.deny(&token);
    }
    let why = "its worker was asked, and has nothing of it".to_owned();
    report::send(shared, name, report::bare(&token, ended, Some(why))).await;
}

/// A report that was accepted, should the store forget it.
pub(super) fn remember(shared: &Shared, name: String, mut report: Report) {
    const REMEMBERED: usize = 256;
    report.checkpoint = None;
    let mut sent = shared.sent();
    if sent.len() >= REMEMBERED {
        sent.pop_front();
    }
    sent.push_back(Sent { name, report });
}
