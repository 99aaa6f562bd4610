//! Signs of life of workers: one transaction for many of them.
//!
//! A beat may carry an inventory. What it names and is not the worker's is disowned; what it speaks of
//! and does not name is asked about ([`inventory::questions`]). Neither changes an attempt: the
//! worker's answer does, by `take_over` or `report`.

use crate::Cx;
use crate::error::EngineError;
use crate::liveness;
use crate::log;
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::inventory::{self, Digest, InHand, Taken};
use fencepost_core::state::AttemptState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::query::attempt::{self, Attempt, Held};
use fencepost_store::query::lease::{self, Renewed};
use fencepost_store::query::{checkpoint, event, task_instance};
use std::collections::{BTreeMap, BTreeSet};

/// One worker's beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub job_id: JobId,
    /// Increasing: a delayed beat renews nothing.
    pub seq: i64,
    /// The age of its main loop's last turn.
    pub loop_age: Span,
    /// The number of this call; 0: a worker that does not number its calls.
    pub call: i64,
    /// What it holds.
    pub inventory: Vec<Token>,
    pub says: Says,
    /// Earlier calls that had no answer when the inventory was taken.
    pub unanswered: Vec<i64>,
    /// Checkpoints that came with it.
    pub checkpoints: Vec<(Token, String)>,
}

/// What an inventory says of what it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Nothing,
    /// It is not there.
    All,
    Digest(Digest),
}

/// What a beat is answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beaten {
    /// Its job is over: it must end what it has, report that, and register anew.
    pub is_over: bool,
    /// Of the inventory: what is not, or no longer, its own.
    pub disowned: Vec<Token>,
    /// What became of these?
    pub questions: Vec<Token>,
    /// The digest is another one: the next beat is to name everything.
    pub wants_inventory: bool,
}

/// What the store shows in the hands of each job.
type Hands = BTreeMap<JobId, BTreeMap<Token, Held>>;

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
    keep_checkpoints(&tx, beats, &over).await?;
    let hands = hands(&tx, beats).await?;
    let now = tx.now();
    tx.commit().await?;
    let none = BTreeMap::new();
    let mut answers = Vec::with_capacity(beats.len());
    for beat in beats {
        let is_over = over.contains(&beat.job_id);
        let answer = answer(cx, beat, hands.get(&beat.job_id).unwrap_or(&none), is_over, now);
        // What cannot be noted now is noted when it is asked again.
        let _ = note_questions(cx, beat, &answer.questions).await;
        answers.push(answer);
    }
    Ok(answers)
}

fn answer(
    cx: &Cx,
    beat: &Beat,
    hand: &BTreeMap<Token, Held>,
    is_over: bool,
    now: Timestamp,
) -> Beaten {
    let is_foreign = |token: &&Token| !hand.contains_key(*token);
    let disowned = beat.inventory.iter().filter(is_foreign).copied().collect();
    let mut beaten = Beaten { is_over, disowned, ..Beaten::default() };
    match beat.says {
        _ if is_over || beat.call == 0 => {}
        Says::Nothing => {}
        Says::All => {
            let named = beat.inventory.iter().copied().collect();
            let taken = Taken { call: beat.call, unanswered: &beat.unanswered };
            let in_hand: Vec<InHand> = hand
                .values()
                .filter(|held| held.state != AttemptState::LostOpen)
                .map(|held| in_hand(cx, held, now))
                .collect();
            beaten.questions = inventory::questions(&taken, &named, &in_hand, cx.settings.guards);
        }
        Says::Digest(digest) => {
            let own = Digest::of(beat.job_id.as_u128(), hand.keys().copied());
            beaten.wants_inventory = own != digest;
        }
    }
    beaten
}

fn in_hand(cx: &Cx, held: &Held, now: Timestamp) -> InHand {
    let is_late = |since: Timestamp| now.since(since) >= cx.settings.start_timeout;
    let is_owed = held.handed_over_at.is_some_and(is_late);
    InHand { token: held.token, call: held.call, is_owed }
}

/// What the store shows in the hands of those whose beats carry an inventory.
async fn hands(tx: &fencepost_store::Tx, beats: &[Beat]) -> Result<Hands, EngineError> {
    let carries = |beat: &&Beat| beat.says != Says::Nothing || !beat.inventory.is_empty();
    let jobs: BTreeSet<JobId> = beats.iter().filter(carries).map(|beat| beat.job_id).collect();
    let jobs: Vec<JobId> = jobs.into_iter().collect();
    let mut hands = Hands::new();
    for held in attempt::held_by(tx, &jobs).await? {
        hands.entry(held.job_id).or_default().insert(held.token, held);
    }
    Ok(hands)
}

/// Checkpoints of attempts that are their worker's.
async fn keep_checkpoints(
    tx: &fencepost_store::Tx,
    beats: &[Beat],
    over: &BTreeSet<JobId>,
) -> Result<(), EngineError> {
    let tokens: BTreeSet<Token> =
        beats.iter().flat_map(|beat| beat.checkpoints.iter().map(|(token, _)| *token)).collect();
    let tokens: Vec<Token> = tokens.into_iter().collect();
    let known: BTreeMap<Token, Attempt> =
        attempt::look(tx, &tokens).await?.into_iter().map(|a| (a.token, a)).collect();
    let mut kept = Vec::new();
    for beat in beats.iter().filter(|beat| !over.contains(&beat.job_id)) {
        for (token, text) in &beat.checkpoints {
            let owned = known.get(token).filter(|a| a.job_id == Some(beat.job_id));
            kept.extend(owned.map(|own| (own.ti, *token, text.clone())));
        }
    }
    kept.sort_unstable();
    checkpoint::set(tx, &kept).await?;
    Ok(())
}

/// Writes a line for each attempt that its worker is asked about for the first time. Apart from the
/// renewal: nothing that locks an attempt holds up a beat.
async fn note_questions(cx: &Cx, beat: &Beat, tokens: &[Token]) -> Result<(), EngineError> {
    if tokens.is_empty() {
        return Ok(());
    }
    let tx = cx.store.begin("ask").await?;
    let tis = task_instance::of_attempts(&tx, tokens).await?;
    let first = attempt::asked(&tx, beat.job_id, tokens).await?;
    let new = tokens.iter().zip(first).filter(|(_, first)| *first).map(|(token, _)| *token);
    let lines = new.filter_map(|token| {
        let ti = tis.iter().find(|ti| ti.token == Some(token))?;
        let mut line = log::ti_state(ti, ti.state, "server");
        line.kind = "attempt_questioned";
        line.to = None;
        line.reason = Some("its worker does not name it: asked what became of it".into());
        line.evidence = Some(serde_json::json!({
            "job": beat.job_id.to_string(), "call": beat.call,
        }));
        Some(line)
    });
    let lines: Vec<event::Event> = lines.collect();
    if !lines.is_empty() {
        event::append(&tx, lines).await?;
        tx.commit().await?;
    }
    Ok(())
}
