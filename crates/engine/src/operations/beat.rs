//! Signs of life of workers: one transaction for many of them.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::checkpoint;
use fencepost_store::query::job;
use std::collections::{BTreeMap, BTreeSet};

/// One worker's beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub job_id: JobId,
    /// Increasing: a delayed beat renews nothing.
    pub seq: i64,
    /// What it holds.
    pub inventory: Vec<Token>,
    /// Checkpoints that came with it.
    pub checkpoints: Vec<(Token, String)>,
}

/// What a beat is answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beaten {
    /// Of the inventory: what is not, or no longer, its own.
    pub disowned: Vec<Token>,
}

/// Takes beats: renews the leases in the order of their jobs, keeps the checkpoints, and looks the
/// inventories up at once; an answer for each, in their order.
pub async fn take(cx: &Cx, beats: &[Beat]) -> Result<Vec<Beaten>, EngineError> {
    let tx = cx.store.begin("renew").await?;
    // In one order everywhere: two servers that renew the same rows never wait for each other.
    let renewals: BTreeSet<(JobId, i64)> =
        beats.iter().map(|beat| (beat.job_id, beat.seq)).collect();
    job::renew(&tx, &renewals.into_iter().collect::<Vec<_>>()).await?;
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
        for (token, text) in &beat.checkpoints {
            kept.extend(owned(token, beat.job_id).map(|own| (own.ti, *token, text.clone())));
        }
        let is_own = |token: &Token| {
            owned(token, beat.job_id).is_some_and(|own| own.state != AttemptState::Ended)
        };
        let disowned = beat.inventory.iter().filter(|token| !is_own(token)).copied().collect();
        answers.push(Beaten { disowned });
    }
    kept.sort_unstable();
    checkpoint::set(&tx, &kept).await?;
    tx.commit().await?;
    Ok(answers)
}
