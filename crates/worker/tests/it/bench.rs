//! A host in a temporary directory, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use fencepost_worker::attempt::{
    Absence, Attached, AttemptHost, Finished, HomeBoot, OsHost, RunningAttempt,
};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::dir::AttemptDir;
use fencepost_worker::log::{LineJoiner, LogQuery, read};
use fencepost_worker::outcome::Outcome;
use fencepost_worker::page::Lease;
use fencepost_worker::spec::{Containment, Level, Resources, ShimSpec, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
/// Generous: reached only by a test that fails.
const LIMIT: u64 = 60 * SECOND;

pub(crate) fn now() -> u64 {
    ClockKind::Monotonic.now_ns()
}

pub(crate) struct Bench {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) host: OsHost,
}

pub(crate) fn shim_exe() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let exe = own.parent().unwrap().parent().unwrap().join("examples/shim");
    assert!(exe.exists(), "{} is built by cargo test", exe.display());
    exe
}

impl Bench {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let host = host(temp.path(), HomeBoot::Same);
        Self { temp, host }
    }

    pub(crate) fn dir(&self) -> AttemptDir {
        self.host.dir("a")
    }

    /// A file beside the attempts, where tasks leave traces.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub(crate) fn launch(&self, spec: &ShimSpec) -> Box<dyn RunningAttempt> {
        self.launch_for(spec, hour())
    }

    pub(crate) fn launch_for(&self, spec: &ShimSpec, lease: Lease) -> Box<dyn RunningAttempt> {
        self.host.prepare("a", spec, lease).unwrap().launch().unwrap()
    }

    /// Runs to the end.
    pub(crate) fn outcome(&self, spec: &ShimSpec) -> Outcome {
        let running = self.launch(spec);
        end(running.as_ref())
    }

    pub(crate) fn log(&self) -> String {
        log_text(&self.dir())
    }

    pub(crate) fn attach(&self) -> Attached {
        self.host.attach("a", Lease { owner: 2, ..hour() }).unwrap()
    }

    pub(crate) fn prove(&self) -> Absence {
        match self.attach() {
            Attached::Absent(absent) => absent.prove().unwrap(),
            Attached::Running(_) => panic!("it runs"),
            Attached::Ended(outcome) => panic!("it ended: {outcome:?}"),
        }
    }
}

pub(crate) fn host(temp: &Path, boot: HomeBoot) -> OsHost {
    OsHost::new(&temp.join("attempts"), shim_exe(), Vec::new(), boot).unwrap()
}

pub(crate) fn hour() -> Lease {
    Lease::of(1, now() + 3_600 * SECOND)
}

pub(crate) fn log_text(dir: &AttemptDir) -> String {
    let mut joiner = LineJoiner::new(1 << 20);
    let mut lines = Vec::new();
    let mut query = LogQuery::default();
    loop {
        let page = read(dir, &query).unwrap();
        lines.extend(page.frames.into_iter().filter_map(|frame| joiner.push(frame)));
        query.after = Some(page.next);
        if !page.more {
            break;
        }
    }
    lines.extend(joiner.flush());
    lines.iter().fold(String::new(), |text, line| {
        format!("{text}{}: {}\n", line.stream.as_str(), line.text)
    })
}

pub(crate) fn spec(argv: &[&str]) -> ShimSpec {
    let attempt_id = format!("test-{}-{}", std::process::id(), now());
    ShimSpec {
        private: None,
        version: VERSION,
        token: "549755813889".into(),
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        env: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("FENCEPOST_ATTEMPT_ID".into(), attempt_id.clone()),
        ],
        attempt_id,
        cwd: "/".into(),
        run_as_user: None,
        containment: Containment::Auto,
        kill_grace_ms: 2_000,
        worker_kill_grace_ms: 30_000,
        execution_timeout_ms: None,
        stall_timeout_ms: None,
        resources: Resources::default(),
        keeps: false,
        graceful_exit_codes: Vec::new(),
        log_limit: 1 << 20,
        clock: ClockKind::Monotonic,
        margin_ms: 500,
        result_file: None,
        outputs: Vec::new(),
    }
}

pub(crate) fn sh(script: &str) -> ShimSpec {
    spec(&["sh", "-c", script])
}

pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let until = now() + LIMIT;
    while !condition() {
        assert!(now() < until, "waited in vain for {what}");
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 2_000_000 }));
    }
}

pub(crate) fn wait_end(running: &dyn RunningAttempt) {
    let fd = running.pidfd().unwrap();
    let limit = Timespec { tv_sec: (LIMIT / SECOND).cast_signed(), tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "the shim ends: {:?}", running.progress());
}

pub(crate) fn end(running: &dyn RunningAttempt) -> Outcome {
    wait_end(running);
    match running.finish().unwrap() {
        Finished::Outcome(outcome) => outcome,
        Finished::Absent(_) => panic!("the shim left no outcome"),
    }
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The levels that this machine allows this user.
pub(crate) fn levels() -> Vec<(Containment, Level)> {
    let wanted = [
        (Containment::Pidns, Level::Pidns),
        (Containment::Cgroup, Level::Cgroup),
        (Containment::Group, Level::Group),
    ];
    let found: Vec<_> = wanted
        .into_iter()
        .filter(|(containment, _)| {
            let spec = ShimSpec { containment: *containment, ..spec(&["true"]) };
            Bench::new().outcome(&spec).exit_code == Some(0)
        })
        .collect();
    assert!(found.iter().any(|(_, level)| *level == Level::Group), "group is always to be had");
    found
}

/// Runs a check at every level at once: most of it is waiting.
pub(crate) fn at_every_level(check: impl Fn(Containment, Level) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        for (containment, level) in levels() {
            scope.spawn(move || check(containment, level));
        }
    });
}

/// Processes of the host whose command line holds `marker`.
pub(crate) fn processes_with(marker: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(marker)
        })
        .collect()
}

pub(crate) fn kill(pid: i32, signal: &str) {
    let done = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}
