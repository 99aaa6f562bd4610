//! The page: one small file that worker and shim both map, so that a renewal is one store to
//! memory and costs no system call and no wake-up.
//!
//! Every field is one 64-bit atomic. The *lease word* holds the owner's generation (16 bits) and
//! the deadline (48 bits of microseconds, rounded down) together: taking an attempt over raises
//! the generation and sets the deadline in one compare-and-set, and a push of an earlier owner
//! fails, however late it comes. The phase is raised before, and never after, what it announces.
#![expect(unsafe_code, reason = "memory shared between processes is mapped by hand")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::clock::{BootId, ClockKind};
use crate::dir::AttemptDir;
use crate::outcome::Reason;
use crate::process::ProcessId;
use crate::spec::Level;

const WORDS: usize = 32;
const BYTES: usize = 4096;
/// "fencepg" and the version of the layout; fields are only ever added.
const MAGIC: u64 = u64::from_be_bytes(*b"fencepg\x01");

const DEADLINE_BITS: u32 = 48;
const DEADLINE_MASK: u64 = (1 << DEADLINE_BITS) - 1;
const KILL_NOW: u64 = 1 << 8;

#[derive(Clone, Copy)]
enum Word {
    Magic,
    Clock,
    Owner,
    Lease,
    ShimPid,
    ShimStart,
    InitPid,
    InitStart,
    PidNamespace,
    Phase,
    Stop,
    Level,
    StartedAt,
    LastActivity,
    BootHigh,
    BootLow,
    OutputBytes,
}

/// How far the shim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The worker made the directory.
    Made,
    /// A shim lives; nothing of the user has run.
    ShimAlive,
    /// From here on the user's program may have run.
    Exec,
    /// The outcome is written.
    Ended,
}

/// Who owns an attempt, until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Who the owner is; for people and checks, the generation in the page is what decides.
    pub owner: u64,
    /// On the page's clock.
    pub deadline_ns: u64,
    /// Time to end, and no more: an earlier deadline that the page has stays.
    pub is_spent: bool,
}

impl Lease {
    /// A lease that its owner means to renew.
    pub const fn of(owner: u64, deadline_ns: u64) -> Self {
        Self { owner, deadline_ns, is_spent: false }
    }

    /// The deadline after a take-over of what has this one.
    pub fn over(&self, deadline_ns: u64) -> u64 {
        if self.is_spent { self.deadline_ns.min(deadline_ns) } else { self.deadline_ns }
    }
}

/// Why a push was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushRefused {
    /// Another owner took the attempt over.
    #[error("another owner has taken the attempt over")]
    NotOwner,
    /// What has ended cannot be renewed: the tree is being killed.
    #[error("the lease ran out before this renewal")]
    Expired,
}

/// A mapped page.
#[derive(Debug)]
pub struct Page {
    words: NonNull<AtomicU64>,
}

// SAFETY: the mapping lives as long as `Page`, and all access goes through atomics.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made, dropped once.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), BYTES) };
    }
}

impl Page {
    /// Makes the page of a new attempt. It appears whole or not at all: a directory without a page
    /// never had a shim.
    pub fn create(
        dir: &AttemptDir,
        clock: ClockKind,
        lease: Lease,
        boot: BootId,
    ) -> io::Result<Self> {
        let mut words = [0u64; BYTES / 8];
        let (high, low) = boot.words();
        for (word, value) in [
            (Word::Magic, MAGIC),
            (Word::Clock, clock.code()),
            (Word::Owner, lease.owner),
            (Word::Lease, lease_word(0, lease.deadline_ns)),
            (Word::BootHigh, high),
            (Word::BootLow, low),
        ] {
            words[word as usize] = value;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let tmp = dir.path().join("page.tmp");
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&tmp)?;
        file.write_all(&bytes)?;
        drop(file);
        fs::rename(&tmp, dir.page())?;
        Self::open(dir)
    }

    /// Maps the page of an attempt.
    pub fn open(dir: &AttemptDir) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(dir.page())?;
        if file.metadata()?.len() < BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "page is cut off"));
        }
        let page = Self::map(&file)?;
        if page.get(Word::Magic) != MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "page has an unknown layout"));
        }
        Ok(page)
    }

    fn map(file: &File) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else points to it.
        let start =
            unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0) }?;
        let words = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at null"))?;
        Ok(Self { words })
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        const { assert!((Word::OutputBytes as usize) < WORDS && WORDS * 8 <= BYTES) };
        // SAFETY: within the mapping (asserted above), aligned, and only ever used as an atomic.
        unsafe { self.words.add(word as usize).as_ref() }
    }

    fn get(&self, word: Word) -> u64 {
        self.word(word).load(SeqCst)
    }

    fn set(&self, word: Word, value: u64) {
        self.word(word).store(value, SeqCst);
    }

    /// The clock that the deadline counts on.
    pub fn clock(&self) -> Option<ClockKind> {
        ClockKind::from_code(self.get(Word::Clock))
    }

    /// The boot during which the page was made.
    pub fn boot(&self) -> BootId {
        BootId::from_words(self.get(Word::BootHigh), self.get(Word::BootLow))
    }

    /// Owner and deadline.
    pub fn lease(&self) -> Lease {
        Lease::of(self.get(Word::Owner), self.deadline_ns())
    }

    /// The deadline on the page's clock.
    pub fn deadline_ns(&self) -> u64 {
        (self.get(Word::Lease) & DEADLINE_MASK).saturating_mul(1_000)
    }

    /// The generation of the present owner.
    pub fn generation(&self) -> u64 {
        self.get(Word::Lease) >> DEADLINE_BITS
    }

    /// Takes the attempt over: one compare-and-set on what was seen, which also sets the deadline,
    /// down as well as up. `None` if another owner was faster.
    pub fn take_over(&self, lease: Lease) -> Option<u64> {
        let mut seen = self.get(Word::Lease);
        let generation = (seen >> DEADLINE_BITS).wrapping_add(1) & 0xffff;
        loop {
            let new = lease_word(generation, lease.over((seen & DEADLINE_MASK) * 1_000));
            match self.word(Word::Lease).compare_exchange(seen, new, SeqCst, SeqCst) {
                Ok(_) => {
                    self.set(Word::Owner, lease.owner);
                    return Some(generation);
                }
                // A push of the owner that is being replaced only moved the deadline.
                Err(now) if now >> DEADLINE_BITS == seen >> DEADLINE_BITS => seen = now,
                Err(_) => return None,
            }
        }
    }

    /// Moves the deadline, if `generation` still owns the attempt and its lease has not run out.
    pub fn push(&self, generation: u64, deadline_ns: u64, now_ns: u64) -> Result<(), PushRefused> {
        let new = lease_word(generation, deadline_ns);
        let refused = |seen: u64| {
            if seen >> DEADLINE_BITS != generation {
                Some(PushRefused::NotOwner)
            } else if (seen & DEADLINE_MASK) * 1_000 <= now_ns {
                Some(PushRefused::Expired)
            } else {
                None
            }
        };
        let mut seen = self.get(Word::Lease);
        loop {
            if let Some(why) = refused(seen) {
                return Err(why);
            }
            match self.word(Word::Lease).compare_exchange(seen, new, SeqCst, SeqCst) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// How far the shim has come.
    pub fn phase(&self) -> Phase {
        match self.get(Word::Phase) {
            0 => Phase::Made,
            1 => Phase::ShimAlive,
            2 => Phase::Exec,
            _ => Phase::Ended,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.set(Word::Phase, phase as u64);
    }

    /// The stop that was asked for, and whether it is to be SIGKILL at once.
    pub fn stop(&self) -> Option<(Reason, bool)> {
        match self.get(Word::Stop) {
            0 => None,
            word => {
                let code = u8::try_from(word & 0xff).unwrap_or(u8::MAX);
                Some((Reason::from_code(code), word & KILL_NOW != 0))
            }
        }
    }

    /// Asks for a stop. The first reason stays; a later "kill now" is added to it.
    pub fn request_stop(&self, reason: Reason, kill_now: bool) {
        let asked = u64::from(reason.code());
        let _ = self.word(Word::Stop).compare_exchange(0, asked, SeqCst, SeqCst);
        if kill_now {
            self.word(Word::Stop).fetch_or(KILL_NOW, SeqCst);
        }
    }

    /// The shim, as seen in its PID namespace ([`Page::pid_namespace`]).
    pub fn shim(&self) -> Option<ProcessId> {
        self.process(Word::ShimPid, Word::ShimStart)
    }

    /// The first process of the tree: the init of a PID namespace, or the main process.
    pub fn init(&self) -> Option<ProcessId> {
        self.process(Word::InitPid, Word::InitStart)
    }

    fn process(&self, pid: Word, start: Word) -> Option<ProcessId> {
        let start = self.get(start);
        // The start time is written last, so that a pid is never paired with nothing.
        let pid = i32::try_from(self.get(pid)).ok()?;
        (start != 0 && pid != 0).then_some(ProcessId { pid, start })
    }

    fn set_process(&self, words: (Word, Word), id: ProcessId) {
        self.set(words.1, 0);
        self.set(words.0, u64::try_from(id.pid).unwrap_or(0));
        self.set(words.1, id.start);
    }

    pub(crate) fn set_shim(&self, id: ProcessId, pid_namespace: u64) {
        self.set(Word::PidNamespace, pid_namespace);
        self.set_process((Word::ShimPid, Word::ShimStart), id);
    }

    pub(crate) fn set_init(&self, id: ProcessId, level: Level) {
        self.set(Word::Level, level.code());
        self.set_process((Word::InitPid, Word::InitStart), id);
    }

    /// The inode of the PID namespace in which the pids of this page mean something.
    pub fn pid_namespace(&self) -> u64 {
        self.get(Word::PidNamespace)
    }

    /// The level of containment reached.
    pub fn level(&self) -> Option<Level> {
        Level::from_code(self.get(Word::Level))
    }

    /// When the user's program was let go, on the page's clock; 0 before.
    pub fn started_at_ns(&self) -> u64 {
        self.get(Word::StartedAt)
    }

    pub(crate) fn set_started_at_ns(&self, at: u64) {
        self.set(Word::StartedAt, at);
        self.set(Word::LastActivity, at);
    }

    /// The last output (or CPU use, with a `stall_timeout`), on the page's clock.
    pub fn last_activity_ns(&self) -> u64 {
        self.get(Word::LastActivity)
    }

    pub(crate) fn set_last_activity_ns(&self, at: u64) {
        self.set(Word::LastActivity, at);
    }

    /// Bytes of output read so far, also those that the log's bounds dropped.
    pub fn output_bytes(&self) -> u64 {
        self.get(Word::OutputBytes)
    }

    pub(crate) fn set_output_bytes(&self, bytes: u64) {
        self.set(Word::OutputBytes, bytes);
    }
}

fn lease_word(generation: u64, deadline_ns: u64) -> u64 {
    generation << DEADLINE_BITS | (deadline_ns / 1_000).min(DEADLINE_MASK)
}

#[cfg(test)]
mod tests;
