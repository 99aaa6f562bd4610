//! Renewals: many in one transaction, and one by one when that fails.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::guard::Guard;
use fencepost_core::id::JobId;
use fencepost_core::time::Span;
use fencepost_store::query::lease::{self, Renewal, Renewed};

/// A beat of a job, as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    pub job: JobId,
    /// Increasing: a delayed or repeated beat renews nothing.
    pub seq: i64,
    /// The age of its main loop's last turn.
    pub loop_age: Span,
}

/// Renews the leases of jobs in one transaction; an answer for each beat, in the order of the jobs.
pub async fn renew(cx: &Cx, beats: &[Beat]) -> Result<Vec<(JobId, Renewed)>, EngineError> {
    match together(cx, beats).await {
        Err(_) if beats.len() > 1 => {
            let mut answers = Vec::with_capacity(beats.len());
            for beat in beats {
                answers.extend(together(cx, std::slice::from_ref(beat)).await?);
            }
            answers.sort_unstable_by_key(|(job, _)| *job);
            Ok(answers)
        }
        whole => whole,
    }
}

async fn together(cx: &Cx, beats: &[Beat]) -> Result<Vec<(JobId, Renewed)>, EngineError> {
    let tx = cx.store.begin("renew_leases").await?;
    let answers = lease::renew(&tx, &mut renewals(cx, beats)).await?;
    tx.commit().await?;
    Ok(answers)
}

/// The beats as the store takes them.
pub(crate) fn renewals(cx: &Cx, beats: &[Beat]) -> Vec<Renewal> {
    let in_order = cx.settings.guards.on(Guard::BeatOrder);
    let renewal = |beat: &Beat| Renewal {
        job: beat.job,
        seq: beat.seq,
        below: if in_order { beat.seq } else { i64::MAX },
        loop_age: beat.loop_age,
    };
    beats.iter().map(renewal).collect()
}
