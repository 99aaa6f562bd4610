//! The outbox's pass: effects are carried out after the commit that wrote them, at least once.

use crate::error::EngineError;
use crate::{Cx, Pass, Report};
use fencepost_core::time::Span;
use fencepost_store::query::outbox::{self, Effect};
use std::pin::Pin;
use std::sync::Arc;

const BATCH: u32 = 50;
const FIRST_DELAY: Span = Span::from_secs(5);
/// For so long effects are those of the scheduler that took them; after its death they are due again.
const TAKEN: Span = Span::from_secs(60);
const LONGEST_DELAY: Span = Span::from_hours(1);

/// Carries out one effect. It may be called again for the same effect.
pub type Perform = Arc<dyn Fn(&Effect) -> Result<(), String> + Send + Sync>;

/// The pass.
pub struct Outbox {
    perform: Perform,
}

impl Outbox {
    /// A pass that carries effects out by `perform`.
    pub fn new(perform: Perform) -> Self {
        Self { perform }
    }
}

impl Pass for Outbox {
    fn name(&self) -> &'static str {
        "outbox"
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let look = cx.store.read("look_for_effects").await?;
            let mut due = outbox::due(&look, BATCH).await?;
            let next_due = outbox::next_due(&look).await?;
            drop(look);
            if cx.store.is_shared() && !due.is_empty() {
                // No lock is held while an effect is carried out.
                let tx = cx.store.begin("take_effects").await?;
                due = outbox::take(&tx, BATCH, TAKEN).await?;
                tx.commit().await?;
            }
            let mut report = Report { next_due, ..Report::default() };
            if due.is_empty() {
                return Ok(report);
            }
            let mut done = Vec::new();
            let mut failed = Vec::new();
            for effect in &due {
                match (self.perform)(effect) {
                    Ok(()) => done.push(effect.id),
                    Err(why) => failed.push((effect, why)),
                }
            }
            let tx = cx.store.begin("outbox").await?;
            outbox::done(&tx, &done).await?;
            for (effect, why) in &failed {
                let doublings = u32::try_from(effect.tries.clamp(0, 20)).unwrap_or(20);
                let delay = FIRST_DELAY.times(1 << doublings).min(LONGEST_DELAY);
                outbox::again(&tx, effect.id, delay, why).await?;
                report.troubles.push(format!("{} {}: {why}", effect.kind, effect.id));
            }
            tx.commit().await?;
            report.moved = done.len();
            Ok(report)
        })
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbox")
    }
}
