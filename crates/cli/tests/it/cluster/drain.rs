//! A worker whose shims cannot outlive it: SIGTERM ends what runs in time, and gives it back.

use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use rustix::process::{Pid, Signal, kill_process};

/// Runs until it is ended, and once it was runs through.
const TASK: &str = r#"
tasks:
  t:
    run: |
      [ ! -e "LEDGER.seen" ] || exit 0
      touch "LEDGER.seen"
      echo "$$" >> LEDGER
      exec sleep 600
"#;

/// Starts a worker that is PID 1 of a PID namespace of its own, as in a container.
fn contained(cluster: &Cluster, name: &str) -> Role {
    let plain = cluster.worker_command(name, &[]);
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    cluster.must_serve(name, command)
}

/// The only child of a process.
fn child_of(role: &Role) -> Pid {
    let pid = role.child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

#[test]
fn sigterm_is_a_drain_where_shims_end_with_their_worker() {
    let mut cluster = Cluster::new();
    for (key, value) in [("worker.stop_timeout", "6s"), ("worker.kill_grace", "1s")] {
        cluster.setting(key, value);
    }
    cluster.dag("d", &TASK.replace("LEDGER", cluster.path("ledger").to_str().unwrap()));
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let mut worker = contained(&cluster, "w1");
    let run = cluster.trigger("d");
    wait_for("the task to run", || !cluster.lines("ledger").is_empty());
    kill_process(child_of(&worker), Signal::TERM).unwrap();
    assert!(worker.child.wait().unwrap().success(), "{}", cluster.stderr("w1"));
    assert!(cluster.stderr("w1").contains("it is PID 1 of its container"));
    let first = cluster.attempts("d", &run, "t").remove(0);
    let said = |key: &str| first[key].as_str().unwrap_or("").to_owned();
    let ended = [said("outcome"), said("reason"), said("counted_as")];
    assert_eq!(ended, ["lost", "drain", "infra"], "{first:#}");
    assert_eq!(first["evidence"]["kind"], "exit_status");
    // At once, not when a lease is over.
    let _other = cluster.worker("w2");
    cluster.wait_state("d", &run, "success");
    assert_eq!(cluster.attempts("d", &run, "t").len(), 2);
    cluster.assert_sound();
}
