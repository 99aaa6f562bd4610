//! The worker: claims attempts, starts their shims, watches them, reports how they ended.
//!
//! A worker may die at any point. What it started goes on under the shims, and its successor in the
//! same home takes it over ([`reattach`]): attempts that run are watched again, ends are collected,
//! claims that never ran are started under the same token. So the paths below never assume that
//! they come to their end; whatever they leave behind is found by the next worker.
//!
//! With a lease ([`lease`]) it stops acting before that is over, and a worker that was declared lost
//! ends what it has, reports it, and goes on as a new job.
//!
//! Deliberately absent: the store, HTTP, decisions about retries.

mod archive;
mod beat;
mod calls;
mod checkpoint;
mod doubt;
mod drain;
mod epoch;
mod join;
mod launch;
mod lease;
mod nursery;
mod old;
mod question;
mod reattach;
mod report;
mod secrets;
mod settings;
mod ship;
mod work;

pub(crate) use archive::archive;
pub use archive::{archived, log_dir, remove_archived};
pub use beat::{Beating, Beats, Host};
pub use old::{Forgotten, KeepAtHome, forget_old};
pub use settings::{Identity, Python, Settings, TaskApi};

use crate::attempt::{AttemptHost, RunningAttempt};
use crate::outcome::Reason;
use fencepost_api::execution::{ExecutionApi, Poll, Polled, StopOrder};
use fencepost_api::problem::Problem;
use fencepost_core::hook::Hooks;
use futures_util::FutureExt as _;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// How long a poll may wait for work.
const POLL_WAIT: Duration = Duration::from_secs(20);
/// After an error, or while the disk is full.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// A worker of one home.
pub struct Supervisor {
    api: Arc<dyn ExecutionApi>,
    host: Arc<dyn AttemptHost>,
    settings: Settings,
    who: Identity,
    hooks: Hooks,
    trouble: Arc<Mutex<Option<String>>>,
}

/// What the parts of a worker share.
pub(crate) struct Shared {
    api: Arc<dyn ExecutionApi>,
    host: Arc<dyn AttemptHost>,
    settings: Settings,
    who: Identity,
    hooks: Hooks,
    active: Mutex<BTreeMap<String, Active>>,
    /// Names of attempts that have ended, and whose log is to be sent to its end.
    over: Mutex<Vec<String>>,
    /// A slot became free, or a stop came.
    changed: Notify,
    ended: mpsc::Sender<report::Ended>,
    starts: std::sync::atomic::AtomicU64,
    trouble: Arc<Mutex<Option<String>>>,
    nursery: nursery::Nursery,
    lease: lease::Keeper,
    calls: calls::Calls,
    epochs: epoch::Epochs,
    /// The newest reports that were accepted.
    sent: Mutex<VecDeque<report::Ended>>,
}

/// An attempt in this worker's hands.
#[derive(Default)]
struct Active {
    /// `None` until its shim runs, and again when it has ended.
    running: Option<Arc<dyn RunningAttempt>>,
    /// Of its directory.
    name: String,
    stop: Option<(Reason, bool)>,
    /// The store said that it is not ours: its deadline is not pushed any more.
    is_disowned: bool,
    /// The store has accepted its start.
    is_started: bool,
    /// It runs without a lease.
    keeps: bool,
}

/// How the work of one job ended.
enum End {
    /// In order; the tokens that were left running.
    Left(Vec<String>),
    /// The job was declared lost.
    Over,
}

impl Supervisor {
    /// A worker that has not registered yet.
    pub fn new(
        api: Arc<dyn ExecutionApi>,
        host: Arc<dyn AttemptHost>,
        settings: Settings,
        who: Identity,
        hooks: Hooks,
    ) -> Self {
        Self { api, host, settings, who, hooks, trouble: Arc::default() }
    }

    /// What stands in the way of taking work, for `health`.
    pub fn trouble(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let trouble = Arc::clone(&self.trouble);
        move || trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Registers, takes over what the predecessors left, and works until `stop` becomes true.
    /// Then claims nothing more, waits for what runs up to `drain_timeout`, and leaves the rest to
    /// its shims; the tokens that are left running.
    ///
    /// The whole worker is this future: not polled it stands still, dropped it is gone.
    /// If its job is declared lost it begins again as a new one.
    pub async fn run(mut self, stop: watch::Receiver<bool>) -> Result<Vec<String>, Problem> {
        loop {
            let (shared, ended, children) = self.incarnation();
            // Also when this future is dropped: what beats elsewhere ends with it.
            let _done = lease::Done(Arc::clone(&shared));
            match children.beside(work(&shared, ended, stop.clone())).await? {
                End::Left(left) => return Ok(left),
                End::Over => self.who.job_id = (self.settings.fresh_job_id)(),
            }
        }
    }

    fn incarnation(&self) -> (Arc<Shared>, mpsc::Receiver<report::Ended>, nursery::Children) {
        let (sender, ended) = mpsc::channel(1_024);
        let (nursery, children) = nursery::nursery();
        let shared = Shared {
            api: Arc::clone(&self.api),
            host: Arc::clone(&self.host),
            settings: self.settings.clone(),
            who: self.who.clone(),
            hooks: self.hooks.clone(),
            active: Mutex::default(),
            over: Mutex::default(),
            changed: Notify::new(),
            ended: sender,
            starts: std::sync::atomic::AtomicU64::new(0),
            trouble: Arc::clone(&self.trouble),
            nursery,
            lease: lease::Keeper::new(&self.settings),
            calls: calls::Calls::default(),
            epochs: epoch::Epochs::default(),
            sent: Mutex::default(),
        };
        (Arc::new(shared), ended, children)
    }
}

async fn work(
    shared: &Arc<Shared>,
    ended: mpsc::Receiver<report::Ended>,
    mut stop: watch::Receiver<bool>,
) -> Result<End, Problem> {
    let Some(registered) = join::register(shared).await? else {
        return Ok(if *stop.borrow() { End::Left(Vec::new()) } else { End::Over });
    };
    shared.nursery.add(report::run(Arc::clone(shared), ended));
    epoch::begin(shared).await?;
    // In hand before the first inventory is taken, with everything else that may run in this home.
    let names = reattach::hold(shared, &registered.handed_over).await;
    // Deadlines are set by what is taken over: the lease that they follow is a fresh one.
    beat::begin(shared).await;
    if shared.settings.ships_logs {
        shared.nursery.add(ship::run(Arc::clone(shared)));
    }
    reattach::take_over(shared, registered.handed_over, names);
    while !*stop.borrow() && !shared.lease.is_over() {
        tokio::select! {
            biased;
            _ = stop.changed() => {}
            () = shared.lease.over() => {}
            () = work_turn(shared) => {}
        }
    }
    let names: Vec<String> = shared.active().values().map(|active| active.name.clone()).collect();
    let left = if shared.lease.is_over() { Vec::new() } else { drain::drain(shared).await };
    if shared.lease.is_over() {
        lease::end_all(shared).await;
    }
    if shared.settings.ships_logs {
        ship::rest(shared, names.into_iter().filter(|name| !name.is_empty()).collect()).await;
    }
    if shared.lease.is_over() {
        return Ok(if *stop.borrow() { End::Left(Vec::new()) } else { End::Over });
    }
    shared.api.leave(&shared.who.job_id).await?;
    Ok(End::Left(left))
}

/// One look for work and orders.
async fn work_turn(shared: &Arc<Shared>) {
    shared.lease.turned((shared.settings.now_ns)());
    if !shared.acts() {
        return pause(AFTER_TROUBLE).await;
    }
    let full = shared.host.trouble(&shared.settings.home);
    shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&full);
    // What has changed up to here is counted below.
    let _ = shared.changed.notified().now_or_never();
    let free = if full.is_some() { 0 } else { shared.free_slots() };
    let poll = shared.poll(free);
    let call = poll.call;
    let polled = tokio::select! {
        biased;
        polled = shared.api.poll(poll) => polled,
        // It was full, and can take something now. One that asks for work already goes on waiting: it
        // takes what it asked for, and then asks for more.
        () = shared.changed.notified(), if free == 0 => return,
    };
    match polled {
        Ok(Polled { assignments, stops }) => {
            for order in stops {
                shared.stop(&order);
            }
            if !assignments.is_empty() {
                launch::begin(shared, assignments);
            }
            shared.calls.polled(call);
        }
        Err(_) => pause(AFTER_TROUBLE).await,
    }
    if full.is_some() {
        pause(AFTER_TROUBLE).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the worker's timer")]
pub(crate) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

impl Shared {
    fn poll(&self, free_slots: u32) -> Poll {
        let call = self.calls.poll();
        let active = self.active();
        let known = active.iter().filter(|(_, a)| a.stop.is_some()).map(|(t, _)| t.clone());
        Poll {
            job_id: self.who.job_id.clone(),
            call,
            held: active.keys().cloned().collect(),
            free_slots,
            queues: self.settings.queues.clone(),
            wait_ms: u64::try_from(POLL_WAIT.as_millis()).unwrap_or(0),
            known_stops: known.collect(),
        }
    }

    fn active(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Active>> {
        // Entries are only inserted, replaced and removed whole.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        // Pushed and taken whole.
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self) -> std::sync::MutexGuard<'_, VecDeque<report::Ended>> {
        // Pushed and popped whole.
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if that was accepted and not too long ago.
    fn reported(&self, token: &str) -> Option<report::Ended> {
        self.sent().iter().find(|sent| sent.report.token == token).cloned()
    }

    fn active_tokens(&self) -> Vec<String> {
        self.active().keys().cloned().collect()
    }

    fn free_slots(&self) -> u32 {
        let taken = u32::try_from(self.active().len()).unwrap_or(u32::MAX);
        self.settings.slots.saturating_sub(taken)
    }

    /// Takes a token that was assigned; false if it is in hand already or was denied.
    fn take_new(&self, token: &str) -> bool {
        let mut active = self.active();
        if active.contains_key(token) || self.calls.is_denied(token) {
            return false;
        }
        active.insert(token.to_owned(), Active::default());
        true
    }

    /// Takes what is not ours and may still run, until it is gone; false if the token is in hand.
    fn take_disowned(&self, token: &str, name: &str) -> bool {
        let mut active = self.active();
        if active.contains_key(token) {
            return false;
        }
        let name = name.to_owned();
        let forgotten = Active { name, is_disowned: true, is_started: true, ..Active::default() };
        active.insert(token.to_owned(), forgotten);
        true
    }

    fn give_back(&self, token: &str) {
        self.active().remove(token);
        self.changed.notify_one();
    }

    /// The shim runs: a stop that came before it is delivered now.
    fn running(&self, token: &str, name: &str, keeps: bool, running: Arc<dyn RunningAttempt>) {
        let mut active = self.active();
        let entry = active.entry(token.to_owned()).or_default();
        entry.keeps = keeps;
        if let Some((reason, kill_now)) = entry.stop {
            running.request_stop(reason, kill_now);
        }
        name.clone_into(&mut entry.name);
        entry.running = Some(running);
        entry.is_started = true;
    }

    /// The store has accepted its start.
    fn started(&self, token: &str) {
        if let Some(active) = self.active().get_mut(token) {
            active.is_started = true;
        }
    }

    fn unstarted_tokens(&self) -> Vec<String> {
        let active = self.active();
        active.iter().filter(|(_, one)| !one.is_started).map(|(token, _)| token.clone()).collect()
    }

    fn stop(&self, order: &StopOrder) {
        let reason = match order.reason.as_str() {
            "cancel" => Reason::Cancel,
            "clear" => Reason::Clear,
            "mark" => Reason::Mark,
            "dagrun_timeout" => Reason::RunTimeout,
            "fail_fast" => Reason::FailFast,
            "superseded" => Reason::Superseded,
            _ => Reason::Kill,
        };
        let mut active = self.active();
        let Some(entry) = active.get_mut(&order.token) else { return };
        entry.stop = Some((reason, order.kill_now));
        if let Some(running) = &entry.running {
            running.request_stop(reason, order.kill_now);
        }
    }

    /// A start id that this worker has not used.
    fn start_id(&self) -> String {
        let n = self.starts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!("{}:{n}", self.who.job_id)
    }

    /// Where a crash test may end the process, or a simulator look.
    fn pass(&self, step: &str) {
        self.hooks.pass("worker", step);
    }
}
