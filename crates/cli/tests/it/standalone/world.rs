//! A home, DAG files, and standalones that come and go on them.

use crate::installation::Installation;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a condition is waited for: generous, since machines are slow at times.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct World {
    folder: tempfile::TempDir,
    /// `fencepost standalone`'s further arguments.
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// A standalone that runs; killed -9 when dropped.
pub(crate) struct Node {
    pub(crate) child: Child,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dags")).unwrap();
        let args = vec!["--slots".into(), "8".into()];
        Self { folder, args, env: Vec::new() }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn setting(&mut self, key: &str, value: &str) {
        let variable = format!("FENCEPOST__{}", key.replace('.', "__").to_uppercase());
        self.env.push((variable, value.into()));
    }

    /// Starts a standalone and waits until it serves.
    pub(crate) fn start(&self) -> Node {
        self.try_start().expect("the standalone does not start")
    }

    /// `None`: it ended before it served.
    pub(crate) fn try_start(&self) -> Option<Node> {
        self.try_start_on(self.path("dags").to_str().unwrap())
    }

    /// Starts one that is told of its DAG folder as people say it: from where they stand.
    pub(crate) fn start_on_relative_dags(&self) -> Node {
        self.try_start_on("dags").expect("the standalone does not start")
    }

    fn try_start_on(&self, dags: &str) -> Option<Node> {
        let mut args = vec!["standalone", "--listen", "127.0.0.1:0", "--dags", dags];
        args.extend(self.args.iter().map(String::as_str));
        let errors =
            std::fs::File::options().create(true).append(true).open(self.path("stderr")).unwrap();
        let mut command = self.command(&args);
        // A process group of its own: what is killed is this process and nothing else.
        command.process_group(0).stdout(Stdio::piped()).stderr(errors);
        command.current_dir(self.folder.path());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.starts_with("ready http://127.0.0.1:") {
            return Some(Node { child });
        }
        child.wait().unwrap();
        None
    }

    /// The state of the newest run.
    pub(crate) fn run_state(&self, dag: &str) -> String {
        self.json(&["runs", "show", dag, "@latest"])["state"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn wait_state(&self, dag: &str, state: &str) {
        wait_for(&format!("{dag} to be {state}"), || self.run_state(dag) == state);
    }

    pub(crate) fn attempts(&self, dag: &str, task: &str) -> Vec<Value> {
        let answer = self.json(&["tasks", "attempts", dag, "@latest", task]);
        answer.as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn wait_task(&self, dag: &str, task: &str, state: &str) {
        let is = || self.json(&["tasks", "show", dag, "@latest", task])["state"] == *state;
        wait_for(&format!("{dag}.{task} to be {state}"), is);
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// No shim of this home is left.
    pub(crate) fn wait_quiet(&self) {
        let attempts = self.home().join("attempts");
        let empty = || std::fs::read_dir(&attempts).map_or(0, Iterator::count) == 0;
        wait_for("every attempt to be archived", empty);
        let own = attempts.to_string_lossy().into_owned();
        wait_for("every shim to be gone", || !any_process(|line| line.contains(&own)));
    }
}

impl Installation for World {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.args(args).env("FENCEPOST_HOME", self.home()).envs(self.env.clone());
        command
    }
}

impl Node {
    pub(crate) fn kill9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the end that follows.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_for(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(PATIENCE, condition), "waited in vain for {what}");
}

#[expect(clippy::disallowed_methods, reason = "the one wait of these tests: for a condition")]
pub(crate) fn comes_true(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process with such a command line exists (threads and the dead left out).
pub(crate) fn any_process(matches: impl Fn(&str) -> bool) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter(|e| e.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())).any(
        |entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            matches(&String::from_utf8_lossy(&line).replace('\0', " "))
        },
    )
}

/// A task that writes `begin TASK TOKEN` and `end TASK TOKEN` to a ledger, sleeping in between.
pub(crate) fn ledger_task(ledger: &Path, seconds: &str) -> String {
    let path = ledger.display();
    format!(
        "    run: |\n      echo \"begin $FENCEPOST_TASK_ID $FENCEPOST_FENCING_TOKEN\" >> '{path}'\n      \
         sleep {seconds}\n      \
         echo \"end $FENCEPOST_TASK_ID $FENCEPOST_FENCING_TOKEN\" >> '{path}'\n"
    )
}

/// Each task began once and ended once, under one token; nothing else is in the ledger.
pub(crate) fn assert_once(lines: &[String], tasks: usize) {
    let mut sorted = lines.to_vec();
    sorted.sort();
    let unique = { sorted.clone().into_iter().collect::<std::collections::BTreeSet<_>>() };
    assert_eq!(unique.len(), sorted.len(), "something was done twice: {sorted:#?}");
    assert_eq!(sorted.len(), 2 * tasks, "{sorted:#?}");
    for line in sorted.iter().filter(|line| line.starts_with("begin ")) {
        let end = line.replacen("begin", "end", 1);
        assert!(unique.contains(&end), "no `{end}` in {sorted:#?}");
    }
}
