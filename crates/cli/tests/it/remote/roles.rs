//! One of each role as people run them: real processes on PostgreSQL.

use crate::standalone::world::{assert_once, ledger_task, wait_for};
use fencepost_testing::Database;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

struct Roles {
    folder: tempfile::TempDir,
    database: Database,
    address: String,
    admin: String,
    worker: String,
}

/// A process of a role; killed -9 when dropped.
struct Role(Child);

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Role {
    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

fn migrated() -> Database {
    Database::from_template("fencepost_roles", |url| {
        let options = fencepost_store::PgOptions::new("test", || fencepost_core::time::Span::ZERO);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(fencepost_store::migrate_postgres(url, options)).unwrap();
    })
    .unwrap()
}

impl Roles {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dags")).unwrap();
        let (address, admin, worker) = Default::default();
        let mut own = Self { folder, database: migrated(), address, admin, worker };
        let url = own.database.url().to_owned();
        let token = |role: &str| {
            own.must(&["tokens", "create", "--role", role, "--store", &url]).trim().to_owned()
        };
        (own.admin, own.worker) = (token("admin"), token("worker"));
        own
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("FENCEPOST_HOME", self.path("home")).env("FENCEPOST_TOKEN", &self.admin);
        command.env("FENCEPOST_SERVER", &self.address);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {text}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).args(["-o", "json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn spawn(&self, name: &str, mut command: Command) -> (Role, String) {
        let errors = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{name}.stderr")))
            .unwrap();
        command.process_group(0).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{name}: `{line}` {}", self.stderr(name));
        (Role(child), line)
    }

    fn stderr(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.stderr"))).unwrap_or_default()
    }

    fn server(&mut self, more: &[&str]) -> Role {
        let mut command = self.command(&["server", "--store", self.database.url()]);
        let (role, line) = self.spawn("server", {
            command.args(more);
            command
        });
        line.trim().strip_prefix("ready ").unwrap().clone_into(&mut self.address);
        role
    }

    fn scheduler(&self) -> Role {
        let dags = self.path("dags");
        let dags = dags.to_str().unwrap();
        let mut command =
            self.command(&["scheduler", "--store", self.database.url(), "--dags", dags]);
        command.args(["--listen", "127.0.0.1:0"]);
        let (role, line) = self.spawn("scheduler", command);
        let address = line.trim().strip_prefix("ready ").unwrap();
        let mut health = self.command(&["health", "--server", address, "-o", "json"]);
        health.env("FENCEPOST_CA", self.path("cert.pem"));
        assert!(!health.output().unwrap().stdout.is_empty(), "it answers at {address}");
        role
    }

    fn worker(&self, more: &[&str]) -> Role {
        let home = self.path("w1");
        let home = home.to_str().unwrap();
        let mut command =
            self.command(&["worker", "--server", &self.address, "--name", "w1", "-q", "default"]);
        command.args(["-c", "8", "--home", home]).args(more);
        command.env("FENCEPOST_WORKER_TOKEN", &self.worker).env_remove("FENCEPOST_TOKEN");
        self.spawn("w1", command).0
    }

    fn trigger(&self, dag: &str) -> String {
        wait_for("the DAG to be loaded", || self.json(&["dags", "show", dag]).is_object());
        self.must(&["dags", "trigger", dag, "-o", "name"]).trim().to_owned()
    }

    fn wait_success(&self, dag: &str, run: &str) {
        wait_for("the run to succeed", || {
            let state = self.json(&["runs", "show", dag, run])["state"].clone();
            assert_ne!(state, "failed", "{}", self.must(&["logs", dag, run]));
            state == "success"
        });
    }

    fn dag(&self, name: &str, yaml: &str) {
        std::fs::write(self.path("dags").join(format!("{name}.yaml")), yaml).unwrap();
    }
}

/// Every role is restarted while a task runs; what the task prints is read from the server.
#[test]
fn one_of_each_role_carries_a_run_out_and_may_be_restarted_meanwhile() {
    let mut own = Roles::new();
    let task = ledger_task(&own.path("ledger"), "4");
    let fencepost = env!("CARGO_BIN_EXE_fencepost");
    own.dag(
        "one",
        &format!(
            "tasks:\n  slow:\n{task}  ask:\n    run: |\n      {fencepost} fence check\n      \
             {fencepost} xcom set word hello\n      {fencepost} xcom get word\n  \
             read:\n    depends_on: [ask]\n    run: |\n      {fencepost} xcom get word --task ask\n"
        ),
    );
    let server = own.server(&["--listen", "127.0.0.1:0"]);
    let listen = own.address.strip_prefix("http://").unwrap().to_owned();
    let (scheduler, worker) = (own.scheduler(), own.worker(&[]));
    let run = own.trigger("one");
    let lines = || std::fs::read_to_string(own.path("ledger")).unwrap_or_default();
    wait_for("the task to begin", || lines().contains("begin"));
    let second = own.command(&["worker", "--server", &own.address, "--home"]);
    refused_for_its_home(&own, second, worker.0.id());
    server.stop();
    scheduler.stop();
    drop(worker);
    let server = own.server(&["--listen", &listen]);
    let (scheduler, worker) = (own.scheduler(), own.worker(&[]));
    own.wait_success("one", &run);
    let ledger: Vec<String> =
        std::fs::read_to_string(own.path("ledger")).unwrap().lines().map(Into::into).collect();
    assert_once(&ledger, 1);
    wait_for("the log to arrive", || own.must(&["logs", "one", &run, "read"]).contains("hello"));
    own.must(&["doctor"]);
    for role in [worker, scheduler, server] {
        role.stop();
    }
}

fn refused_for_its_home(own: &Roles, mut command: Command, pid: u32) {
    command.arg(own.path("w1")).env("FENCEPOST_WORKER_TOKEN", &own.worker);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains(&pid.to_string()) && text.contains("--take-over"), "{text}");
}

/// Beyond this host there is TLS, or a word that says that nobody listens in.
#[test]
fn tls_serves_workers_people_and_tasks_and_is_asked_for_beyond_this_host() {
    let mut own = Roles::new();
    let refused = own.run(&["server", "--store", own.database.url(), "--listen", "0.0.0.0:0"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("tls_cert") && text.contains("insecure"), "{text}");
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(own.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(own.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::create_dir_all(own.path("home")).unwrap();
    let config = format!(
        "[server]\ntls_cert = {:?}\ntls_key = {:?}\n",
        own.path("cert.pem"),
        own.path("key.pem")
    );
    std::fs::write(own.path("home/fencepost.toml"), config).unwrap();
    let fencepost = env!("CARGO_BIN_EXE_fencepost");
    own.dag("one", &format!("tasks:\n  ask: {{run: '{fencepost} fence check'}}\n"));
    let _server = own.server(&["--listen", "127.0.0.1:0"]);
    assert!(own.address.starts_with("https://"), "{}", own.address);
    let ca = own.path("cert.pem");
    let ca = ca.to_str().unwrap();
    let _scheduler = own.scheduler();
    let _worker = own.worker(&["--ca", ca]);
    let with_ca = |args: &[&str]| own.must(&[args, &["--ca", ca]].concat());
    wait_for("the DAG to be loaded", || {
        own.run(&["dags", "show", "one", "--ca", ca]).status.success()
    });
    let run = with_ca(&["dags", "trigger", "one", "-o", "name"]);
    wait_for("the run to succeed", || {
        with_ca(&["runs", "show", "one", run.trim(), "-o", "json"]).contains("\"success\"")
    });
    let untrusted = own.run(&["dags", "list"]);
    assert_eq!(untrusted.status.code(), Some(7), "{}", String::from_utf8_lossy(&untrusted.stderr));
}
