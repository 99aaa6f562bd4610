//! One state of a world: the store's rows, the processes, the machines and the messages under way.
//!
//! Everything that can make two states behave differently is here and is hashed, and nothing else is:
//! lists are kept in an order of their own, so that two ways to the same state meet.

use crate::fault::Faults;
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::reconcile::Reconciliation;
use fencepost_core::liveness::{Beat, Expired, Holder, Observer};
use fencepost_core::state::{AttemptState, JobKind, JobState, Outcome, TiState};
use fencepost_core::time::{BootInstant, Span, Timestamp};

/// A job by its number: the n-th process that registered.
pub type Job = u8;

/// The id of a job as the core knows it.
pub fn job_id(job: Job) -> JobId {
    JobId::from_u128(u128::from(job))
}

/// An instant of every machine.
pub fn boot(tick: u8) -> BootInstant {
    BootInstant::from_micros(i64::from(tick) * 1_000_000)
}

/// An instant of the store's clock.
pub fn store_time(tick: i16) -> Timestamp {
    Timestamp::from_micros(i64::from(tick) * 1_000_000)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    /// How far the store's clock has jumped.
    pub clock_offset: i16,
    /// The server that the store runs on, as its timeline.
    pub server: u32,
    pub outage: Outage,
    pub store: Store,
    /// A standby that no longer follows.
    pub standby: Option<Box<Store>>,
    pub schedulers: Vec<Scheduler>,
    pub workers: Vec<Worker>,
    pub homes: Vec<Home>,
    /// Messages under way, sorted.
    pub letters: Vec<Letter>,
    /// A claim that a server stands still in.
    pub claim: Option<OpenClaim>,
    pub next_job: Job,
    /// The renewals of the server's own lease.
    pub server_seq: i64,
    pub faults: Faults,
    pub witness: Witness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outage {
    None,
    Servers,
    Store,
}

/// What the store remembers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    pub epoch: u32,
    pub reconciled: u32,
    /// When the epoch began, if not by a plain start.
    pub epoch_at: Option<i16>,
    /// The server that the epoch was made on.
    pub server: u32,
    pub counter: u64,
    pub jobs: Vec<JobRow>,
    pub attempts: Vec<AttemptRow>,
    pub tis: Vec<TiRow>,
    /// The last registration of each home.
    pub registrations: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRow {
    pub job: Job,
    pub kind: JobKind,
    pub home: u8,
    pub state: JobState,
    pub renew_seq: i64,
    pub renewed_at: i16,
    pub epoch: u32,
    pub succeeded_by: Option<Job>,
    /// What it left is to be worked off.
    pub pages: bool,
    /// It died alone.
    pub alone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptRow {
    pub token: Token,
    pub ti: u8,
    pub state: AttemptState,
    pub outcome: Option<Outcome>,
    pub job: Option<Job>,
    pub start_id: Option<StartId>,
    /// The number of the call that brought it into its owner's hands.
    pub call: i64,
    pub claimed_at: i16,
    pub stop: bool,
    /// It holds its slot of the pool.
    pub holds: bool,
    /// It was charged to the platform's account.
    pub infra: bool,
    /// The accepted report.
    pub digest: Option<(Job, End)>,
}

/// A start: by whom, and its how-manieth of that attempt.
pub type StartId = (Job, u8);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TiRow {
    pub state: TiState,
    pub token: Option<Token>,
    pub attempts: u8,
    pub infra_losses: u8,
    pub single_deaths: u8,
    pub requeues: u8,
    /// How often it came to an end.
    pub ends: u8,
}

/// A scheduler process, or the place where one was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scheduler {
    pub life: Life,
    pub job: Option<Job>,
    /// The epoch in which it registered.
    pub epoch: u32,
    pub seq: i64,
    pub observer: Observer,
    /// Leases that it found over and has not declared yet.
    pub expired: Vec<Expired>,
    /// For how long it has observed the epoch.
    pub observed: Span,
    /// What it was about to write when it stood still.
    pub intent: Option<Intent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    Dead,
    Alive,
    Paused,
}

/// A transaction that a scheduler is about to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    Dispatch(u8),
    Declare(Expired),
    Settle(Job),
    TakeBack(Token),
    Reconcile,
    /// To wait for nobody any more in an epoch that was observed for so long.
    GiveUp(Span),
}

/// A worker process, or the place where one was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Worker {
    pub home: u8,
    pub life: Life,
    pub is_parted: bool,
    /// Its incarnation; what it registers as.
    pub job: Job,
    pub registration: i64,
    pub is_registered: bool,
    /// It was told that its job is over.
    pub is_over: bool,
    pub holder: Option<Holder>,
    /// The epoch in which it has reconciled.
    pub reached: u32,
    /// That, or the epoch of its first beat; 0: it has not been answered yet, and does nothing.
    pub come: u32,
    pub is_behind: bool,
    pub calls: i64,
    /// Polls without an answer.
    pub polls: Vec<i64>,
    pub held: Vec<Held>,
    pub denied: Vec<Token>,
    pub questions: Vec<Token>,
    /// How its next beat fares.
    pub beat: Way,
}

/// An attempt in a worker's hands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    pub token: Token,
    pub ti: u8,
    /// The store accepted its start.
    pub is_started: bool,
    pub is_disowned: bool,
    /// It came from a predecessor, and what became of it was not looked at yet.
    pub is_inherited: bool,
    pub starts: u8,
    /// The owner word of its page when it became ours.
    pub generation: Option<u8>,
}

/// A machine's disk and shims.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Home {
    pub registrations: i64,
    pub epoch: u32,
    pub shims: Vec<Shim>,
    /// Attempts that ran to their end here and were put away.
    pub archived: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shim {
    pub token: Token,
    /// Its how-manieth start of that attempt.
    pub start: u8,
    pub ti: u8,
    pub phase: Phase,
    pub deadline: Option<BootInstant>,
    pub generation: u8,
    /// The worker that prepared it.
    pub by: Job,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Its directory is made and locked by its worker.
    Prepared,
    /// Forked, and not yet in its page.
    Launched,
    /// The task runs.
    Running,
    Ended(End),
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Exit,
    /// At its deadline, or because its worker's lease was over.
    Fenced,
    /// Ended because it was superseded.
    Superseded,
    /// A stop was asked for.
    Stopped,
    /// The shim was killed.
    Died,
    NeverRan,
    /// It is not here any more.
    Gone,
}

/// How a call fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    Straight,
    LateRequest,
    LateReply,
    Twice,
}

/// A message under way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Letter {
    Request { slot: u8, job: Job, call: Call },
    Reply { slot: u8, job: Job, reply: Reply },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Register { home: u8, registration: i64 },
    Beat(BeatCall),
    Claim { call: i64, held: Vec<Token> },
    Start { token: Token, start_id: StartId, call: i64 },
    Report { token: Token, end: End },
    TakeOver { token: Token, call: i64, runs: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BeatCall {
    pub beat: Beat,
    pub call: i64,
    pub inventory: Vec<Token>,
    pub unanswered: Vec<i64>,
    pub unstarted: Vec<Token>,
    pub epoch: u32,
    pub reconciles: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// What is in the job's hands: token, instance, whether it was started.
    Registered(Vec<(Token, u8, bool)>),
    Beaten(Beaten),
    Claimed {
        call: i64,
        claims: Vec<(Token, u8)>,
    },
    Started {
        token: Token,
        accepted: bool,
    },
    Reported {
        token: Token,
    },
    TookOver {
        token: Token,
        accepted: bool,
        runs: bool,
    },
    /// The registration is refused: a later one of the home is known, or the job is over.
    NotRegistered,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beaten {
    pub beat: Option<Beat>,
    pub is_over: bool,
    pub disowned: Vec<Token>,
    pub questions: Vec<Token>,
    pub epoch: u32,
    pub is_reconciled: bool,
}

impl Beaten {
    pub(crate) fn found(&mut self, found: Reconciliation) {
        (self.disowned, self.questions) = (found.disowned, found.questions);
    }
}

/// A claim that began and did not commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpenClaim {
    pub slot: u8,
    pub job: Job,
    pub call: i64,
    pub is_admitted: bool,
}

/// What really happened, whatever the store remembers of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Witness {
    /// Executions that began: their tokens and instances.
    pub begun: Vec<(Token, u8)>,
    pub highest: Option<Token>,
    pub silent: Vec<Silence>,
    pub was_cancelled: bool,
    /// Something died, was cut off or was lost.
    pub has_harm: bool,
    pub broken: Option<Broken>,
}

/// Seconds since a job's last renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Silence {
    pub job: Job,
    pub since: u8,
    /// Of them, those in which it would have been heard.
    pub audible: u8,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Broken {
    pub invariant: &'static str,
    pub what: String,
}

impl Witness {
    /// The first broken promise is the one that is told.
    pub(crate) fn breaks(&mut self, invariant: &'static str, what: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some(Broken { invariant, what: what() });
        }
    }

    pub(crate) fn silence(&self, job: Job) -> Silence {
        let known = self.silent.iter().find(|silence| silence.job == job).copied();
        known.unwrap_or(Silence { job, since: 0, audible: 0 })
    }

    /// It renewed.
    pub(crate) fn hears(&mut self, job: Job) {
        self.silent.retain(|silence| silence.job != job);
    }

    /// A second passed without a renewal.
    pub(crate) fn misses(&mut self, job: Job, is_audible: bool) {
        let mut silence = self.silence(job);
        silence.since += 1;
        silence.audible += u8::from(is_audible);
        self.hears(job);
        self.silent.push(silence);
        self.silent.sort_unstable();
    }
}

impl State {
    /// The store's clock.
    pub(crate) fn store_now(&self) -> i16 {
        i16::from(self.now) + self.clock_offset
    }
}

impl Store {
    pub(crate) fn job(&self, job: Job) -> Option<&JobRow> {
        self.jobs.iter().find(|row| row.job == job)
    }

    pub(crate) fn job_mut(&mut self, job: Job) -> Option<&mut JobRow> {
        self.jobs.iter_mut().find(|row| row.job == job)
    }

    pub(crate) fn attempt(&self, token: Token) -> Option<&AttemptRow> {
        self.attempts.iter().find(|row| row.token == token)
    }

    pub(crate) fn attempt_mut(&mut self, token: Token) -> Option<&mut AttemptRow> {
        self.attempts.iter_mut().find(|row| row.token == token)
    }

    /// What is open in the hands of a job.
    pub(crate) fn open_of(&self, job: Job) -> impl Iterator<Item = &AttemptRow> {
        let is_open =
            move |row: &&AttemptRow| row.job == Some(job) && row.state != AttemptState::Ended;
        self.attempts.iter().filter(is_open)
    }
}

impl JobRow {
    /// Not over.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.state, JobState::Running | JobState::Draining)
    }
}

impl Worker {
    pub(crate) fn held(&mut self, token: Token) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.token == token)
    }
}
