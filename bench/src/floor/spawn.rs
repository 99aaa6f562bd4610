//! Processes without an orchestrator: `fork` and `exec` alone, and a shim around the same command.

use crate::instant;
use anyhow::Context as _;
use fencepost_worker::attempt::{AttemptHost, HomeBoot, OsHost};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::page::Lease;
use fencepost_worker::spec::{Containment, Resources, ShimSpec, VERSION};
use rustix::event::{PollFd, PollFlags, poll};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CLOCK: ClockKind = ClockKind::Monotonic;
const HOUR_NS: u64 = 3_600_000_000_000;

/// `true` started and waited for, so many times by so many threads; a second.
pub fn fork_exec(count: usize, threads: usize) -> anyhow::Result<f64> {
    in_threads(count, threads, |_| {
        let status = Command::new("true").status()?;
        anyhow::ensure!(status.success(), "`true` failed");
        Ok(())
    })
}

/// Shims around `true`, prepared, launched and waited for; a second. `shim` is the binary.
pub fn shims(folder: &Path, shim: &Path, count: usize, threads: usize) -> anyhow::Result<f64> {
    let place = folder.join("floor-attempts");
    let host = OsHost::new(&place, shim, vec!["shim".into()], HomeBoot::Same)?;
    in_threads(count, threads, |n| {
        let name = format!("floor-{n}");
        let lease = Lease::of(1, CLOCK.now_ns() + HOUR_NS);
        let running = host.prepare(&name, &spec(&name), lease)?.launch()?;
        let pidfd = running.pidfd().context("the host gives no pidfd")?;
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None)?;
        running.finish()?;
        Ok(())
    })
}

fn in_threads(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Send + Sync,
) -> anyhow::Result<f64> {
    let next = Arc::new(AtomicUsize::new(0));
    let began = instant();
    std::thread::scope(|scope| {
        let turn = || -> anyhow::Result<()> {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return Ok(());
                }
                work(n)?;
            }
        };
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(turn)).collect();
        started
            .into_iter()
            .try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })
    .context("starting processes")?;
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn spec(name: &str) -> ShimSpec {
    ShimSpec {
        private: None,
        version: VERSION,
        token: "549755813889".into(),
        attempt_id: name.into(),
        argv: vec!["true".into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
        run_as_user: None,
        containment: Containment::Auto,
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
