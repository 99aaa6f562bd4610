//! A worker takes queued attempts: one statement per queue, never one attempt for two.

use super::owner;
use super::ramp::{self, Waiting};
use super::workers::takes;
use crate::Cx;
use crate::assets;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts::{AttemptFacts, Facts, Outputs, Reader, kept_for, outputs_for};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Claimer};
use fencepost_store::query::checkpoint;
use fencepost_store::query::job;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, TiKey, deferral};
use fencepost_store::query::vault::Sealed;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::try_join;

/// What a worker gets: its claims, and the orders to stop.
#[derive(Debug, Default)]
pub struct Work {
    pub claimed: Vec<(Attempt, Result<Facts, String>)>,
    pub stopping: Vec<Attempt>,
    /// When a ramp lets recovered work go that waits in these queues.
    pub next_due: Option<Timestamp>,
}

/// What a worker can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wants<'a> {
    /// The number of its call.
    pub call: i64,
    /// Tokens in its hands.
    pub held: &'a [Token],
    pub queues: &'a [String],
    pub free_slots: u32,
}

/// When a worker that found nothing to draw from a ramp looks at it again.
const AGAIN: Span = Span::from_secs(1);
/// Open attempts of one job that are looked through for lost deliveries.
const OPEN: u32 = 1_000;

/// Claims up to `free_slots` attempts for a live job, and reads its stop orders. A claim of its
/// own that it does not hold was lost on the way: it is delivered again.
pub async fn claim(cx: &Cx, job_id: JobId, wants: &Wants<'_>) -> Result<Work, EngineError> {
    // Reading first costs no sync of the disk when there is nothing.
    let look = cx.store.read("look_for_work").await?;
    let (open, is_waiting, ramps) = try_join!(
        biased;
        async { Ok::<_, EngineError>(attempt::open_of(&look, job_id, 0, OPEN).await?) },
        is_waiting(&look, wants),
        recovered(&look, wants),
    )?;
    let now = look.now();
    drop(look);
    let lost = |a: &&Attempt| a.state == AttemptState::Claimed && !wants.held.contains(&a.token);
    let mut tokens: Vec<Token> = open.iter().filter(lost).map(|a| a.token).collect();
    // What is delivered again fills slots too.
    let again = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let wants = &Wants { free_slots: wants.free_slots.saturating_sub(again), ..*wants };
    let stopping = open.into_iter().filter(|a| a.state == AttemptState::Stopping).collect();
    if (is_waiting || !ramps.due.is_empty()) && wants.free_slots > 0 {
        tokens.extend(take(cx, job_id, wants, &ramps.due).await?);
    }
    // Another claim drew what was seen to be due.
    let again = (tokens.is_empty() && !ramps.due.is_empty()).then(|| now.plus(AGAIN));
    let next_due = ramps.next.into_iter().chain(again).min();
    Ok(Work { claimed: load(cx, &tokens).await?, stopping, next_due })
}

async fn recovered(look: &Tx, wants: &Wants<'_>) -> Result<Waiting, EngineError> {
    if wants.free_slots == 0 {
        return Ok(Waiting::default());
    }
    ramp::waiting(look, wants.queues).await
}

async fn take(
    cx: &Cx,
    job_id: JobId,
    wants: &Wants<'_>,
    ramps: &[String],
) -> Result<Vec<Token>, EngineError> {
    let Some(acting) = owner::begin(cx, "claim", job_id).await? else { return Ok(Vec::new()) };
    // What is claimed in this epoch is claimed by those who have come to it.
    if !acting.is_admitted(cx).await? {
        return Ok(Vec::new());
    }
    let tx = acting.tx;
    let found = job::get(&tx, job_id).await?.filter(takes);
    let Some(job) = found else { return Ok(Vec::new()) };
    let by = Claimer { job_id, worker: &job.name, host: &job.host, call: wants.call };
    let mut tokens = Vec::new();
    let left = |tokens: &Vec<Token>| {
        wants.free_slots.saturating_sub(u32::try_from(tokens.len()).unwrap_or(u32::MAX))
    };
    // First what has waited longer: its ramp keeps it from taking everything.
    for pool in ramps {
        let most = left(&tokens);
        tokens.extend(ramp::claim(cx, &tx, by, (pool, wants.queues), most).await?);
    }
    for queue in wants.queues {
        let most = left(&tokens);
        if most > 0 {
            tokens.extend(attempt::claim(&tx, by, queue, most).await?);
        }
    }
    tx.commit().await?;
    Ok(tokens)
}

async fn is_waiting(tx: &Tx, wants: &Wants<'_>) -> Result<bool, EngineError> {
    if wants.free_slots == 0 {
        return Ok(false);
    }
    for queue in wants.queues {
        if attempt::any_queued(tx, queue).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The facts of attempts, for their rendering. One that cannot be put together is an error of its
/// own, and does not hold up the others.
pub async fn load(
    cx: &Cx,
    tokens: &[Token],
) -> Result<Vec<(Attempt, Result<Facts, String>)>, EngineError> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let tx = cx.store.read("load_claims").await?;
    let attempts = attempt::get(&tx, tokens).await?;
    let keys: Vec<TiKey> = attempts.iter().map(|attempt| attempt.ti).collect();
    let mut pks: Vec<i64> = keys.iter().map(|key| key.run_pk).collect();
    pks.sort_unstable();
    pks.dedup();
    // Before a first attempt there was nobody who left one.
    let again: Vec<TiKey> =
        attempts.iter().filter(|attempt| attempt.attempt_number > 1).map(|a| a.ti).collect();
    let (tis, runs, checkpoints) = try_join!(
        biased;
        task_instance::get(&tx, &keys),
        run::by_pks(&tx, &pks),
        checkpoint::get(&tx, &again),
    )?;
    let mut told = BTreeMap::new();
    for ti in tis.iter().filter(|ti| again.contains(&ti.key)) {
        if let Some(event) = deferral::event(&tx, ti).await? {
            told.insert(ti.key, event);
        }
    }
    let tis: BTreeMap<TiKey, _> = tis.into_iter().map(|ti| (ti.key, ti)).collect();
    let runs: BTreeMap<i64, _> = runs.into_iter().map(|run| (run.run_pk, run)).collect();
    let mut checkpoints: BTreeMap<TiKey, String> = checkpoints.into_iter().collect();
    let mut versions: BTreeMap<i64, Result<Arc<Version>, String>> = BTreeMap::new();
    for run in runs.values() {
        let read = match cx.catalog.version(&tx, run.version_pk).await {
            Ok(version) => Ok(version),
            Err(error) => Err(error.of_one_version()?),
        };
        versions.insert(run.run_pk, read);
    }
    let mut inputs = inputs(&tx, &versions, &keys).await?;
    let mut asset_events = BTreeMap::new();
    for run in runs.values() {
        asset_events.insert(run.run_pk, assets::triggering(&tx, run).await?);
    }
    let mut out = Vec::new();
    for attempt in attempts {
        let key = attempt.ti;
        let (Some(ti), Some(run)) = (tis.get(&key), runs.get(&key.run_pk)) else { continue };
        let Some(version) = versions.get(&key.run_pk) else { continue };
        let own = AttemptFacts {
            attempt_id: attempt.attempt_id.to_string(),
            token: attempt.token,
            number: attempt.attempt_number,
            prev_outcome: attempt.prev_outcome.clone(),
            checkpoint: checkpoints.remove(&key),
            event: told.remove(&key),
        };
        let own_inputs = inputs.remove(&key).unwrap_or_default();
        let facts = version.clone().map(|version| Facts {
            version,
            run: run.clone(),
            ti: ti.clone(),
            outputs: own_inputs.0,
            kept: own_inputs.1,
            asset_events: asset_events.get(&key.run_pk).cloned().unwrap_or_default(),
            attempt: Some(own),
            telling: None,
        });
        out.push((attempt, facts));
    }
    Ok(out)
}

/// The outputs that instances may speak of, and what is kept for them, of those whose version can be read.
async fn inputs(
    tx: &Tx,
    versions: &BTreeMap<i64, Result<Arc<Version>, String>>,
    keys: &[TiKey],
) -> Result<BTreeMap<TiKey, (Outputs, Vec<Sealed>)>, EngineError> {
    let mut readable = Vec::new();
    for key in keys {
        if let Some(Ok(version)) = versions.get(&key.run_pk) {
            let (run_pk, task_index) = (key.run_pk, key.task_index);
            readable.push((*key, Reader { version, run_pk, task_index }));
        }
    }
    let readers: Vec<Reader<'_>> = readable.iter().map(|(_, reader)| *reader).collect();
    let found = outputs_for(tx, &readers).await?.into_iter();
    let found = found.zip(kept_for(tx, &readers).await?);
    Ok(readable.into_iter().map(|(key, _)| key).zip(found).collect())
}

/// Claims that were never started go back: they end `never_ran`, which costs nothing, and new attempts
/// take their place.
pub async fn release(
    cx: &Cx,
    job_id: JobId,
    tokens: &[Token],
) -> Result<Vec<super::Answer>, EngineError> {
    let found = {
        let tx = cx.store.read("load_releases").await?;
        attempt::get(&tx, tokens).await?
    };
    let claimed =
        |token: &Token| found.iter().any(|a| a.token == *token && a.state == AttemptState::Claimed);
    let reports =
        tokens.iter().filter(|token| claimed(token)).map(|token| super::report::EndReport {
            token: *token,
            ending: fencepost_core::verdict::Ending::NeverRan,
            asked: None,
            outputs: Vec::new(),
            level: None,
            message: Some("handed back by its worker".into()),
            exit_code: None,
            signal: None,
            evidence: None,
            checkpoint: None,
            digest: format!("release:{token}"),
        });
    super::report::hand_back(cx, job_id, reports.collect()).await
}
