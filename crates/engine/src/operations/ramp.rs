//! Recovered work comes back by a ramp: what claims may let go of it, and what becomes of its pace.
//!
//! What replaces a lost attempt is marked when it is queued, with its pool, and only a claim that draws
//! from that pool's ramp takes it. Fresh work passes beside it. The row of a ramp is locked after attempts
//! are, in the order of the pools' names; who draws takes only attempts that nobody else has locked.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::id::Token;
use fencepost_core::ramp::{Bounds, Ramp};
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Claimer};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::{pool, ramp};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// How the next attempt of an instance is explained whose last one was lost: it replaces it, by the ramp.
pub(crate) const RECOVERS: &str = "recovers";
/// A ramp is forgotten when nothing has waited for it for so long.
const IDLE: Span = Span::from_secs(10);

/// Where recovered work waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Pools whose ramp lets something go now.
    pub(crate) due: Vec<String>,
    /// When the next one does.
    pub(crate) next: Option<Timestamp>,
}

/// Looks for recovered work of some queues.
pub(crate) async fn waiting(tx: &Tx, queues: &[String]) -> Result<Waiting, EngineError> {
    let (mut found, mut after) = (Waiting::default(), String::new());
    while let Some((pool, free_at)) = ramp::next(tx, &after).await? {
        if waits_in(tx, &pool, queues).await? {
            match free_at.and_then(|at| Ramp::opens_at(at, tx.now())) {
                Some(at) => found.next = found.next.into_iter().chain([at]).min(),
                None => found.due.push(pool.clone()),
            }
        }
        after = pool;
    }
    Ok(found)
}

async fn waits_in(tx: &Tx, pool: &str, queues: &[String]) -> Result<bool, EngineError> {
    for queue in queues {
        if ramp::waiting(tx, (pool, queue), 1).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Claims what the ramp of a pool lets go now, up to `most`.
pub(crate) async fn claim(
    cx: &Cx,
    tx: &Tx,
    by: Claimer<'_>,
    (pool, queues): (&str, &[String]),
    most: u32,
) -> Result<Vec<Token>, EngineError> {
    let (mut ramp, is_fresh) = locked(cx, tx, pool).await?;
    let mut waiting = 0;
    for queue in queues {
        waiting += ramp::waiting(tx, (pool, queue), most.saturating_sub(waiting) + 1).await?;
    }
    let drawn = ramp.draw(waiting.min(most), tx.now());
    let mut tokens = Vec::new();
    for queue in queues {
        let left = drawn.saturating_sub(u32::try_from(tokens.len()).unwrap_or(u32::MAX));
        if left > 0 {
            tokens.extend(attempt::claim_by_ramp(tx, by, (pool, queue), left).await?);
        }
    }
    ramp::set(tx, pool, ramp).await?;
    // Counted, and not written: the log has each claim.
    tx.note(&[Event {
        kind: "ramp_admitted",
        evidence: Some(json!({ "count": tokens.len() })),
        ..Event::default()
    }]);
    if is_fresh && waiting > drawn {
        event::append(tx, vec![line("ramp_delayed", pool, ramp)]).await?;
    }
    Ok(tokens)
}

/// The ramp of a pool, which is in hand until the commit; whether it is a new one.
async fn locked(cx: &Cx, tx: &Tx, pool: &str) -> Result<(Ramp, bool), EngineError> {
    if let Some(known) = ramp::get(tx, pool).await? {
        return Ok((known, false));
    }
    let fresh = Ramp::begin(bounds(cx, tx, pool).await?, tx.now());
    let is_fresh = ramp::make(tx, pool, fresh).await?;
    // Somebody else's, if it was made meanwhile.
    Ok((ramp::get(tx, pool).await?.unwrap_or(fresh), is_fresh))
}

async fn bounds(cx: &Cx, tx: &Tx, pool: &str) -> Result<Bounds, EngineError> {
    let slots = pool::slots(tx, pool).await?.unwrap_or(1);
    Ok(Bounds::of(slots, cx.settings.recovery_initial, cx.settings.recovery_max_rate))
}

/// Attempts have started: their ramps get steeper with that.
pub(crate) async fn succeeded<'a>(
    cx: &Cx,
    tx: &Tx,
    started: impl IntoIterator<Item = &'a Attempt>,
) -> Result<(), EngineError> {
    let mut pools: BTreeMap<&str, u32> = BTreeMap::new();
    for pool in started.into_iter().filter_map(|attempt| attempt.ramp.as_deref()) {
        *pools.entry(pool).or_default() += 1;
    }
    for (pool, starts) in pools {
        let Some(mut ramp) = ramp::get(tx, pool).await? else { continue };
        let (before, bounds) = (ramp.rate, bounds(cx, tx, pool).await?);
        ramp.succeeded(starts, bounds);
        moved(tx, pool, ramp, before).await?;
    }
    Ok(())
}

/// The infrastructure has failed starts by these pools' ramps.
pub(crate) async fn failed(tx: &Tx, pools: &BTreeSet<String>) -> Result<(), EngineError> {
    for pool in pools {
        let Some(mut ramp) = ramp::get(tx, pool).await? else { continue };
        let before = ramp.rate;
        ramp.failed();
        moved(tx, pool, ramp, before).await?;
    }
    Ok(())
}

async fn moved(tx: &Tx, pool: &str, ramp: Ramp, before: u32) -> Result<(), EngineError> {
    ramp::set(tx, pool, ramp).await?;
    if ramp.rate != before {
        event::append(tx, vec![line("ramp_rate", pool, ramp)]).await?;
    }
    Ok(())
}

/// Forgets ramps for which nothing waits any more.
pub(crate) async fn end_idle(tx: &Tx) -> Result<(), EngineError> {
    let ended = ramp::end(tx, tx.now().minus(IDLE)).await?;
    let line = |pool: String| Event {
        kind: "ramp_ended",
        actor: crate::log::REAPER.into(),
        reason: Some(format!("pool `{pool}`: no recovered work waits")),
        evidence: Some(json!({ "pool": pool })),
        ..Event::default()
    };
    event::append(tx, ended.into_iter().map(line).collect()).await?;
    Ok(())
}

fn line(kind: &'static str, pool: &str, ramp: Ramp) -> Event {
    let rate = f64::from(ramp.rate) / 1_000.0;
    Event {
        kind,
        actor: "server".into(),
        reason: Some(format!("pool `{pool}`: recovered work starts at {rate} a second")),
        evidence: Some(json!({ "pool": pool, "rate": rate })),
        ..Event::default()
    }
}
