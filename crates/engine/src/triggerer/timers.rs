//! Timers that have fallen due: in pages, the oldest first, whoever comes by (I15).
//!
//! Nobody owns a timer and none is kept in memory, so tens of thousands of them cost a triggerer
//! nothing, and a crash between two pages leaves the rest for the next pass.

use super::TRIGGERER;
use super::wake::{Waking, settle};
use crate::error::EngineError;
use crate::{Cx, Pass, Report, Share};
use fencepost_core::id::Token;
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::wait::{How, Waiting};
use fencepost_store::Tx;
use fencepost_store::query::task_instance::{self, Ti, deferral};
use fencepost_store::query::trigger::{self, Trigger};
use std::collections::BTreeMap;
use std::pin::Pin;

/// Timers that are fired in one transaction.
const PAGE: u32 = 256;
/// When timers that somebody else has in hand are looked at again.
const AGAIN: Span = Span::from_millis(50);

/// The pass. It remembers nothing between turns.
#[derive(Debug, Default)]
pub struct Timers;

impl Pass for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = Report::default();
            let share = Share::of(cx);
            loop {
                let look = cx.store.read("look_for_timers").await?;
                let next = trigger::next_timer(&look).await?;
                let now = look.now();
                drop(look);
                if next.is_none_or(|at| at > now) || share.is_over(cx) {
                    report.merge(due(next, now));
                    return Ok(report);
                }
                let fired = fire(cx).await?;
                report.moved += fired;
                if fired == 0 {
                    report.merge(due(next, now));
                    return Ok(report);
                }
            }
        })
    }
}

fn due(next: Option<Timestamp>, now: Timestamp) -> Report {
    Report { next_due: next.map(|at| at.max(now.plus(AGAIN))), ..Report::default() }
}

/// Fires a page; how many.
async fn fire(cx: &Cx) -> Result<usize, EngineError> {
    let tx = cx.store.begin("fire_timers").await?;
    let tis = deferral::timer_due(&tx, PAGE).await?;
    let wakings = rung(&tx, tis).await?;
    if wakings.is_empty() {
        return Ok(0);
    }
    let fired = settle(cx, &tx, wakings, TRIGGERER).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(fired)
}

/// What the timers of those instances say, as their locked rows are now.
async fn rung(tx: &Tx, tis: Vec<Ti>) -> Result<Vec<Waking>, EngineError> {
    let tokens: Vec<Token> = tis.iter().filter_map(|ti| ti.token).collect();
    let triggers = trigger::get(tx, &tokens).await?;
    let mut triggers: BTreeMap<Token, Trigger> =
        triggers.into_iter().map(|trigger| (trigger.token, trigger)).collect();
    let waking = |ti: task_instance::Ti| {
        let trigger = triggers.remove(&ti.token?)?;
        let how = match Waiting::from_json(&trigger.wait) {
            Ok(waiting) => waiting.ring(tx.now()),
            Err(error) => How::Unusable(error.to_string()),
        };
        Some(Waking { ti, trigger, how })
    };
    Ok(tis.into_iter().filter_map(waking).collect())
}
