//! The stage of a demo: a home, a standalone that can be killed, and a narrator.

use crate::clock::{Limit, pause};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_worker::dir::AttemptDir;
use fencepost_worker::page::Page;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long anything of the demo may take.
const PATIENCE: Duration = Duration::from_mins(1);
const TICK: Duration = Duration::from_millis(100);

pub(super) struct Stage<'a> {
    cx: &'a Cx,
    folder: PathBuf,
    standalone: Option<Child>,
}

impl<'a> Stage<'a> {
    /// A folder with the DAG, in which `LEDGER` stands for the ledger's path.
    pub(super) fn set(cx: &'a Cx, dag: &str) -> Outcome<Self> {
        let base = PathBuf::from(cx.env.get("TMPDIR").unwrap_or("/tmp"));
        let folder = base.join(format!("fencepost-demo-{}", crate::node::fresh_id()));
        let stage = Self { cx, folder, standalone: None };
        std::fs::create_dir_all(stage.folder.join("dags")).map_err(unexpected)?;
        let dag = dag.replace("LEDGER", &stage.folder.join("ledger").display().to_string());
        std::fs::write(stage.folder.join("dags/demo.yaml"), dag).map_err(unexpected)?;
        Ok(stage)
    }

    pub(super) fn say(&self, text: &str) {
        self.cx.out.remark(&format!("\n{text}"));
    }

    pub(super) fn note(&self, text: &str) {
        self.cx.out.remark(&format!("   {text}"));
    }

    fn fencepost(&self, args: &[&str]) -> Command {
        // This program itself, whatever its path is.
        let exe = std::env::current_exe().unwrap_or_else(|_| "fencepost".into());
        let mut command = Command::new(exe);
        command.args(args).env("FENCEPOST_HOME", self.folder.join("home"));
        command.env_remove("FENCEPOST_SERVER").env_remove("FENCEPOST_TOKEN");
        command
    }

    /// Starts the standalone, and waits until it serves.
    pub(super) fn raise(&mut self) -> Outcome<()> {
        let dags = self.folder.join("dags").display().to_string();
        let args = ["standalone", "--listen", "127.0.0.1:0", "--slots", "4", "--dags", &dags];
        let mut command = self.fencepost(&args);
        command.process_group(0).stdout(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().map_err(unexpected)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(unexpected)?;
        }
        self.note(&format!("$ fencepost {}", args[..1].join(" ")));
        self.note(line.trim());
        self.standalone = Some(child);
        Ok(())
    }

    pub(super) fn trigger(&self) -> Outcome<()> {
        self.until("the DAG to be loaded", || {
            let shown = self.fencepost(&["dags", "show", "demo"]).output();
            shown.is_ok_and(|output| output.status.success())
        })?;
        self.show(&["dags", "trigger", "demo"])
    }

    /// Runs a verb as a person would, and shows it.
    pub(super) fn show(&self, args: &[&str]) -> Outcome<()> {
        self.show_matching(args, "")
    }

    /// The same, with the lines that hold a word only (and the heading).
    pub(super) fn show_matching(&self, args: &[&str], word: &str) -> Outcome<()> {
        self.note(&format!("$ fencepost {}", args.join(" ")));
        let output = self.fencepost(args).output().map_err(unexpected)?;
        let all = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&all).into_owned();
        let shown = text.lines().enumerate().filter(|(n, line)| *n == 0 || line.contains(word));
        for (_, line) in shown {
            self.cx.out.print(&format!("   {line}\n"))?;
        }
        Ok(())
    }

    pub(super) fn follow(&self) -> Outcome<()> {
        self.show(&["runs", "watch", "demo", "@latest", "--timeout", "60s"])
    }

    /// SIGKILL to the standalone; its pid.
    pub(super) fn kill(&mut self) -> Outcome<u32> {
        let Some(mut child) = self.standalone.take() else { return Ok(0) };
        child.kill().map_err(unexpected)?;
        child.wait().map_err(unexpected)?;
        Ok(child.id())
    }

    fn attempts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.join("home/attempts"));
        entries.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect()
    }

    /// The shims that live.
    pub(super) fn processes(&self) -> Outcome<()> {
        for dir in self.attempts() {
            let Ok(page) = Page::open(&AttemptDir::new(&dir)) else { continue };
            let Some(shim) = page.shim() else { continue };
            let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
            let token = name.unwrap_or_default();
            let shown = token.parse().map_or(token, |t: fencepost_core::id::Token| t.to_string());
            self.cx.out.print(&format!("   shim {}  attempt {shown}  alive\n", shim.pid))?;
        }
        Ok(())
    }

    /// SIGKILL to the shim of the one running attempt; its pid.
    pub(super) fn kill_shim(&self, task: &str) -> Outcome<i32> {
        self.until("the task to run", || {
            let shown = self.fencepost(&["ps", "-o", "json"]).output();
            shown.is_ok_and(|output| {
                String::from_utf8_lossy(&output.stdout).contains(&format!("\"{task}\""))
            })
        })?;
        self.show(&["ps"])?;
        let shim = self
            .attempts()
            .iter()
            .find_map(|dir| Page::open(&AttemptDir::new(dir)).ok().and_then(|page| page.shim()));
        let pid = shim.and_then(|shim| rustix::process::Pid::from_raw(shim.pid));
        let pid = pid.ok_or_else(|| CliError::new(Exit::Unexpected, "no shim is running"))?;
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .map_err(|error| unexpected(error.into()))?;
        Ok(pid.as_raw_nonzero().get())
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("ledger")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    pub(super) fn wait_for_ledger(&self, count: usize) -> Outcome<()> {
        self.until("the tasks to write", || self.lines().len() >= count)
    }

    pub(super) fn wait_for_event(&self, kind: &str) -> Outcome<()> {
        self.until(&format!("an event `{kind}`"), || {
            let shown = self.fencepost(&["events", "demo", "@latest"]).output();
            shown.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(kind))
        })
    }

    /// What the tasks wrote.
    pub(super) fn ledger(&self) -> Outcome<()> {
        self.note("$ cat ledger");
        for line in self.lines() {
            self.cx.out.print(&format!("   {line}\n"))?;
        }
        Ok(())
    }

    fn until(&self, what: &str, mut condition: impl FnMut() -> bool) -> Outcome<()> {
        let limit = Limit::from_here(Some(PATIENCE));
        while !condition() {
            if limit.is_over() {
                let message = format!("waited in vain for {what}; see {}", self.folder.display());
                return Err(CliError::new(Exit::TimedOut, message));
            }
            pause(TICK);
        }
        Ok(())
    }

    /// Ends the standalone in order and removes the folder.
    pub(super) fn strike(mut self) -> Outcome<()> {
        if let Some(mut child) = self.standalone.take() {
            let pid = rustix::process::Pid::from_child(&child);
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            child.wait().map_err(unexpected)?;
        }
        std::fs::remove_dir_all(&self.folder).map_err(unexpected)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // Only after a failure: the folder stays to be looked at.
        if let Some(mut child) = self.standalone.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn unexpected(error: std::io::Error) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}
