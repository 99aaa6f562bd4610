//! Processes that defer: exit code 100 and a file that says what they wait for.
//!
//! The deferral is read before anything is decided. One that cannot be read leaves an ordinary failure
//! with the reason in words; one of a worker whose job is over is refused, and so lost with it; one that
//! comes late for an attempt that stayed open says that its processes are gone, and no more.

use super::{Batch, EndReport};
use crate::Cx;
use crate::error::EngineError;
use crate::triggerer::{Asleep, begins, trigger};
use fencepost_core::guard::Guard;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;
use fencepost_core::verdict::{Asked, Death, Ending};
use fencepost_core::wait::Waiting;
use fencepost_store::Tx;
use fencepost_store::query::attempt::Attempt;
use fencepost_store::query::task_instance::{Ti, deferral};
use fencepost_store::query::{lease, run, trigger as rows};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a batch of reports defers.
#[derive(Debug, Default)]
pub(super) struct Deferrals {
    /// The reporter's job is over: it defers nothing any more.
    is_over: bool,
    read: BTreeMap<Token, Result<(Waiting, Timestamp), String>>,
    /// Those that were accepted: the instance, its attempt.
    accepted: Vec<(Ti, Token)>,
}

/// What an attempt asks to wait for.
fn wanted(report: &EndReport) -> Option<&serde_json::Value> {
    if let Some(Asked::Defer(wait)) = &report.asked { Some(wait) } else { None }
}

impl Deferrals {
    /// The owner's row is looked at first of all, and stays as it is until the commit.
    pub(super) async fn begin(
        cx: &Cx,
        tx: &Tx,
        job_id: JobId,
        reports: &[EndReport],
    ) -> Result<Self, EngineError> {
        let asks = reports.iter().any(|report| wanted(report).is_some());
        let checks = asks && cx.settings.guards.on(Guard::OwnerAlive);
        let is_over = checks && lease::alive(tx, job_id).await?.is_none();
        Ok(Self { is_over, ..Self::default() })
    }

    /// Whether a report asks for what its job may not any more.
    pub(super) fn refuses(&self, report: &EndReport) -> bool {
        self.is_over && wanted(report).is_some()
    }

    /// The report as it counts.
    pub(super) fn readable<'a>(
        &self,
        attempt: &Attempt,
        report: &'a EndReport,
    ) -> Cow<'a, EndReport> {
        if wanted(report).is_none() {
            return Cow::Borrowed(report);
        }
        if attempt.state == AttemptState::LostOpen {
            let (ending, asked) = (Ending::Gone(Death::Orderly), None);
            return Cow::Owned(EndReport { ending, asked, ..report.clone() });
        }
        match self.read.get(&report.token) {
            Some(Ok(_)) => Cow::Borrowed(report),
            Some(Err(why)) => Cow::Owned(EndReport {
                asked: None,
                message: Some(format!("its defer file cannot be taken: {why}")),
                ..report.clone()
            }),
            None => Cow::Owned(EndReport { asked: None, ..report.clone() }),
        }
    }

    /// An instance sleeps from here on.
    pub(super) fn accept(&mut self, ti: &Ti, token: Token) {
        self.accepted.push((ti.clone(), token));
    }

    /// Writes the triggers.
    pub(super) async fn write(self, tx: &Tx) -> Result<(), EngineError> {
        let mut triggers = Vec::new();
        for (ti, token) in &self.accepted {
            let Some(Ok((waiting, since))) = self.read.get(token) else { continue };
            let of = Asleep { ti, token: *token, since: *since, resumes: true };
            triggers.push(trigger(&of, waiting, tx.now()));
            deferral::defer(tx, ti, *since).await?;
        }
        rows::insert(tx, &triggers).await?;
        Ok(())
    }
}

impl Batch {
    /// Reads the defer files of a batch whose rows are loaded.
    pub(super) async fn read_deferrals(
        &mut self,
        tx: &Tx,
        reports: &[EndReport],
    ) -> Result<(), EngineError> {
        for report in reports {
            let Some(wait) = wanted(report) else { continue };
            let ti = self.attempts.get(&report.token).and_then(|a| self.tis.get(&a.ti)).cloned();
            let Some(ti) = ti else { continue };
            let run = run::by_pks(tx, &[ti.key.run_pk]).await?.pop();
            let version = self.versions.get(&ti.key.run_pk);
            let read = match (run, version) {
                (Some(run), Some(version)) => Waiting::read(wait, &begins(version, &run, tx.now()))
                    .map_err(|error| error.to_string()),
                _ => Err("the version of its run cannot be read".into()),
            };
            let since = deferral::deferred_since(tx, &ti).await?.unwrap_or_else(|| tx.now());
            self.deferrals.read.insert(report.token, read.map(|waiting| (waiting, since)));
        }
        Ok(())
    }
}
