//! Callbacks: from what happened to whoever wants to hear of it.
//!
//! ```text
//!  a change of state ──► line of the log + occasion    one transaction, whoever makes it
//!                              │ Fanout: read, render
//!                              ▼
//!                        callback rows                 the transaction that takes the occasion
//!                              │ Deliver: beside the pass, few for each receiver
//!                              ▼
//!                        delivered | again | dead      kept, listed, retried by a person
//! ```
//!
//! The occasion is as cheap as a line of the log and names no template, so that no mistake in a callback
//! can stop the change that it is about (I22); a callback that cannot be rendered is dead from the
//! start, with the reason. A crash between any two of these leaves rows that the next pass finds, and
//! each row is left by one transaction (I7): only the delivery itself may be repeated, under the same id.
//!
//! A deadline is a row too: the instant stands in its run from the commit that makes the run to the one
//! that takes it, as an occasion, or ends the run (I15).

mod deliver;
mod fanout;

pub use deliver::{Courier, Delivery, TAKEN};
pub(crate) use fanout::UNRENDERED;

use crate::error::EngineError;
use crate::log;
use crate::{Cx, Pass, Report, Share};
use deliver::Deliveries;
use fencepost_core::callback::Patience;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::query::event;
use fencepost_store::query::{callback, occasion, run};
use std::pin::Pin;
use std::sync::Arc;

/// Alerts, and occasions, of one transaction.
const PAGE: u32 = 200;
/// When occasions that were left are looked at again.
const LEFT: Span = Span::from_secs(60);

/// What the pass is told by its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    pub patience: Patience,
    /// Where people see the installation; what `run_url` begins with.
    pub url: String,
}

/// The pass. What it has in memory are deliveries under way: they are made again by whoever finds their
/// rows due.
pub struct CallbackPass {
    told: Told,
    deliveries: Deliveries,
    /// Up to which occasion those that are there were left, and when they are looked at again.
    left: Option<(i64, Timestamp)>,
}

impl CallbackPass {
    /// A pass that delivers by `courier`.
    pub fn new(courier: Arc<dyn Courier>, told: Told) -> Self {
        Self { told, deliveries: Deliveries::new(courier), left: None }
    }

    /// Whether deliveries are under way.
    pub fn is_delivering(&self) -> bool {
        self.deliveries.is_under_way()
    }

    async fn turn(&mut self, cx: &Cx) -> Result<Report, EngineError> {
        let mut report = Report::default();
        report.moved += self.deliveries.apply(cx, &self.told.patience).await?;
        let Seen { now, next_alert, has_occasions, next_due } = look(cx, self.after()).await?;
        let look_again = self.left.is_some_and(|(_, again_at)| again_at <= now);
        if look_again {
            self.left = None;
        }
        let mut fresh = has_occasions || look_again;
        if next_alert.is_some_and(|at| at <= now) {
            let taken = alerts(cx).await?;
            report.moved += taken;
            fresh |= taken > 0;
        }
        if fresh {
            report.moved += self.fan_out(cx, now, &mut report).await?;
        }
        if fresh || next_due.is_some_and(|at| at <= now) {
            self.deliveries.begin(cx, &self.told.patience, &mut report).await?;
        }
        // What is under way, or waits for its turn behind it, is due all the time.
        let soonest = now.plus(self.deliveries.pause());
        let again_at = self.left.map(|(_, at)| at);
        let next = [next_due.map(|at| at.max(soonest)), next_alert, again_at];
        let next = next.into_iter().flatten().min();
        report.merge(Report { next_due: next, ..Report::default() });
        Ok(report)
    }

    /// Behind which occasion to look.
    fn after(&self) -> i64 {
        self.left.map_or(0, |(id, _)| id)
    }

    async fn fan_out(
        &mut self,
        cx: &Cx,
        now: Timestamp,
        report: &mut Report,
    ) -> Result<usize, EngineError> {
        let (mut moved, share) = (0, Share::of(cx));
        loop {
            let page = fanout::page(cx, &self.told.url, (self.after(), PAGE), report).await?;
            moved += page.taken;
            if let Some(id) = page.left_to {
                let again_at = self.left.map_or(now.plus(LEFT), |(_, at)| at);
                self.left = Some((id, again_at));
            }
            let is_last = page.taken == 0 && page.left_to.is_none();
            if is_last || share.is_over(cx) {
                return Ok(moved);
            }
        }
    }
}

/// What there is to do.
struct Seen {
    now: Timestamp,
    next_alert: Option<Timestamp>,
    has_occasions: bool,
    next_due: Option<Timestamp>,
}

async fn look(cx: &Cx, after: i64) -> Result<Seen, EngineError> {
    let tx = cx.store.read("look_for_callbacks").await?;
    Ok(Seen {
        now: tx.now(),
        next_alert: run::next_alert(&tx).await?,
        has_occasions: occasion::any(&tx, after).await?,
        next_due: callback::next_due(&tx).await?,
    })
}

impl std::fmt::Debug for CallbackPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallbackPass({:?})", self.told)
    }
}

impl Pass for CallbackPass {
    fn name(&self) -> &'static str {
        "callbacks"
    }

    fn rests(&self) -> bool {
        !self.is_delivering()
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(self.turn(cx))
    }
}

/// Takes alerts that are due: with the line of the log, each is an occasion. How many.
async fn alerts(cx: &Cx) -> Result<usize, EngineError> {
    let tx = cx.store.begin("alerts").await?;
    let late = run::alerts(&tx, PAGE).await?;
    let line = |run: &run::Run| {
        let why = "it has not finished by its deadline";
        log::run(run, "deadline_passed", run.state.as_str(), log::SCHEDULER, why)
    };
    event::append(&tx, late.iter().map(line).collect()).await?;
    tx.commit().await?;
    Ok(late.len())
}
