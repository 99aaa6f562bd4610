//! Signs of life of workers: one transaction for many of them.
//!
//! A beat may carry an inventory. What it names and is not the worker's is disowned; what it speaks of
//! and does not name is asked about ([`inventory::questions`]). Neither changes an attempt: the
//! worker's answer does, by `take_over` or `report`. With a whole inventory a worker comes to a new
//! epoch ([`mod@reconcile`]), once nothing of it is left to end or to ask.

use crate::Cx;
use crate::error::EngineError;
use crate::liveness::{self, force_epoch, gate, renew_epoch};
use crate::log;
use fencepost_core::guard::Guard;
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::inventory::{self, Digest, InHand, Taken};
use fencepost_core::liveness::reconcile::{self, Named, Place};
use fencepost_core::state::AttemptState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Held, level};
use fencepost_store::query::installation::{self, Standing};
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
    /// Of the inventory: what was not started yet.
    pub unstarted: Vec<Token>,
    /// The highest epoch that it has seen; 0: none.
    pub epoch: u32,
    /// The inventory is its word in the current epoch.
    pub reconciles: bool,
    /// Checkpoints that came with it.
    pub checkpoints: Vec<(Token, String)>,
    /// How attempts are held together that run since its last beat.
    pub levels: Vec<(Token, String)>,
}

/// What an inventory says of what it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Nothing,
    /// It is not there.
    All,
    Digest(Digest),
}

impl Beat {
    /// A worker that numbers nothing sends everything that it holds with every beat.
    const fn is_of_old_worker(&self) -> bool {
        self.call == 0
    }

    const fn carries_inventory(&self) -> bool {
        !matches!(self.says, Says::Nothing) || !self.inventory.is_empty()
    }

    /// Whether it is a whole inventory, and meant for the current epoch.
    fn is_for_epoch(&self, standing: &Standing) -> bool {
        if self.is_of_old_worker() {
            return !gate::is_reconciled(standing);
        }
        self.reconciles && self.says == Says::All
    }

    fn taken(&self) -> Taken<'_> {
        // What an old worker does not name it may still hold.
        let call = if self.is_of_old_worker() { i64::MIN } else { self.call };
        Taken { call, unanswered: &self.unanswered }
    }
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
    /// The current epoch.
    pub epoch: u32,
    /// The job has come to it.
    pub is_reconciled: bool,
}

/// What the store shows in the hands of a job.
type Hand = BTreeMap<Token, Held>;

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
    let desk = Desk::open(cx, &tx, beats).await?;
    let mut answers = Vec::with_capacity(beats.len());
    for beat in beats {
        let answer = desk.answer(beat, over.contains(&beat.job_id));
        if answer.is_reconciled {
            lease::reach_epoch(&tx, beat.job_id, answer.epoch).await?;
        }
        answers.push(answer);
    }
    let standing = desk.standing;
    tx.commit().await?;
    // One that cannot be noted counts as the weakest, until the end of its attempt says more.
    let _ = note_levels(cx, beats).await;
    for (beat, answer) in beats.iter().zip(&answers) {
        // What cannot be noted now is noted when it is asked again.
        let _ = note_questions(cx, beat, &answer.questions).await;
    }
    if let Some(standing) = standing {
        keep_epoch(cx, &standing, beats).await?;
    }
    Ok(answers)
}

/// What answers are made from.
struct Desk<'a> {
    cx: &'a Cx,
    now: Timestamp,
    standing: Option<Standing>,
    /// The store may have lost its last commits: what it does not know now it may have known.
    may_have_lost: bool,
    hands: BTreeMap<JobId, Hand>,
    /// Of those whose beats are for a new epoch: the epoch in which they reconciled last.
    epochs: BTreeMap<JobId, u32>,
    /// What they name and have not in their hands, as far as it waits for a worker.
    queued: BTreeSet<Token>,
    /// The same of earlier jobs' open lost attempts: whether one goes on is its task's to say, which the
    /// worker knows.
    open: BTreeSet<Token>,
}

impl<'a> Desk<'a> {
    async fn open(cx: &'a Cx, tx: &Tx, beats: &[Beat]) -> Result<Self, EngineError> {
        let standing = installation::standing(tx).await?;
        let mut desk = Self {
            cx,
            now: tx.now(),
            standing,
            may_have_lost: standing.is_some_and(|standing| {
                !standing.is_same_server
                    || !gate::is_reconciled(&standing)
                    || beats.iter().any(|beat| seen(beat, &standing).is_some())
            }),
            hands: BTreeMap::new(),
            epochs: BTreeMap::new(),
            queued: BTreeSet::new(),
            open: BTreeSet::new(),
        };
        let jobs = unique(beats.iter().filter(|b| b.carries_inventory()).map(|b| b.job_id));
        for held in attempt::held_by(tx, &jobs).await? {
            desk.hands.entry(held.job_id).or_default().insert(held.token, held);
        }
        let is_foreign = |beat: &Beat, token: &Token| {
            desk.hands.get(&beat.job_id).is_none_or(|hand| !hand.contains_key(token))
        };
        let foreign = beats.iter().flat_map(|beat| {
            beat.inventory.iter().copied().filter(|token| is_foreign(beat, token))
        });
        let foreign = unique(foreign);
        for found in attempt::look(tx, &foreign).await? {
            match found.state {
                AttemptState::Queued => drop(desk.queued.insert(found.token)),
                AttemptState::LostOpen => drop(desk.open.insert(found.token)),
                AttemptState::Claimed
                | AttemptState::Running
                | AttemptState::Stopping
                | AttemptState::Ended => {}
            }
        }
        let Some(standing) = standing else { return Ok(desk) };
        let jobs = unique(beats.iter().filter(|b| b.is_for_epoch(&standing)).map(|b| b.job_id));
        desk.epochs = lease::epochs(tx, &jobs).await?.into_iter().collect();
        Ok(desk)
    }

    fn answer(&self, beat: &Beat, is_over: bool) -> Beaten {
        let none = Hand::new();
        let hand = self.hands.get(&beat.job_id).unwrap_or(&none);
        let epoch = self.standing.map_or(0, |standing| standing.epoch);
        let mut beaten = Beaten { is_over, epoch, ..Beaten::default() };
        let standing = self.standing.filter(|standing| !is_over && beat.is_for_epoch(standing));
        if let Some(standing) = standing {
            self.come(beat, hand, &standing, &mut beaten);
            return beaten;
        }
        if self.may_have_lost {
            // A word that was not given in the new epoch ends nothing.
            return beaten;
        }
        let is_foreign = |token: &&Token| !hand.contains_key(*token) && !self.open.contains(*token);
        beaten.disowned = beat.inventory.iter().filter(is_foreign).copied().collect();
        match beat.says {
            _ if is_over => {}
            Says::Nothing => {}
            Says::All => {
                let named = beat.inventory.iter().copied().collect();
                let (taken, in_hand) = (beat.taken(), self.in_hand(hand));
                beaten.questions =
                    inventory::questions(&taken, &named, &in_hand, self.cx.settings.guards);
            }
            Says::Digest(digest) => {
                let own = Digest::of(beat.job_id.as_u128(), hand.keys().copied());
                beaten.wants_inventory = own != digest;
            }
        }
        beaten
    }

    /// A whole inventory in the current epoch.
    fn come(&self, beat: &Beat, hand: &Hand, standing: &Standing, beaten: &mut Beaten) {
        let may_be_forgotten = !gate::is_reconciled(standing);
        let place = |token: &Token| match hand.get(token) {
            Some(held) => Place::Own(held.state),
            // An old worker cannot say that it runs: it has to end it.
            None if beat.is_of_old_worker() => Place::Elsewhere,
            None if may_be_forgotten && self.queued.contains(token) => Place::Queued,
            None => Place::Elsewhere,
        };
        let named: Vec<Named> = beat
            .inventory
            .iter()
            .filter(|token| hand.contains_key(token) || !self.open.contains(token))
            .map(|token| Named {
                token: *token,
                is_started: !beat.is_of_old_worker() && !beat.unstarted.contains(token),
                place: place(token),
            })
            .collect();
        let guards = self.cx.settings.guards;
        let found = reconcile::reconcile(&beat.taken(), &named, &self.in_hand(hand), guards);
        let known = self.epochs.get(&beat.job_id);
        // On another server than that of the epoch there is a new one soon.
        beaten.is_reconciled = found.is_done() && known.is_some() && standing.is_same_server;
        beaten.disowned = found.disowned;
        beaten.questions = found.questions;
    }

    fn in_hand(&self, hand: &Hand) -> Vec<InHand> {
        let timeout = self.cx.settings.start_timeout;
        let is_owed = |since: Timestamp| self.now.since(since) >= timeout;
        hand.values()
            .filter(|held| held.state != AttemptState::LostOpen)
            .map(|held| InHand {
                token: held.token,
                call: held.call,
                is_owed: held.handed_over_at.is_some_and(is_owed),
            })
            .collect()
    }
}

fn unique<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect::<BTreeSet<T>>().into_iter().collect()
}

/// Makes a new epoch if the server is another one, or if a worker has seen what the store has not.
async fn keep_epoch(cx: &Cx, standing: &Standing, beats: &[Beat]) -> Result<(), EngineError> {
    if !cx.settings.guards.on(Guard::Epoch) {
        return Ok(());
    }
    if !standing.is_same_server {
        return renew_epoch(cx).await;
    }
    let highest = beats.iter().map(|beat| (seen(beat, standing), beat.job_id)).max();
    match highest {
        Some((Some(seen), by)) => force_epoch(cx, seen, standing.epoch, by).await,
        _ => Ok(()),
    }
}

/// Epochs that a store may have lost: each is a failover or a copy that was put back.
const FARTHEST: u32 = 10_000;

/// The highest epoch that a worker has seen and the store has not: its own word, or that of a token
/// above the store's counter.
fn seen(beat: &Beat, standing: &Standing) -> Option<u32> {
    let is_above = |token: &&Token| {
        token.epoch() > standing.epoch
            || (token.epoch() == standing.epoch && token.counter() > standing.counter)
    };
    let told = Some(beat.epoch).filter(|epoch| *epoch > standing.epoch);
    let held = beat.inventory.iter().filter(is_above).map(|token| token.epoch()).max();
    // The last epoch that a token has room for cannot be followed by another; and one that is out of all
    // measure is no epoch of this installation: a worker's word must not use up those that are left.
    let is_near = |epoch: &u32| epoch.saturating_sub(standing.epoch) <= FARTHEST;
    let is_followed = |epoch: &u32| Token::new(epoch.saturating_add(1), 0).is_ok();
    told.max(held).filter(is_near).filter(is_followed)
}

/// Checkpoints of attempts that are their worker's.
async fn keep_checkpoints(
    tx: &Tx,
    beats: &[Beat],
    over: &BTreeSet<JobId>,
) -> Result<(), EngineError> {
    let tokens =
        unique(beats.iter().flat_map(|beat| beat.checkpoints.iter().map(|(token, _)| *token)));
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

/// The words for how a process tree is held together.
const LEVELS: [&str; 3] = ["pidns", "cgroup", "group"];

/// Writes down how attempts are held together. Apart from the renewal, as what follows.
async fn note_levels(cx: &Cx, beats: &[Beat]) -> Result<(), EngineError> {
    let mut levels: Vec<(Token, JobId, String)> = Vec::new();
    for beat in beats {
        let known = beat.levels.iter().filter(|(_, level)| LEVELS.contains(&level.as_str()));
        levels.extend(known.map(|(token, level)| (*token, beat.job_id, level.clone())));
    }
    if levels.is_empty() {
        return Ok(());
    }
    levels.sort_unstable();
    let tx = cx.store.begin("note_levels").await?;
    level::told(&tx, &levels).await?;
    Ok(tx.commit().await?)
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
        line.reason = Some("its worker is asked what became of it".into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_about_an_epoch_counts_within_measure() {
        let standing = Standing {
            epoch: 3,
            reconciled: 3,
            epoch_at: Timestamp::default(),
            counter: 9,
            is_same_server: true,
        };
        let seen = |epoch: u32, token: Option<(u32, u64)>| {
            let held = token.map(|(epoch, counter)| Token::new(epoch, counter).unwrap());
            let beat = Beat {
                job_id: JobId::from_u128(1),
                seq: 1,
                loop_age: Span::ZERO,
                call: 1,
                inventory: held.into_iter().collect(),
                says: Says::All,
                unanswered: Vec::new(),
                unstarted: Vec::new(),
                epoch,
                reconciles: false,
                checkpoints: Vec::new(),
                levels: Vec::new(),
            };
            super::seen(&beat, &standing)
        };
        assert_eq!(seen(3, Some((3, 9))), None);
        assert_eq!(seen(4, None), Some(4));
        assert_eq!(seen(3, Some((3, 10))), Some(3));
        assert_eq!(seen(3 + FARTHEST, None), Some(3 + FARTHEST));
        for wild in [4 + FARTHEST, (1 << 24) - 2, u32::MAX] {
            assert_eq!(seen(wild, None), None);
        }
        assert_eq!(seen(3, Some(((1 << 24) - 2, 1))), None);
    }
}
