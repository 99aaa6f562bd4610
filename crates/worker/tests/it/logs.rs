//! Output of every kind: bounded, readable live, and never a matter of life and death.

use std::process::Command;

use fencepost_worker::attempt::AttemptHost;
use fencepost_worker::outcome::{OutcomeKind, Reason};
use fencepost_worker::spec::ShimSpec;

use crate::bench::{Bench, end, log_text, processes_with, sh, shim_exe, wait_for};

fn on_disk(bench: &Bench) -> u64 {
    std::fs::read_dir(bench.dir().path())
        .unwrap()
        .filter_map(|entry| entry.ok())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log"))
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

#[test]
fn a_prompt_without_a_line_end_is_seen_live() {
    let bench = Bench::new();
    let go = bench.file("go");
    let script = format!(
        "printf 'prompt> '; while ! [ -e {} ]; do sleep 0.02; done; echo done",
        go.display()
    );
    let running = bench.launch(&sh(&script));
    wait_for("the prompt", || bench.log().contains("stdout: prompt> \n"));
    std::fs::write(&go, "").unwrap();
    end(running.as_ref());
    assert!(bench.log().contains("stdout: prompt> done\n"), "joined: {}", bench.log());
    assert_eq!(running.progress().output_bytes, 13);
}

#[test]
fn nul_and_invalid_utf8_reach_the_log_and_harm_nothing() {
    let bench = Bench::new();
    let outcome = bench.outcome(&sh("printf 'a\\0b\\377c\\n\\033[31mred\\033[0m\\n'; exit 0"));
    assert_eq!(outcome.exit_code, Some(0));
    let log = bench.log();
    assert!(log.contains("stdout: a\u{2400}b\u{fffd}c\n"), "{log}");
    assert!(log.contains("stdout: \u{1b}[31mred\u{1b}[0m\n"), "{log}");
    let raw = std::fs::read(bench.dir().log(0)).unwrap();
    assert!(raw.windows(6).any(|window| window == b"a\0b\xffc\n"), "kept as they came");
}

#[test]
fn a_line_of_100_mb_is_bounded_on_disk_and_in_memory() {
    let bench = Bench::new();
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo after";
    let running = bench.launch(&sh(script));
    let shim = std::cell::Cell::new(0);
    let peak = std::cell::Cell::new(0);
    wait_for("the end", || {
        if let Some(id) = running.progress().shim {
            shim.set(id.pid);
        }
        peak.set(peak.get().max(peak_rss_kib(shim.get())));
        bench.dir().outcome().exists()
    });
    assert_eq!(end(running.as_ref()).exit_code, Some(0));
    assert_eq!(running.progress().output_bytes, 100_000_007);
    assert!(on_disk(&bench) <= 1 << 20, "{}", on_disk(&bench));
    assert!((1..16 << 10).contains(&peak.get()), "{} KiB", peak.get());
    let log = bench.log();
    assert!(log.contains("stdout: after\n") && log.contains("bytes dropped"), "the tail is kept");
    assert!(log.ends_with("ended: exited, exit code 0\n"));
}

fn peak_rss_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[test]
fn a_task_that_prints_for_ever_is_bounded_and_can_be_stopped() {
    let bench = Bench::new();
    let running = bench.launch(&ShimSpec { kill_grace_ms: 300, ..sh("trap '' TERM; yes") });
    wait_for("a lot of output", || running.progress().output_bytes > 20_000_000);
    assert!(on_disk(&bench) <= 1 << 20);
    running.request_stop(Reason::Cancel, false);
    let outcome = end(running.as_ref());
    assert_eq!(outcome.reason, Some(Reason::Cancel));
    assert!(on_disk(&bench) <= 1 << 20);
    assert!(
        bench.log().ends_with("ended: stopped by fencepost (cancel), signal 9\n")
            || bench.log().ends_with("ended: stopped by fencepost (cancel), signal 15\n")
    );
}

/// What was said before a time-out is there to the last line, and the reason behind it.
#[test]
fn the_log_of_a_task_that_timed_out_is_whole_and_ends_with_the_reason() {
    let bench = Bench::new();
    let script = "i=0; while [ $i -lt 10000 ]; do echo \"line $i of some length, so that there is a megabyte of it, \
                  and a little more than that for good measure\"; i=$((i + 1)); done; exec sleep 600";
    let timed = ShimSpec {
        log_limit: 8 << 20,
        execution_timeout_ms: Some(4_000),
        kill_grace_ms: 300,
        ..sh(script)
    };
    assert_eq!(bench.outcome(&timed).reason, Some(Reason::ExecutionTimeout));
    let log = bench.log();
    assert!(log.len() > 1_000_000, "{} bytes", log.len());
    let said: Vec<&str> = log.lines().filter(|line| line.starts_with("stdout: line ")).collect();
    assert_eq!(said.len(), 10_000);
    for (n, line) in said.iter().enumerate() {
        assert!(line.starts_with(&format!("stdout: line {n} of ")), "{line}");
    }
    let last = log.trim_end().lines().last().unwrap();
    assert!(last.contains("execution_timeout"), "{last}");
}

#[test]
fn a_task_that_closes_its_output_goes_on() {
    let bench = Bench::new();
    let outcome = bench.outcome(&sh("echo first; exec >&- 2>&-; sleep 0.1; exit 6"));
    assert_eq!(outcome.exit_code, Some(6));
    assert!(bench.log().contains("stdout: first\n"));
}

#[test]
fn a_full_disk_costs_output_and_never_the_result() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    let small = bench.file("attempts");
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k", "none"]).arg(&small).status();
    assert!(mount.unwrap().success());
    let unmount = Unmount(small.clone());
    let spec = ShimSpec {
        log_limit: 64 << 20,
        ..sh(&format!(
            "yes | head -c 3000000; echo middle > {}; echo last; exit 3",
            bench.file("ran").display()
        ))
    };
    let running = bench.launch(&spec);
    let outcome = end(running.as_ref());
    assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Exited, Some(3)));
    assert!(bench.file("ran").exists(), "the task went on");
    assert_eq!(running.progress().output_bytes, 3_000_005);
    let log = log_text(&bench.host.dir("a"));
    assert!(log.contains("stdout: y\n"));
    assert!(log.contains("bytes of this log could not be written here"));
    assert!(log.ends_with("fencepost: ended: exited, exit code 3\n"), "the last line has its room");
    drop(unmount);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn no_shim_of_a_test_is_left_behind_by_the_shim_itself() {
    let bench = Bench::new();
    assert_eq!(bench.outcome(&sh("exit 0")).exit_code, Some(0));
    let path = bench.dir().path().to_str().unwrap().to_owned();
    let shim = shim_exe().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(processes_with(&path).is_empty(), "{shim}");
}
