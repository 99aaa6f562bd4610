//! Signs of life of workers: one transaction for many of them.

use crate::Cx;
use crate::error::EngineError;
use crate::liveness;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Span;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::checkpoint;
use fencepost_store::query::lease::{self, Renewed};
use std::collections::{BTreeMap, BTreeSet};

/// One worker's beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub job_id: JobId,
    /// Increasing: a delayed beat renews nothing.
    pub seq: i64,
    /// The age of its main loop's last turn.
    pub loop_age: Span,
    /// What it holds.
    pub inventory: Vec<Token>,
    /// Checkpoints that came with it.
    pub checkpoints: Vec<(Token, String)>,
}

/// What a beat is answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beaten {
    /// Its job is over: it must end what it has, report that, and register anew.
    pub is_over: bool,
    /// Of the inventory: what is not, or no longer, its own.
    pub disowned: Vec<Token>,
}

/// Takes beats: renews the leases in the order of their jobs, keeps the checkpoints, and looks the
/// inventories up at once; an answer for each, in their order.
pub async fn take(cx: &Cx, beats: &[Beat]) -> Result<Vec<Beaten>, EngineError> {
    let tx = cx.store.begin("renew").await?;
    // In one order everywhere: two servers that renew the same rows never wait for each other.
    let own =
        |beat: &Beat| liveness::Beat { job: beat.job_id, seq: beat.seq, loop_age: beat.loop_age };
    let mut renewals = liveness::renewals(cx, &beats.iter().map(own).collect::<Vec<_>>());
    let renewed = lease::renew(&tx, &mut renewals).await?;
    let is_over = |renewed: &Renewed| matches!(renewed, Renewed::Over(_) | Renewed::Unknown);
    let over: BTreeSet<JobId> =
        renewed.iter().filter(|(_, renewed)| is_over(renewed)).map(|(job, _)| *job).collect();
    let named = beats.iter().flat_map(|beat| {
        beat.inventory.iter().copied().chain(beat.checkpoints.iter().map(|(token, _)| *token))
    });
    let tokens: BTreeSet<Token> = named.collect();
    let tokens: Vec<Token> = tokens.into_iter().collect();
    let known: BTreeMap<Token, Attempt> =
        attempt::look(&tx, &tokens).await?.into_iter().map(|a| (a.token, a)).collect();
    let owned = |token: &Token, job: JobId| known.get(token).filter(|a| a.job_id == Some(job));
    let mut kept = Vec::new();
    let mut answers = Vec::new();
    for beat in beats {
        let is_over = over.contains(&beat.job_id);
        for (token, text) in beat.checkpoints.iter().filter(|_| !is_over) {
            kept.extend(owned(token, beat.job_id).map(|own| (own.ti, *token, text.clone())));
        }
        let is_own = |token: &Token| {
            owned(token, beat.job_id).is_some_and(|own| own.state != AttemptState::Ended)
        };
        let disowned = beat.inventory.iter().filter(|token| !is_own(token)).copied().collect();
        answers.push(Beaten { is_over, disowned });
    }
    kept.sort_unstable();
    checkpoint::set(&tx, &kept).await?;
    tx.commit().await?;
    Ok(answers)
}
