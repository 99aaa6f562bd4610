//! The roles as processes, as they are deployed: servers, schedulers and workers of one installation.

use anyhow::Context as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An installation of the binary on a PostgreSQL store.
pub struct Installation<'a> {
    binary: &'a Path,
    folder: PathBuf,
    url: String,
    admin: String,
    worker: String,
    address: String,
    roles: Vec<Child>,
}

impl<'a> Installation<'a> {
    /// Migrates the store and makes the tokens; DAG files are in `dags` below the folder.
    pub fn new(binary: &'a Path, folder: &Path, url: String) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder.join("dags"))?;
        let (none, roles) = (String::new(), Vec::new());
        let (admin, worker, address) = (none.clone(), none.clone(), none);
        let mut it = Self { binary, folder: folder.into(), url, admin, worker, address, roles };
        it.run(&["db", "migrate"])?;
        it.admin = it.run(&["tokens", "create", "--role", "admin"])?;
        it.worker = it.run(&["tokens", "create", "--role", "worker"])?;
        Ok(it)
    }

    fn command(&self, arguments: &[&str], home: &str) -> Command {
        let mut command = Command::new(self.binary);
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("FENCEPOST_HOME", self.folder.join(home));
        command
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(arguments, "home");
        let ran = command.args(["--store", &self.url]).output()?;
        let said = String::from_utf8_lossy(&ran.stderr);
        anyhow::ensure!(ran.status.success(), "{arguments:?}: {said}");
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }

    /// Starts a server, and waits until it serves.
    pub fn server(&mut self) -> anyhow::Result<()> {
        let url = self.url.clone();
        let command =
            self.command(&["server", "--store", &url, "--listen", "127.0.0.1:0"], "server");
        let line = self.start(command)?;
        let address = line.trim().strip_prefix("ready ").context("the server is not ready")?;
        address.clone_into(&mut self.address);
        Ok(())
    }

    /// Starts a scheduler.
    pub fn scheduler(&mut self) -> anyhow::Result<()> {
        let (url, dags) = (self.url.clone(), self.folder.join("dags"));
        let mut command = self.command(&["scheduler", "--store", &url], "scheduler");
        command.arg("--dags").arg(dags);
        self.start(command).map(drop)
    }

    /// Starts a triggerer.
    pub fn triggerer(&mut self) -> anyhow::Result<()> {
        let url = self.url.clone();
        let command = self.command(&["triggerer", "--store", &url], "triggerer");
        self.start(command).map(drop)
    }

    /// Starts a worker of the first server.
    pub fn worker(&mut self, slots: usize) -> anyhow::Result<()> {
        let (server, slots) = (self.address.clone(), slots.to_string());
        let arguments = ["worker", "--server", &server, "--name", "bench", "-c", &slots];
        let mut command = self.command(&arguments, "worker");
        command.arg("--home").arg(self.folder.join("worker"));
        command.env("FENCEPOST_WORKER_TOKEN", &self.worker);
        self.start(command).map(drop)
    }

    fn start(&mut self, mut command: Command) -> anyhow::Result<String> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        self.roles.push(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        anyhow::ensure!(line.starts_with("ready"), "a role says `{}`", line.trim());
        Ok(line)
    }

    /// Triggers a run.
    pub fn trigger(&self, dag_id: &str) -> anyhow::Result<()> {
        let mut command = self.command(&["dags", "trigger", dag_id], "home");
        command.env("FENCEPOST_SERVER", &self.address).env("FENCEPOST_TOKEN", &self.admin);
        let ran = command.output()?;
        let said = String::from_utf8_lossy(&ran.stderr);
        anyhow::ensure!(ran.status.success(), "triggering {dag_id}: {said}");
        Ok(())
    }

    /// The processes, in the order of their start.
    pub fn pids(&self) -> Vec<u32> {
        self.roles.iter().map(Child::id).collect()
    }

    /// The folder of DAG files.
    pub fn dags(&self) -> PathBuf {
        self.folder.join("dags")
    }
}

impl Drop for Installation<'_> {
    fn drop(&mut self) {
        for role in self.roles.iter_mut().rev() {
            // Nothing is to be kept of it.
            let _ = role.kill();
            let _ = role.wait();
        }
    }
}
