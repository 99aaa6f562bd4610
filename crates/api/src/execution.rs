//! The execution API: what workers and servers say to each other. Versioned apart from REST.
//!
//! Every call of a worker names its job; every statement about an attempt carries its token. Calls
//! may be repeated: a claim whose reply was lost is delivered again, a report is recognised by its
//! digest. In standalone mode the calls are in-process; the types are those of the wire, and
//! [`wire`] says how they travel.
//!
//! Versions: what a newer one adds has a default, and what a reader does not know is passed over,
//! so a server of version N serves workers of N and N - 1. Servers are upgraded first.

pub mod wire;

pub use wire::TakeOver;

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;

/// Version of this surface. 2: credentials of jobs and attempts, logs.
pub const EXECUTION_VERSION: u32 = 2;
/// The oldest version that a server still serves.
pub const EXECUTION_OLDEST: u32 = 1;

/// A worker introduces itself: once per process start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// A fresh UUID: this incarnation.
    pub job_id: String,
    pub name: String,
    pub host: String,
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: ticks since boot.
    pub pid_start: u64,
    pub boot_id: String,
    pub machine_id: String,
    /// The home's own random id: what a successor is recognised by.
    pub home_id: String,
    /// The number of this registration among those of its home: a request of a process that is gone is
    /// known by it, however late it comes. 0: it was not counted (before version 2 counted them).
    #[serde(default)]
    pub registration: u64,
    pub version: String,
    pub queues: Vec<String>,
    pub slots: u32,
    /// `None`: nothing but its successor, a new boot or a person ends it (standalone).
    pub lease_ttl_ms: Option<i64>,
}

/// The answer: what the predecessors in the same home left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// Claims of the predecessors; the worker answers for each with [`ExecutionApi::take_over`].
    pub handed_over: Vec<HandedOver>,
    /// What every other call of this job carries over HTTP; `None` in-process.
    #[serde(default)]
    pub credential: Option<String>,
}

/// An attempt that a predecessor had claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    pub assignment: Assignment,
    /// The store has accepted its start.
    pub started: bool,
    /// The boot id under which it was started.
    pub boot_id: String,
}

/// What a successor found out about an attempt that was handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Found {
    /// Its shim lives and is ours now.
    Running { level: String },
    /// Proved under its lock not to have run; it may be started under the same token.
    NeverRan,
}

/// A worker asks for work and orders; answered when there is some, or after `wait_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    pub job_id: String,
    /// The number of this call, which its claims keep (see [`Beat::call`]).
    #[serde(default)]
    pub call: i64,
    /// Tokens in its hands: a claim of its own that is not among them is delivered again.
    pub held: Vec<String>,
    /// How many attempts it can take now.
    pub free_slots: u32,
    pub queues: Vec<String>,
    pub wait_ms: u64,
    /// Stops that it knows of already.
    pub known_stops: Vec<String>,
}

/// Work and orders.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Polled {
    pub assignments: Vec<Assignment>,
    pub stops: Vec<StopOrder>,
}

/// An attempt is to be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub token: String,
    /// `cancel`, `clear`, `mark`, `dagrun_timeout`, `fail_fast`, `kill`.
    pub reason: String,
    pub by: String,
    /// SIGKILL at once.
    pub kill_now: bool,
}

/// An attempt that the worker has claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub token: String,
    pub attempt_id: String,
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: i32,
    pub try_number: u32,
    pub attempt_number: u32,
    /// What to run; or why it cannot be rendered (the attempt is then started and reported so).
    pub work: Result<Work, String>,
    /// `FENCEPOST_API_TOKEN`: good for this attempt while it is current.
    #[serde(default)]
    pub credential: Option<String>,
}

/// What to run, rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Program and arguments, without a shell of ours.
    pub argv: Vec<String>,
    /// A script to be written to a file whose path is appended to `argv`.
    pub script: Option<String>,
    /// A Python function (`module:function`), which the script calls: the worker puts its own
    /// interpreter first, and its DAG folder on the path.
    #[serde(default)]
    pub python: Option<String>,
    /// Variables in the order in which later ones win; the worker adds places and paths.
    pub env: Vec<(String, String)>,
    /// The whole set of parameters, and of upstream outputs, as JSON.
    pub params: Value,
    pub inputs: Value,
    /// What made the run, by asset, if events of assets did.
    #[serde(default)]
    pub asset_events: Option<Value>,
    /// `None`: the attempt's own work directory.
    pub working_dir: Option<String>,
    pub run_as_user: Option<String>,
    /// `auto`, `pidns`, `cgroup`, `group`.
    pub containment: String,
    /// What its processes may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    pub execution_timeout_ms: Option<i64>,
    pub stall_timeout_ms: Option<i64>,
    pub kill_grace_ms: Option<i64>,
    /// `on_disconnect: keep`: it runs to its end without a lease.
    #[serde(default)]
    pub keeps: bool,
    pub graceful_exit_codes: Vec<u8>,
    /// The last checkpoint of the attempts before it, in hexadecimal.
    #[serde(default)]
    pub checkpoint: Option<String>,
    /// What came of the wait that it was deferred for.
    #[serde(default)]
    pub defer_event: Option<Value>,
    /// Declared outputs: name and type (`string`, `integer`, ...).
    pub outputs: Vec<(String, String)>,
    /// Variables with secrets; they go over `env`.
    #[serde(default)]
    pub secrets: Vec<Secret>,
    #[serde(default)]
    pub connections: Vec<Given>,
    /// What the worker hides in the log beside the secrets.
    #[serde(default)]
    pub masked: Vec<String>,
}

/// A variable with a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    pub name: String,
    pub from: SecretFrom,
}

/// Where its value comes from: from the server, or from where the worker finds it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretFrom {
    Value(String),
    /// A variable of the worker's own environment.
    Env(String),
    /// A file of the worker's machine.
    File(String),
    /// A command of the worker's shell.
    Exec(String),
}

/// The name only.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// A connection that a task is given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub name: String,
    pub uri: String,
    /// Its fields.
    pub json: Value,
}

/// The name only.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Given({})", self.name)
    }
}

/// A worker is about to start an attempt. It execs only after `Accepted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub token: String,
    /// Made by the worker for this start; the same again gets the same answer.
    pub start_id: String,
    pub boot_id: String,
    /// The number of this call, which the attempt keeps (see [`Beat::call`]).
    #[serde(default)]
    pub call: i64,
}

/// Limits of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Bytes.
    pub memory: Option<u64>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub token: String,
    pub ended: Ended,
    /// What the result file says, if it may count.
    pub asked: Option<AskedFor>,
    /// Read only of an attempt that may end in success.
    pub outputs: Vec<(String, Value)>,
    /// The containment level reached.
    pub level: Option<String>,
    /// A sentence for people: the missing file, the template's mistake.
    pub message: Option<String>,
    /// The kernel ended it for want of memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom: bool,
    /// Its last checkpoint, if it was not sent with a beat; in hexadecimal.
    #[serde(default)]
    pub checkpoint: Option<String>,
}

/// The worker's word for the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Ended {
    Exit {
        code: u8,
    },
    Signal {
        signal: i32,
    },
    CouldNotExec {
        code: u8,
    },
    ExecutionTimeout {
        code: Option<u8>,
    },
    StallTimeout {
        code: Option<u8>,
    },
    /// By a stop order.
    Stopped {
        code: Option<u8>,
        signal: Option<i32>,
    },
    TemplateError,
    OutputsInvalid,
    NeverRan,
    /// Without an exit status; `evidence` is `exit_status`, `successor`, `boot_id`, `self_fence`; `drain`: its worker
    /// ended it on its way out.
    Gone {
        evidence: String,
    },
}

/// The `status` of a result file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum AskedFor {
    Success,
    Skip,
    Fail,
    Retry {
        after_ms: Option<i64>,
    },
    Hold,
    /// With exit code 100: what the defer file says.
    Defer {
        wait: Value,
    },
}

/// The answer to a statement about one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    Accepted,
    Refused { reason: RefusedReason, detail: String },
}

/// Why a statement about an attempt is refused; never the answer for "not found".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// A newer attempt exists.
    Superseded,
    /// The owner's lease is over, or the attempt is another job's.
    Fenced,
    /// A stop ended it.
    Cancelled,
    NotRunning,
    RunningElsewhere,
}

/// A worker's sign of life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    pub job_id: String,
    /// Increasing: a delayed beat renews nothing.
    pub seq: i64,
    /// The age of its main loop's last turn.
    #[serde(default)]
    pub loop_age_ms: u64,
    /// The number of this call. The calls of a job that bring attempts into its hands and its beats
    /// are numbered from 1: an inventory says nothing about what a later call brought. 0: a worker
    /// that does not number them.
    #[serde(default)]
    pub call: i64,
    /// Tokens that it holds.
    #[serde(default)]
    pub inventory: Vec<String>,
    /// What that says of tokens that it does not name.
    #[serde(default)]
    pub says: Says,
    /// Earlier calls that had no answer when the inventory was taken: it says nothing about what
    /// they brought.
    #[serde(default)]
    pub unanswered: Vec<i64>,
    /// Of a whole inventory: what was not started yet.
    #[serde(default)]
    pub unstarted: Vec<String>,
    /// The highest epoch that this worker has seen, as its home keeps it; 0: none.
    #[serde(default)]
    pub epoch: u32,
    /// The inventory is whole, and is this worker's word in the current epoch.
    #[serde(default)]
    pub reconciles: bool,
    /// Checkpoints that are new since the last beat: (token, content in hexadecimal).
    #[serde(default)]
    pub checkpoints: Vec<(String, String)>,
    /// How attempts that run since the last beat are held together: (token, level).
    #[serde(default)]
    pub levels: Vec<(String, String)>,
}

/// What an inventory says of what it does not name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Says {
    #[default]
    Nothing,
    /// The worker does not hold it.
    All,
    /// The worker holds so many tokens; their keyed hashes have this sum (in hexadecimal).
    Digest { count: u64, sum: String },
}

/// What a beat is answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beaten {
    /// Its job is over, and nothing was renewed: it ends what it has, reports that, and registers as a
    /// new job.
    #[serde(default)]
    pub is_over: bool,
    /// Of the inventory: those that are no longer its own. They are to be ended.
    pub disowned: Vec<String>,
    /// What became of these? They are this job's, and its inventory does not name them, or an answer
    /// about them is owed. To be answered by `take_over` or `report`, or by nothing if that is on its
    /// way; one that never ran never starts from then on.
    #[serde(default)]
    pub questions: Vec<String>,
    /// The digest is another one: the next beat is to name everything.
    #[serde(default)]
    pub wants_inventory: bool,
    /// The current epoch. While this job has not come to it, it is given no work; it comes to it by whole
    /// inventories of which nothing is left to end or to ask.
    #[serde(default)]
    pub epoch: u32,
    /// It has.
    #[serde(default)]
    pub is_reconciled: bool,
}

/// A piece of an attempt's log, as it lies in the worker's home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPiece {
    pub token: String,
    pub at: LogPlace,
    /// Base64.
    pub content: String,
}

/// A place in a log: the bytes of a segment before it. Places rise; a segment that was dropped by
/// the log's limit leaves a gap in their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPlace {
    pub segment: u32,
    pub offset: u64,
}

/// What a server has of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum LogAnswer {
    /// Everything before this place; the next piece begins here, or with a later segment.
    Have { next: LogPlace },
    /// The attempt is not this worker's, or is unknown: nothing of it is taken.
    Refused { reason: RefusedReason, detail: String },
}

/// A boxed future of an answer.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// What a worker can ask of a server.
pub trait ExecutionApi: Send + Sync {
    fn register(&self, request: Register) -> Reply<'_, Registered>;
    fn take_over(&self, request: TakeOver) -> Reply<'_, Answer>;
    fn poll(&self, request: Poll) -> Reply<'_, Polled>;
    fn start(&self, job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>>;
    fn report(&self, job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>>;
    fn beat(&self, request: Beat) -> Reply<'_, Beaten>;
    /// Claims that were never started go back (`released`).
    fn release(&self, job_id: &str, tokens: Vec<String>) -> Reply<'_, Vec<Answer>>;
    /// The worker ends in order; what runs is left to its shims and its successor.
    fn leave(&self, job_id: &str) -> Reply<'_, ()>;
    /// Pieces of logs; an answer for each, in their order. An empty piece asks what is there.
    fn logs(&self, job_id: &str, pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>>;
}
