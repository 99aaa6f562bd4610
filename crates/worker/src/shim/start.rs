//! May this shim run its attempt, and how: everything up to the opening of the gate.
//!
//! The guards, in order: the lock is the attempt's and held by nobody else; no outcome is there;
//! the lease leaves time; no stop was asked for. Phase `Exec` is in the page before the gate
//! opens, so an attempt whose page says less never ran.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{getpid, setsid};

use super::tree::{self, Launched};
use super::user::UserPlan;
use super::watch::{Watch, WatchParts};
use crate::clock::{BootId, wall_micros};
use crate::dir::AttemptDir;
use crate::limits::{Limits, Resources};
use crate::log::LogWriter;
use crate::mask::Masker;
use crate::outcome::{Outcome, OutcomeKind};
use crate::page::{Page, Phase};
use crate::private::Private;
use crate::process::{self, ProcessId, pid_namespace};
use crate::spec::ShimSpec;
use crate::sys::{self, DeadlineTimer};

/// What came of the beginning.
pub(super) enum Begun {
    /// The user's program runs.
    Watch(Box<Watch>),
    /// Nothing of the user ran, and an outcome says so (perhaps one that was there before).
    Refused,
}

/// Why nothing ran.
struct Refusal {
    kind: OutcomeKind,
    code: Option<i32>,
    why: String,
}

impl Refusal {
    fn no_exec(why: impl ToString) -> Self {
        Self { kind: OutcomeKind::CouldNotExec, code: None, why: why.to_string() }
    }

    fn never_ran(why: impl ToString) -> Self {
        Self { kind: OutcomeKind::NeverRan, code: None, why: why.to_string() }
    }
}

/// Takes the lock and begins. An error means that the lock is not ours: nothing may be written.
pub(super) fn begin(dir: &AttemptDir) -> io::Result<Begun> {
    sys::close_all_but(&[]);
    let lock = take_lock(dir)?;
    if Outcome::read(dir)?.is_some() {
        return Ok(Begun::Refused);
    }
    let _ = rustix::thread::set_name(c"fencepost-shim");
    let _ = setsid();
    let spec = ShimSpec::read(dir);
    let token = spec.as_ref().map_or_else(|_| String::new(), |spec| spec.token.clone());
    let started = spec.map_err(Refusal::no_exec).and_then(|spec| start(dir, spec, lock));
    match started {
        Ok(watch) => Ok(Begun::Watch(Box::new(watch))),
        Err(refusal) => {
            refuse(dir, &token, refusal);
            Ok(Begun::Refused)
        }
    }
}

const LOCK_ROUNDS: u32 = 50;

/// Moves the lock away from descriptor 0. It is ours if locking it again through the same open
/// file description works and it is the file of that name in `dir`.
fn take_lock(dir: &AttemptDir) -> io::Result<OwnedFd> {
    let lock = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let (ours, named) = (fstat(&lock)?, std::fs::metadata(dir.lock())?);
    if (ours.st_dev, ours.st_ino) != (named.dev(), named.ino()) {
        return Err(io::Error::other("descriptor 0 is not the attempt's lock"));
    }
    for round in 0..=LOCK_ROUNDS {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            // A copy in a process that somebody is just forking closes in a moment.
            Err(Errno::WOULDBLOCK) if round < LOCK_ROUNDS => super::watch::sleep_ms(10),
            Err(error) => return Err(error.into()),
        }
    }
    rustix::stdio::dup2_stdin(File::options().read(true).open("/dev/null")?)?;
    Ok(lock)
}

/// Everything that a watch needs but the tree.
struct Prepared {
    page: Page,
    timer: DeadlineTimer,
    armed_for: u64,
    ctl: OwnedFd,
    signals: OwnedFd,
    plan: UserPlan,
    boot: BootId,
}

fn start(dir: &AttemptDir, mut spec: ShimSpec, lock: OwnedFd) -> Result<Watch, Refusal> {
    let private = spec.private.as_deref().map(Private::take).transpose();
    let private = private.map_err(|error| Refusal::no_exec(format!("private files: {error}")))?;
    let Private { env, argv, masked, .. } = private.unwrap_or_default();
    if !argv.is_empty() {
        spec.argv = argv;
    }
    spec.env.retain(|(name, _)| env.iter().all(|(other, _)| other != name));
    spec.env.extend(env);
    spec.check().map_err(Refusal::no_exec)?;
    let prepared = prepare(dir, &spec)?;
    let launched = tree::launch(&spec, &prepared.plan, dir).map_err(Refusal::no_exec)?;
    let page = &prepared.page;
    page.set_init(launched.tree.first(), launched.tree.level());
    if let Err(refusal) = may_go_on(page, &spec) {
        give_up(launched);
        return Err(refusal);
    }
    let limits = if spec.resources == Resources::default() {
        Limits::default()
    } else {
        limit(dir, &spec, &launched)
    };
    let now = spec.clock.now_ns();
    page.set_started_at_ns(now);
    page.set_phase(Phase::Exec);
    // A child that failed on its way to the gate has said why, which the watch will read.
    let _ = rustix::io::write(&launched.gate, b"g");
    let log = begin_log(dir, &spec, &launched, &limits);
    let Prepared { page, timer, armed_for, ctl, signals, boot, .. } = prepared;
    let masker = Masker::new(&masked);
    let parts =
        WatchParts { lock, page, timer, armed_for, ctl, signals, boot, log, masker, limits };
    Watch::new(dir, spec, launched, parts, now).map_err(Refusal::no_exec)
}

fn prepare(dir: &AttemptDir, spec: &ShimSpec) -> Result<Prepared, Refusal> {
    let page = Page::open(dir).map_err(|e| Refusal::no_exec(format!("page: {e}")))?;
    if page.clock() != Some(spec.clock) {
        return Err(Refusal::no_exec("page and spec name different clocks"));
    }
    let boot = BootId::current().map_err(Refusal::no_exec)?;
    if boot != page.boot() {
        return Err(Refusal::never_ran("the machine has started anew since this was prepared"));
    }
    let namespace = pid_namespace().map_err(Refusal::no_exec)?;
    let own = ProcessId::of(getpid().as_raw_nonzero().get());
    page.set_shim(own.ok_or_else(|| Refusal::no_exec("/proc does not show the shim"))?, namespace);
    page.set_phase(Phase::ShimAlive);
    may_go_on(&page, spec)?;
    let timer = DeadlineTimer::new(spec.clock).map_err(Refusal::no_exec)?;
    let armed_for = page.deadline_ns();
    timer.arm(armed_for.max(1)).map_err(Refusal::no_exec)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let ctl = open(dir.ctl(), flags, Mode::empty())
        .map_err(|e| Refusal::no_exec(format!("control FIFO: {e}")))?;
    let signals = sys::signals_as_fd(&[libc::SIGCHLD, libc::SIGTERM]).map_err(Refusal::no_exec)?;
    let plan =
        UserPlan::of(spec).map_err(|why| Refusal { code: Some(126), ..Refusal::no_exec(why) })?;
    rustix::process::chdir("/").map_err(Refusal::no_exec)?;
    Ok(Prepared { page, timer, armed_for, ctl, signals, plan, boot })
}

fn may_go_on(page: &Page, spec: &ShimSpec) -> Result<(), Refusal> {
    if spec.clock.now_ns() >= spec.fence_at_ns(page.deadline_ns()) {
        return Err(Refusal::never_ran("the lease leaves no time: its deadline was not renewed"));
    }
    match page.stop() {
        Some((reason, _)) => {
            Err(Refusal::never_ran(format!("stopped before its start ({})", reason.as_str())))
        }
        None => Ok(()),
    }
}

/// Ends a tree of which nothing of the user ever ran: a child whose gate closes just exits.
fn give_up(launched: Launched) {
    let Launched { mut tree, gate, .. } = launched;
    drop(gate);
    tree.kill();
    while !tree.is_empty() {
        tree.reap();
        super::watch::sleep_ms(1);
    }
    if let Some(leaf) = tree.leaf() {
        let _ = leaf.remove();
    }
}

/// The limits of the tree, of which nothing but what waits at the gate is there.
fn limit(dir: &AttemptDir, spec: &ShimSpec, launched: &Launched) -> Limits {
    let name = format!("{}-{}", spec.attempt_id, getpid().as_raw_nonzero());
    let all = process::all();
    let below = process::descendants(&all, getpid().as_raw_nonzero().get());
    let pids: Vec<i32> = below.into_iter().map(|stat| stat.id.pid).collect();
    Limits::put(spec.resources, launched.tree.leaf(), (&name, &pids), &dir.limits())
}

fn begin_log(dir: &AttemptDir, spec: &ShimSpec, launched: &Launched, limits: &Limits) -> LogWriter {
    let mut log = LogWriter::open(dir, spec.log_limit);
    for why in &launched.passed_over {
        log.remark(&format!("not to be had here: {why}"));
    }
    for why in &limits.absent {
        log.remark(why);
    }
    let level = launched.tree.level().as_str();
    log.remark(&format!("started attempt {}, containment {level}", spec.attempt_id));
    log
}

fn refuse(dir: &AttemptDir, token: &str, refusal: Refusal) {
    let outcome = Outcome {
        exit_code: refusal.code,
        error: Some(refusal.why),
        ended_at: Some(wall_micros()),
        boot_id: BootId::current().map_or_else(|_| String::new(), |boot| boot.to_string()),
        ..Outcome::bare(token, refusal.kind)
    };
    LogWriter::open(dir, 0).end(&outcome.summary());
    super::watch::write_outcome(dir, &outcome);
}
