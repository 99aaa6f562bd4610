//! A database, and roles that come and go around it.

use crate::installation::Installation;
use crate::standalone::world::wait_for;
use fencepost_testing::Database;
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    url: String,
    /// `None`: on a server of its own.
    database: Option<Database>,
    /// Settings of every role, as variables.
    env: Vec<(String, String)>,
    /// Where the first server listened: a later one listens there again.
    address: RefCell<Option<String>>,
    admin: String,
    worker: String,
}

/// A process of a role; killed -9 when dropped.
pub(crate) struct Role {
    pub(crate) child: Child,
    name: String,
}

impl Cluster {
    /// A migrated database, with tokens; no role runs yet.
    pub(crate) fn new() -> Self {
        let database = Database::empty().unwrap();
        let url = database.url().to_owned();
        Self { database: Some(database), ..Self::on(url) }
    }

    /// Likewise, on a database of a server of its own.
    pub(crate) fn on(url: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dags")).unwrap();
        let (admin, worker) = (String::new(), String::new());
        let (address, env) = (RefCell::default(), Vec::new());
        let mut cluster = Self { folder, url, database: None, env, address, admin, worker };
        let url = cluster.url.clone();
        cluster.must(&["db", "migrate", "--store", &url]);
        let token = |role| {
            cluster.must(&["tokens", "create", "--role", role, "--store", &url]).trim().to_owned()
        };
        (cluster.admin, cluster.worker) = (token("admin"), token("worker"));
        cluster
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where the server listens.
    pub(crate) fn address(&self) -> String {
        self.address.borrow().clone().unwrap()
    }

    /// The administrator's token.
    pub(crate) fn admin(&self) -> &str {
        &self.admin
    }

    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    /// A setting of every role that starts from now on.
    pub(crate) fn setting(&mut self, key: &str, value: &str) {
        let variable = format!("FENCEPOST__{}", key.replace('.', "__").to_uppercase());
        self.env.push((variable, value.into()));
    }

    /// A lease of some seconds, with the beat, the fence and the grace that belong to it.
    pub(crate) fn short_worker_leases(&mut self) {
        for (key, value) in [
            ("worker.lease_ttl", "6s"),
            ("worker.heartbeat_interval", "1s"),
            ("worker.self_fence", "4s"),
            ("worker.kill_grace", "1s"),
        ] {
            self.setting(key, value);
        }
    }

    /// Leases of schedulers and servers that are over in seconds.
    pub(crate) fn short_scheduler_leases(&mut self) {
        for (key, value) in [
            ("scheduler.lease_ttl", "6s"),
            ("server.lease_ttl", "6s"),
            ("triggerer.lease_ttl", "6s"),
            ("scheduler.heartbeat_interval", "1s"),
        ] {
            self.setting(key, value);
        }
    }

    /// Starts a server and waits until it serves, on the address of the first one.
    pub(crate) fn server(&self) -> Role {
        let known = self.address.borrow().clone();
        let listen = known.unwrap_or_else(|| "127.0.0.1:0".into());
        let args = ["server", "--store", self.url(), "--listen", &listen];
        let (role, line) = self.spawn("server", self.command(&args));
        let address = line
            .trim()
            .strip_prefix("ready http://")
            .unwrap_or_else(|| panic!("the server says `{line}`: {}", self.stderr("server")));
        *self.address.borrow_mut() = Some(address.to_owned());
        role
    }

    pub(crate) fn scheduler(&self, name: &str) -> Role {
        self.scheduler_on(name, "dags")
    }

    /// Starts a scheduler with that folder.
    pub(crate) fn scheduler_on(&self, name: &str, folder: &str) -> Role {
        let dags = self.path(folder);
        let args = ["scheduler", "--store", self.url(), "--dags", dags.to_str().unwrap()];
        self.must_serve(name, self.command(&args))
    }

    /// Starts a scheduler with more variables of its own.
    #[cfg(feature = "crash-points")]
    pub(crate) fn scheduler_at(&self, name: &str, variables: &[(&str, &str)]) -> Role {
        let dags = self.path("dags");
        let args = ["scheduler", "--store", self.url(), "--dags", dags.to_str().unwrap()];
        let mut command = self.command(&args);
        command.envs(variables.iter().copied());
        self.must_serve(name, command)
    }

    /// Starts a worker whose home bears its name.
    pub(crate) fn triggerer(&self, name: &str) -> Role {
        self.must_serve(name, self.command(&["triggerer", "--store", self.url()]))
    }

    pub(crate) fn worker(&self, name: &str) -> Role {
        self.must_serve(name, self.worker_command(name, &[]))
    }

    /// Likewise, with so many slots.
    pub(crate) fn worker_of_slots(&self, name: &str, slots: usize) -> Role {
        let mut command = self.worker_command(name, &[]);
        command.env("FENCEPOST__WORKER__SLOTS", slots.to_string());
        self.must_serve(name, command)
    }

    /// Starts a worker of that name in the home of another one.
    pub(crate) fn worker_in(&self, home: &str, name: &str) -> Role {
        self.must_serve(name, self.worker_of(home, name))
    }

    /// Starts a worker with more variables of its own.
    #[cfg(feature = "crash-points")]
    pub(crate) fn worker_at(&self, name: &str, variables: &[(&str, &str)]) -> Role {
        let mut command = self.worker_command(name, &[]);
        command.envs(variables.iter().copied());
        self.must_serve(name, command)
    }

    pub(crate) fn worker_command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = self.worker_of(name, name);
        command.args(more);
        command
    }

    fn worker_of(&self, home: &str, name: &str) -> Command {
        let server =
            format!("http://{}", self.address.borrow().as_deref().unwrap_or("127.0.0.1:1"));
        let home = self.path(home);
        let mut command = self.command(&["worker", "--server", &server, "--name", name]);
        if !self.env.iter().any(|(name, _)| name == "FENCEPOST__WORKER__SLOTS") {
            command.env("FENCEPOST__WORKER__SLOTS", "8");
        }
        command.args(["--home", home.to_str().unwrap()]);
        command.env("FENCEPOST_WORKER_TOKEN", &self.worker).env_remove("FENCEPOST_TOKEN");
        command
    }

    pub(crate) fn must_serve(&self, name: &str, command: Command) -> Role {
        let (role, line) = self.spawn(name, command);
        assert!(line.starts_with("ready"), "{name} says `{line}`: {}", self.stderr(name));
        role
    }

    /// Starts a role and reads its first line; empty if it ended before.
    fn spawn(&self, name: &str, mut command: Command) -> (Role, String) {
        let errors = self.path(&format!("{name}.stderr"));
        let errors = std::fs::File::options().create(true).append(true).open(errors).unwrap();
        // A process group of its own: what is killed is this process and nothing else.
        command.process_group(0).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Role { child, name: name.to_owned() }, line)
    }

    pub(crate) fn stderr(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.stderr"))).unwrap_or_default()
    }

    pub(crate) fn run_state(&self, dag: &str, run: &str) -> String {
        self.json(&["runs", "show", dag, run])["state"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn wait_state(&self, dag: &str, run: &str, state: &str) {
        wait_for(&format!("{dag} {run} to be {state}"), || self.run_state(dag, run) == state);
    }

    pub(crate) fn attempts(&self, dag: &str, run: &str, task: &str) -> Vec<Value> {
        let answer = self.json(&["tasks", "attempts", dag, run, task]);
        answer.as_array().cloned().unwrap_or_default()
    }
}

impl Installation for Cluster {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("FENCEPOST_HOME", self.path("home")).envs(self.env.clone());
        command.env("FENCEPOST_TOKEN", &self.admin);
        if let Some(address) = self.address.borrow().as_ref() {
            command.env("FENCEPOST_SERVER", format!("http://{address}"));
        }
        command
    }
}

impl Role {
    pub(crate) fn kill9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// SIGTERM, and the end that follows.
    pub(crate) fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{} ended with {status}", self.name);
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
