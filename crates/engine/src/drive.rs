//! The loop that runs passes: the only place of the engine that sleeps.
//!
//! A turn runs every pass, one after the other. It is repeated at once while something moves, else
//! when a hint comes, a timer falls due, or `scan_interval` is over. A pass that fails is logged,
//! counted, and tried again with the next turn: it stops neither the others nor the loop (I28).
//!
//! A turn that only the clock asks for begins with one look at the store: where that finds nothing to do,
//! only the passes that never rest take part, also in the turn after it. Now and then all do, whatever the look
//! says. One look also
//! spares the turn that would only find that all that could move has moved.
//!
//! A role with a lease of its own turns only while that lease lets it act. Once it does not, or a
//! transaction was refused as fenced, the loop ends: what it believed is dropped, and the role
//! registers as a new job.

use crate::error::EngineError;
use crate::liveness::Own;
use crate::{Cx, Pass, Report, contention};
use fencepost_core::liveness::Phase;
use fencepost_core::time::{BootInstant, Span, Timestamp};
use fencepost_store::query::look::{self, Look};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The longest wait after a failed pass.
const AFTER_FAILURE: Span = Span::from_secs(1);
/// How long most passes may rest.
const REST: Span = Span::from_secs(60);
/// Under this a wait is not worth a sleep.
const SHORTEST: Span = Span::from_millis(1);

/// What is known of the loop, for `health`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// When the last whole turn ended without a failure, by the store's clock.
    pub last_turn_at: Option<Timestamp>,
    pub turns: u64,
    /// Of them those without a failure: progress.
    pub good: u64,
    /// The last failure of each pass that has failed since its last success.
    pub failing: BTreeMap<&'static str, String>,
}

/// Shared knowledge of the loop.
pub type SharedHealth = Arc<Mutex<Health>>;

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Stopped,
    /// The lease of its role is over.
    Fenced,
}

/// Runs passes until `stop` becomes true, or the role may not act any more.
pub async fn drive(
    cx: Cx,
    mut passes: Vec<Box<dyn Pass>>,
    health: SharedHealth,
    mut stop: watch::Receiver<bool>,
) -> Ended {
    let mut rest = Rest::default();
    while !*stop.borrow() {
        if !may_act(&cx) {
            return Ended::Fenced;
        }
        let hint = Arc::clone(&cx.wakes.engine);
        let quiet = rest.quiet(&cx, failing(&health)).await;
        let Some(Turned { mut report, goes_on }) = turn(&cx, &mut passes, &health, quiet).await
        else {
            return Ended::Fenced;
        };
        if report.moved > 0 {
            // What moved may be an order to stop: after its commit, a worker that waits should look.
            cx.wakes.workers();
        }
        if report.moved > 0 && !failing(&health) {
            tokio::task::yield_now().await;
            let settled = if goes_on { None } else { has_settled(&cx).await };
            let Some(timers) = settled else { continue };
            report.merge(timers);
        }
        let wait = wait(&cx, &report, failing(&health));
        tokio::select! {
            // A simulated world must not draw a number here.
            biased;
            () = hint.notified() => {}
            _ = stop.changed() => {}
            () = sleep(wait) => rest.is_by_clock = true,
        }
    }
    Ended::Stopped
}

/// Whether the next turn may be one of rest.
#[derive(Debug, Default)]
struct Rest {
    /// Nobody has hinted at anything.
    is_by_clock: bool,
    /// The last turn of all passes.
    all_at: Option<BootInstant>,
    /// The timers of a look that found a quiet store: one scan goes by them, the next one looks again.
    timers: Option<Report>,
}

impl Rest {
    /// What is known if the store is quiet; `None` if all passes are to turn.
    async fn quiet(&mut self, cx: &Cx, is_failing: bool) -> Option<Report> {
        let now = (cx.env.boottime)();
        let is_fresh = self.all_at.is_some_and(|at| now.since(at) < REST);
        let timers = self.timers.take();
        if std::mem::take(&mut self.is_by_clock) && is_fresh && !is_failing {
            let is_due = |at: Timestamp| at <= cx.store.clock().now();
            if timers.as_ref().is_some_and(|timers| !timers.next_due.is_some_and(is_due)) {
                return timers;
            }
            // What fails here fails in the passes too, and is noted there.
            if let Ok((seen, timers)) = look(cx).await
                && !seen.is_busy
                && !seen.is_due
            {
                self.timers = Some(timers.clone());
                return Some(timers);
            }
        }
        self.all_at = Some(now);
        None
    }
}

/// The timers, if nothing else can move now. Not known: `None`.
async fn has_settled(cx: &Cx) -> Option<Report> {
    let (seen, timers) = look(cx).await.ok()?;
    (!seen.is_movable && !seen.is_due).then_some(timers)
}

/// What there is to do, and when timers fall due.
async fn look(cx: &Cx) -> Result<(Look, Report), EngineError> {
    let tx = cx.store.read("look").await?;
    let seen = look::look(&tx).await?;
    Ok((seen, Report { next_due: seen.next_due, ..Report::default() }))
}

fn may_act(cx: &Cx) -> bool {
    let acts = |own: &Arc<Own>| own.phase((cx.env.boottime)()) == Phase::Acting;
    cx.own.as_ref().is_none_or(acts)
}

#[expect(clippy::disallowed_methods, reason = "the one place of the engine that sleeps")]
async fn sleep(wait: Span) {
    tokio::time::sleep(wait.to_std()).await;
}

/// What a turn did.
struct Turned {
    report: Report,
    /// A pass that never rests has moved something: it may have more, which no look shows.
    goes_on: bool,
}

/// Every pass once, of a quiet store only those that never rest; `None` if the role was fenced meanwhile.
async fn turn(
    cx: &Cx,
    passes: &mut [Box<dyn Pass>],
    health: &SharedHealth,
    quiet: Option<Report>,
) -> Option<Turned> {
    let is_quiet = quiet.is_some();
    let (mut whole, mut goes_on) = (quiet.unwrap_or_default(), false);
    for pass in passes.iter_mut().filter(|pass| !(is_quiet && pass.rests())) {
        let (name, began) = (pass.name(), (cx.env.boottime)());
        let done = pass.pass(cx).await;
        let is_good = done.as_ref().is_ok_and(|report| report.troubles.is_empty());
        cx.meters.turned(name, (cx.env.boottime)().since(began), is_good);
        match done {
            // Nothing was changed; the next turn comes at once.
            Err(error) if contention::is_contended(&error) => whole.merge(soon(cx)),
            Ok(report) => {
                let trouble = report.troubles.first().cloned();
                goes_on |= report.moved > 0 && !pass.rests();
                whole.merge(report);
                note(health, name, trouble);
            }
            Err(error) if error.is_fenced() => {
                note(health, name, Some(error.to_string()));
                return None;
            }
            Err(error) => note(health, name, Some(error.to_string())),
        }
    }
    let mut known = health.lock().unwrap_or_else(PoisonError::into_inner);
    known.turns += 1;
    if known.failing.is_empty() {
        known.good += 1;
        known.last_turn_at = Some(cx.store.clock().now());
    }
    if let Some(own) = &cx.own {
        own.turned((cx.env.boottime)());
    }
    Some(Turned { report: whole, goes_on })
}

fn soon(cx: &Cx) -> Report {
    Report { next_due: Some(cx.store.clock().now()), ..Report::default() }
}

fn note(health: &SharedHealth, pass: &'static str, failure: Option<String>) {
    let mut known = health.lock().unwrap_or_else(PoisonError::into_inner);
    match failure {
        Some(why) => {
            known.failing.insert(pass, why);
        }
        None => {
            known.failing.remove(pass);
        }
    }
}

fn failing(health: &SharedHealth) -> bool {
    !health.lock().unwrap_or_else(PoisonError::into_inner).failing.is_empty()
}

fn wait(cx: &Cx, report: &Report, failed: bool) -> Span {
    let now = cx.store.clock().now();
    let timer = report.next_due.map_or(Span::MAX, |at| at.since(now));
    let most = if failed { AFTER_FAILURE } else { cx.settings.scan_interval };
    timer.min(most).max(SHORTEST)
}
