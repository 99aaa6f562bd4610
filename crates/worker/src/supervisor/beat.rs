//! The worker's beat: it renews the lease, and the server says what is no longer ours.
//!
//! Without a lease (standalone mode) deadlines are pushed by time alone, since the store lies under the
//! same kernel and home lock. With one they follow the last beat that was acknowledged, a beat is sent
//! whatever runs, and once the lease does not let the worker act it ends what it has.
//!
//! In production beats have a thread, a runtime and a client of their own ([`Beats`]), so that nothing
//! that the worker does can hold them up; a simulator polls them as the future that they are.

use super::calls::Numbered;
use super::checkpoint::Seen;
use super::lease::instant;
use super::{Active, Shared, epoch, question};
use fencepost_api::execution::{Beat, Beaten, ExecutionApi, Says, StopOrder};
use fencepost_api::problem::Problem;
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::inventory::{self, Digest, Form, Pace};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

/// How much sooner than usual beats follow each other while an epoch is reconciled.
const BEHIND: u32 = 4;

/// Most levels that one beat carries.
const LEVELS: usize = 2_000;

/// Runs a future to its end, elsewhere; `Err` gives it back if that cannot be done.
pub type Host = Arc<dyn Fn(Beating) -> Result<(), Beating> + Send + Sync>;
/// The beats of one job.
pub type Beating = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where beats run, and through which client.
#[derive(Clone)]
pub struct Beats {
    pub api: Arc<dyn ExecutionApi>,
    pub host: Host,
}

impl Beats {
    /// On a thread of their own with a runtime of its own.
    pub fn on_own_thread(api: Arc<dyn ExecutionApi>) -> Self {
        let host = |beating: Beating| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return Err(beating) };
            // Handed over through a slot, so that it is not lost with a thread that cannot be made.
            let slot = Arc::new(std::sync::Mutex::new(Some(beating)));
            let own = Arc::clone(&slot);
            let take = |slot: &std::sync::Mutex<Option<Beating>>| {
                slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
            };
            let made = std::thread::Builder::new().name("beats".into()).spawn(move || {
                if let Some(beating) = take(&own) {
                    runtime.block_on(beating);
                }
            });
            if made.is_ok() { Ok(()) } else { take(&slot).map_or(Ok(()), Err) }
        };
        Self { api, host: Arc::new(host) }
    }
}

/// What beats remember.
#[derive(Default)]
struct Memory {
    seq: i64,
    /// Beats since the last that was sent.
    quiet: u32,
    seen: Seen,
    /// Attempts of which the server knows how they are held together.
    told: BTreeSet<String>,
    pace: Pace,
}

/// Starts the beats. With a lease the first one is waited for.
pub(super) async fn begin(shared: &Arc<Shared>) {
    let mut memory = Memory::default();
    if shared.settings.lease.is_some() {
        while !shared.lease.is_over() && !once(shared, &mut memory).await {
            super::pause(super::AFTER_TROUBLE).await;
        }
    }
    let beating: Beating = Box::pin(run(Arc::clone(shared), memory));
    let left = match &shared.settings.beats {
        Some(beats) => (beats.host)(beating).err(),
        None => Some(beating),
    };
    if let Some(beating) = left {
        shared.nursery.add(beating);
    }
}

async fn run(shared: Arc<Shared>, mut memory: Memory) {
    let interval = shared.settings.heartbeat_interval;
    while !shared.lease.is_done() && !shared.lease.is_over() {
        // The server waits for what this worker holds: sooner than for its lease.
        let soon = shared.epochs.is_behind();
        super::pause(if soon { interval / BEHIND } else { interval }).await;
        memory.quiet += 1;
        memory.pace.turned();
        if shared.settings.lease.is_none() {
            push(&shared);
            // With nothing running a beat is a sign of life and an empty inventory.
            if !soon && shared.active().is_empty() && memory.quiet < inventory::EVERY {
                continue;
            }
        }
        once(&shared, &mut memory).await;
        if !shared.acts() {
            shared.fence();
        }
    }
}

/// One beat; whether it was acknowledged.
async fn once(shared: &Arc<Shared>, memory: &mut Memory) -> bool {
    // Before the inventory is taken.
    let number = shared.calls.inventory();
    let held = shared.active_tokens();
    memory.quiet = 0;
    memory.seen.keep(&held);
    let checkpoints = checkpoints(shared, &mut memory.seen);
    memory.told.retain(|token| held.contains(token));
    let levels = levels(shared, &memory.told);
    let told: Vec<String> = levels.iter().map(|(token, _)| token.clone()).collect();
    let now_ns = (shared.settings.now_ns)();
    let reconciles = shared.epochs.is_behind();
    if reconciles {
        memory.pace.ask();
    }
    let (inventory, says) = say(shared, &mut memory.pace, held, &number);
    let unstarted = if says == Says::All { shared.unstarted_tokens() } else { Vec::new() };
    let numbered = shared.lease.beat(instant(now_ns));
    memory.seq += 1;
    let beat = Beat {
        job_id: shared.who.job_id.clone(),
        seq: numbered.map_or(memory.seq, |beat| beat.seq),
        loop_age_ms: shared.lease.loop_age_ms(now_ns),
        call: number.call,
        inventory,
        unanswered: number.unanswered.unwrap_or_default(),
        unstarted,
        epoch: shared.epochs.kept(),
        reconciles,
        checkpoints,
        levels,
        says,
    };
    let carried = beat.says != Says::Nothing;
    // A beat that fails is followed by the next one, which makes up for it.
    let Some(Ok(answer)) = call(shared, beat).await else {
        if carried {
            memory.pace.ask();
        }
        return false;
    };
    memory.told.extend(told);
    if answer.wants_inventory {
        memory.pace.ask();
    }
    if answer.is_over {
        shared.lease.end();
        return false;
    }
    epoch::note(shared, &answer).await;
    if let Some(beat) = numbered.filter(|_| epoch::counts(shared, &answer)) {
        shared.lease.acknowledged(beat);
    }
    disown(shared, answer.disowned);
    question::answer(shared, answer.questions);
    if numbered.is_some() {
        push(shared);
    }
    true
}

/// What this beat says of what this worker holds.
fn say(
    shared: &Shared,
    pace: &mut Pace,
    held: Vec<String>,
    number: &Numbered,
) -> (Vec<String>, Says) {
    match pace.next(held.len(), instant((shared.settings.now_ns)())) {
        Form::Nothing => (Vec::new(), Says::Nothing),
        Form::Names if number.unanswered.is_none() => {
            pace.ask();
            (held, Says::Nothing)
        }
        Form::Names => (held, Says::All),
        Form::Digest => {
            let tokens = held.iter().filter_map(|token| token.parse::<Token>().ok());
            // A job's id is a UUID; another one's digest fits nobody's, and the names are asked for.
            let key = shared.who.job_id.parse::<JobId>().map_or(0, JobId::as_u128);
            let Digest { count, sum } = Digest::of(key, tokens);
            (Vec::new(), Says::Digest { count, sum: format!("{sum:x}") })
        }
    }
}

/// A call with a deadline: an answer that comes later is none.
async fn call(shared: &Shared, beat: Beat) -> Option<Result<Beaten, Problem>> {
    let own = shared.settings.beats.as_ref().map_or(&shared.api, |beats| &beats.api);
    let limit = shared.settings.heartbeat_interval;
    tokio::select! {
        biased;
        answer = own.beat(beat) => Some(answer),
        () = super::pause(limit) => None,
    }
}

/// What the server is to know of attempts should they be lost with this worker. Without a lease nothing is.
fn levels(shared: &Shared, told: &BTreeSet<String>) -> Vec<(String, String)> {
    if shared.settings.lease.is_none() {
        return Vec::new();
    }
    let active = shared.active();
    let new = active.iter().filter(|(token, _)| !told.contains(*token));
    let level = |(token, active): (&String, &Active)| {
        let level = active.running.as_ref()?.progress().level?;
        Some((token.clone(), level.as_str().to_owned()))
    };
    new.filter_map(level).take(LEVELS).collect()
}

fn checkpoints(shared: &Shared, seen: &mut Seen) -> Vec<(String, String)> {
    let names: Vec<(String, String)> = shared
        .active()
        .iter()
        .filter(|(_, active)| active.running.is_some())
        .map(|(token, active)| (token.clone(), active.name.clone()))
        .collect();
    let look = |(token, name): (String, String)| {
        let content = seen.look(shared.host.as_ref(), &token, &name)?;
        Some((token, content))
    };
    names.into_iter().filter_map(look).collect()
}

/// Pushes every deadline of ours forward.
fn push(shared: &Shared) {
    let (deadline, now) = (shared.lease().deadline_ns, (shared.settings.now_ns)());
    for active in shared.active().values().filter(|active| !active.is_disowned && !active.keeps) {
        if let Some(running) = &active.running {
            // A refusal means that it has ended or has another owner: the watch sees it.
            let _ = running.push(deadline, now);
        }
    }
}

/// Ends what the store says is not ours. An attempt whose report is under way is left alone: its
/// end is known.
fn disown(shared: &Shared, tokens: Vec<String>) {
    for token in tokens {
        let runs = shared.active().get_mut(&token).is_some_and(|active| {
            active.is_disowned = true;
            active.running.is_some()
        });
        if runs {
            let (reason, by) = ("superseded".into(), "server".into());
            shared.stop(&StopOrder { token, reason, by, kill_now: false });
        }
    }
}
