//! What a task finds around itself: exactly what the spec says, and nothing of the worker.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use fencepost_worker::spec::{Level, ShimSpec};

use crate::bench::{Bench, levels, sh, spec, wait_for};

/// The standard output of a task that succeeds.
fn output(spec: &ShimSpec) -> String {
    let bench = Bench::new();
    let outcome = bench.outcome(spec);
    let log = bench.log();
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}\n{log}");
    log.lines()
        .filter_map(|line| line.strip_prefix("stdout: "))
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn the_environment_is_exactly_the_given_one() {
    for (containment, _) in levels() {
        let given = ShimSpec {
            containment,
            env: vec![("A".into(), "1 2=3".into()), ("EMPTY".into(), String::new())],
            ..spec(&["env"])
        };
        assert_eq!(output(&given), "A=1 2=3\nEMPTY=\n");
    }
}

#[test]
fn no_descriptor_is_inherited_and_signals_are_at_their_defaults() {
    // Descriptors that this process leaks on purpose, as a careless library would.
    let leak = std::fs::File::open("/dev/null").unwrap();
    let leaked = rustix::io::dup(&leak).unwrap();
    assert!(leaked.as_raw_fd() > 2);
    for (containment, _) in levels() {
        let script = "for f in /proc/self/fd/*; do readlink $f; done > /dev/null; \
                      ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; \
                      grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; umask; \
                      cat /proc/self/oom_score_adj";
        let found = output(&ShimSpec { containment, ..sh(script) });
        let lines: Vec<&str> = found.lines().collect();
        // 3 is the directory that `ls` itself has open.
        assert_eq!(lines[0], "0 1 2 3 /dev/null", "{found}");
        assert!(lines[1].ends_with("0000000000000000"), "blocked: {found}");
        assert!(lines[2].ends_with("0000000000000000"), "ignored: {found}");
        assert_eq!(lines[4], "0077", "{found}");
        assert!(lines[5].parse::<i32>().unwrap() >= 500, "{found}");
    }
}

#[test]
fn a_pid_namespace_has_its_own_proc() {
    for (containment, level) in levels() {
        let script =
            "readlink /proc/self | grep -q . && ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm";
        let found = output(&ShimSpec { containment, ..sh(script) });
        let inits = found.lines().last().unwrap();
        assert_eq!(inits == "fencepost-init", level == Level::Pidns, "{found}");
        if level == Level::Pidns {
            assert!(found.lines().next().unwrap().parse::<u32>().unwrap() < 10, "{found}");
        }
    }
}

#[test]
fn run_as_user_becomes_that_user_and_reaches_its_directories() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (containment, _) in levels() {
        let bench = Bench::new();
        open_to_all(bench.temp.path());
        let dir = bench.dir();
        let script = format!(
            "id -un; id -G; cd {} && touch mine && cat {} && ! cat {}",
            dir.work().display(),
            dir.lease().display(),
            dir.spec().display()
        );
        let spec = ShimSpec { containment, run_as_user: Some("nobody".into()), ..sh(&script) };
        let outcome = bench.outcome(&spec);
        let log = bench.log();
        assert_eq!(outcome.exit_code, Some(0), "{log}");
        assert!(log.contains("stdout: nobody\n") && log.contains("stdout: monotonic "), "{log}");
        assert!(!log.contains("stdout: 0\n"), "no group of root: {log}");
    }
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Everything once more without privileges: this test runs this test program as another user.
#[test]
fn an_unprivileged_worker_contains_its_tasks_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    open_to_all(temp.path());
    // The build directory may be closed to others: both programs are copied, in the same layout.
    let own = std::env::current_exe().unwrap();
    for (from, to) in [(own.clone(), "deps/it"), (crate::bench::shim_exe(), "examples/shim")] {
        let to = temp.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, &to).unwrap();
        open_to_all(&to);
        open_to_all(to.parent().unwrap());
    }
    let scratch = temp.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    std::os::unix::fs::chown(&scratch, Some(65_534), Some(65_534)).unwrap();
    let mut command = Command::new(temp.path().join("deps/it"));
    command
        .args(["--test-threads=2", "contain::", "ends::exit_codes", "ends::a_level"])
        .args(["environment::", "recover::cleanup"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", &scratch)
        .current_dir("/")
        .uid(65_534)
        .gid(65_534);
    let mut done = None;
    // A process that another test is just forking may still have the copy open for writing.
    wait_for("the copy to be closed", || match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => false,
        output => {
            done = Some(output.unwrap());
            true
        }
    });
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
