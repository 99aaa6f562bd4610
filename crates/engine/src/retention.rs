//! The pass that forgets: what ended long ago goes, in batches that hold nobody up.
//!
//! A [`Sweep`] goes once through everything that is old, a short transaction at a time; the pass takes a step
//! of one now and then, `fencepost db clean` takes all of one. A sweep remembers where it is, and needs none
//! of it: another one, of this process or of any other, begins anywhere and finds what is left. So a crash
//! between two steps costs nothing, and several schedulers share the work by leaving locked rows alone.
//! What may go at all is decided by [`fencepost_core::retention`].

mod runs;
mod sweep;

pub use sweep::{Found, Kind, Sweep};

use crate::error::EngineError;
use crate::meters::SWEPT;
use crate::{Cx, Pass, Report};
use fencepost_core::retention::{Bounds, Keep};
use fencepost_core::time::{BootInstant, Span};
use std::pin::Pin;

/// Between two steps of a sweep.
const PAUSE: Span = Span::from_millis(200);
/// Between the end of a sweep and the next one.
const REST: Span = Span::from_mins(5);

/// The pass.
#[derive(Debug)]
pub struct Retention {
    keep: Keep,
    sweep: Option<Sweep>,
    due_at: Option<BootInstant>,
}

impl Retention {
    /// A pass that keeps things as long as that.
    pub const fn new(keep: Keep) -> Self {
        Self { keep, sweep: None, due_at: None }
    }
}

impl Pass for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    /// A sweep that was begun goes on while the store is quiet: that is when it is in nobody's way.
    fn rests(&self) -> bool {
        self.sweep.is_none()
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let now = (cx.env.boottime)();
            if self.due_at.is_some_and(|at| now < at) {
                return Ok(Report::default());
            }
            let swept = || {
                let at = cx.store.clock().now().as_micros() / 1_000_000;
                cx.meters.gauge(SWEPT, u64::try_from(at).unwrap_or(0));
            };
            // A sweep that never comes through lags from here on.
            if self.due_at.is_none() {
                swept();
            }
            // Also after a failure: it is not tried again at once.
            self.due_at = Some(now.plus(PAUSE));
            let keep = self.keep;
            let sweep = self.sweep.get_or_insert_with(|| {
                Sweep::new(Bounds::of(&keep, cx.store.clock().now()), Kind::ALL)
            });
            if sweep.step(cx).await? {
                // Nothing that it removes is anybody's next work: it has moved nothing.
                let next_due = Some(cx.store.clock().now().plus(PAUSE));
                return Ok(Report { next_due, ..Report::default() });
            }
            let found = self.sweep.take().map(Sweep::into_found).unwrap_or_default();
            self.due_at = Some(now.plus(REST));
            swept();
            Ok(Report { troubles: found.troubles, ..Report::default() })
        })
    }
}
