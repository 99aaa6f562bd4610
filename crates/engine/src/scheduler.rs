//! The scheduler's pass: slots become runs, runs start, ends move forward, retries come back.

mod assets;
mod backfill;
mod create;
mod forward;
mod overlap;
mod retries;
mod start;

use crate::error::EngineError;
use crate::{Cx, Pass, Report};
use std::pin::Pin;

pub(crate) use create::{default_params, first_look};
pub use forward::MARK_NOW;
pub(crate) use forward::past;
pub use start::fresh_instance;

/// The pass. It remembers nothing between turns.
#[derive(Debug, Default)]
pub struct Scheduler;

impl Pass for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = create::create_runs(cx).await?;
            report.merge(assets::create_runs(cx).await?);
            report.merge(retries::bring_back(cx).await?);
            report.merge(start::start_runs(cx).await?);
            report.merge(backfill::backfills(cx).await?);
            report.merge(forward::forward(cx).await?);
            Ok(report)
        })
    }
}
