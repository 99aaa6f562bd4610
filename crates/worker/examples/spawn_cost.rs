//! Measures what a shim costs: `spawn_cost [COUNT] [SHIM]`, with `SHIM` a program that is called
//! as `SHIM DIR` or `SHIM shim DIR` (then give `shim` as third argument).
//!
//! Prints, per level of containment, the time from the spawn to the gate (the user's exec follows
//! at once), the time to the first instruction of a small user program, and the memory of shim and
//! init while the task sleeps (PSS counts shared pages by their share).

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use fencepost_worker::attempt::{AttemptHost, HomeBoot, OsHost, RunningAttempt};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::outcome::Reason;
use fencepost_worker::page::Lease;
use fencepost_worker::spec::{Containment, Resources, ShimSpec, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const CLOCK: ClockKind = ClockKind::Monotonic;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("stamp") {
        writeln!(std::io::stdout(), "{}", CLOCK.now_ns())?;
        return Ok(());
    }
    let count = args.first().map_or(Ok(200), |count| count.parse())?;
    let own = std::env::current_exe()?;
    let shim = args.get(1).map_or_else(|| own.with_file_name("shim"), PathBuf::from);
    let shim_args: Vec<OsString> = args.iter().skip(2).map(OsString::from).collect();
    let temp = tempfile::tempdir()?;
    let host = OsHost::new(&temp.path().join("attempts"), shim, shim_args, HomeBoot::Same)?;
    for containment in [Containment::Pidns, Containment::Cgroup, Containment::Group] {
        let mut bench =
            Bench { host: &host, own: &own, containment, to_gate: vec![], to_user: vec![] };
        for turn in 0..count {
            bench.turn(&format!("{containment:?}-{turn}"))?;
        }
        let memory = bench.memory(&format!("{containment:?}-memory"))?;
        let (gate, user) = (figures(&mut bench.to_gate), figures(&mut bench.to_user));
        writeln!(
            std::io::stdout(),
            "{containment:?}: spawn to gate {gate}; to the user's first instruction {user}; {memory}"
        )?;
    }
    Ok(())
}

struct Bench<'a> {
    host: &'a OsHost,
    own: &'a Path,
    containment: Containment,
    to_gate: Vec<u64>,
    to_user: Vec<u64>,
}

impl Bench<'_> {
    fn spec(&self, argv: &[&str]) -> ShimSpec {
        ShimSpec {
            private: None,
            version: VERSION,
            token: "549755813889".into(),
            attempt_id: format!("cost-{}", CLOCK.now_ns()),
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: "/".into(),
            run_as_user: None,
            containment: self.containment,
            kill_grace_ms: 1_000,
            worker_kill_grace_ms: 1_000,
            execution_timeout_ms: None,
            stall_timeout_ms: None,
            resources: Resources::default(),
            keeps: false,
            graceful_exit_codes: Vec::new(),
            log_limit: 1 << 20,
            clock: CLOCK,
            margin_ms: 1_000,
            result_file: None,
            outputs: Vec::new(),
        }
    }

    fn launch(&self, name: &str, argv: &[&str]) -> Result<(u64, Box<dyn RunningAttempt>), Failure> {
        let lease = Lease::of(1, CLOCK.now_ns() + 3_600_000_000_000);
        let prepared = self.host.prepare(name, &self.spec(argv), lease)?;
        let before = CLOCK.now_ns();
        Ok((before, prepared.launch()?))
    }

    fn turn(&mut self, name: &str) -> Result<(), Failure> {
        let own = self.own.to_string_lossy();
        let (before, running) = self.launch(name, &[&own, "stamp"])?;
        wait(running.as_ref())?;
        running.finish()?;
        self.to_gate.push(running.progress().started_at_ns.saturating_sub(before));
        let log = fs::read_to_string(self.host.dir(name).log(0))?;
        let stamp = log.lines().find_map(|line| line.split_once(" stdout F "));
        let stamp: u64 = stamp.ok_or("the task said nothing")?.1.parse()?;
        self.to_user.push(stamp.saturating_sub(before));
        Ok(())
    }

    fn memory(&self, name: &str) -> Result<String, Failure> {
        let (_, running) = self.launch(name, &["sleep", "600"])?;
        while running.progress().started_at_ns == 0 {
            poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }))?;
        }
        poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 200_000_000 }))?;
        let shim = running.progress().shim.ok_or("no shim")?.pid;
        let mut text = format!("shim {}", kib(shim)?);
        if self.containment == Containment::Pidns {
            let init = running.progress().init.ok_or("no init")?.pid;
            text += &format!(", init {}", kib(init)?);
        }
        running.request_stop(Reason::Kill, true);
        wait(running.as_ref())?;
        running.finish()?;
        Ok(text)
    }
}

fn wait(running: &dyn RunningAttempt) -> Result<(), Failure> {
    let fd = running.pidfd().ok_or("no pidfd")?;
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit))? {
        0 => Err("the shim does not end".into()),
        _ => Ok(()),
    }
}

fn figures(times: &mut [u64]) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0, |ns| ns / 1_000);
    format!("median {} us, p99 {} us", at(50), at(99))
}

fn kib(pid: i32) -> Result<String, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or("").trim().to_owned()
    };
    Ok(format!(
        "RSS {} PSS {} private dirty {}",
        field("Rss:"),
        field("Pss:"),
        field("Private_Dirty:")
    ))
}
