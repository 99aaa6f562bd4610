//! What a standalone costs when nothing happens, and how long a triggered task takes to start in
//! that same configuration; and what a server, a scheduler and a worker on PostgreSQL cost.
//!
//! `cargo build --release -p fencepost-cli && cargo run --release -p fencepost-bench --bin idle`
//! prints memory (PSS), CPU, the median from the API call to the task's first instruction, and what a
//! shim takes while its task runs; of the roles also the store's transactions a second.

use anyhow::Context as _;
use fencepost_bench::roles::Installation;
use fencepost_bench::stores::{Place, Stores};
use fencepost_bench::watched::{Counts, cpu_of, pss_mb};
use fencepost_bench::{instant, out};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

const TRIGGERS: usize = 40;
const LONG_TASKS: usize = 4;
const IDLE: Duration = Duration::from_secs(20);
/// Until everything that is made once is there, and for how long the roles are watched.
const WARM: Duration = Duration::from_secs(10);
const IDLE_ROLES: Duration = Duration::from_mins(1);

fn main() -> anyhow::Result<()> {
    let binary = std::env::args().nth(1).unwrap_or_else(|| "target/release/fencepost".into());
    let folder = tempfile::tempdir()?;
    let mut node = Node::start(Path::new(&binary), folder.path())?;
    let figures = measure(&node, folder.path());
    node.child.kill()?;
    node.child.wait()?;
    figures?;
    roles(Path::new(&binary), &folder.path().join("roles"))
}

/// One of each role, with a DAG that is loaded and not due.
fn roles(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let stores = Stores::new("")?;
    let place = stores.place(Stores::POSTGRES, "idle")?;
    let Place::Postgres(url) = place else { anyhow::bail!("not PostgreSQL") };
    let mut installation = Installation::new(binary, folder, url)?;
    std::fs::write(installation.dags().join("rest.yaml"), "tasks:\n  t: {command: [\"true\"]}\n")?;
    installation.server()?;
    installation.scheduler()?;
    installation.worker(8)?;
    pause(WARM);
    let pids = installation.pids();
    let cpu = || pids.iter().map(|pid| cpu_of(*pid)).sum::<anyhow::Result<f64>>();
    let (before, used) = (Counts::read(stores.server(), "idle")?, cpu()?);
    let began = instant();
    pause(IDLE_ROLES);
    let after = Counts::read(stores.server(), "idle")?;
    let (took, used) = (began.elapsed().as_secs_f64(), cpu()? - used);
    // The reading of the counts is one of them.
    let made = after.transactions - before.transactions - 1.0;
    out("idle server, scheduler and worker on PostgreSQL");
    let memory: Vec<f64> = pids.iter().map(|pid| pss_mb(*pid)).collect::<Result<_, _>>()?;
    let all: f64 = memory.iter().sum();
    let of = |n: usize| memory.get(n).copied().unwrap_or(0.0);
    out(&format!("  memory (PSS) of all     {all:8.1} MB  (aim: under 100)"));
    out(&format!("    each                  {:8.1} {:.1} {:.1} MB", of(0), of(1), of(2)));
    out(&format!("  transactions            {:8.2} /s  (aim: at most 2)", made / took));
    out(&format!("  CPU                     {:8.2} %   of a core", 100.0 * used / took));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn measure(node: &Node, folder: &Path) -> anyhow::Result<()> {
    // One run first, so that everything that is made once is there.
    node.latency(folder)?;
    pause(Duration::from_secs(3));
    let (before, began) = (cpu_of(node.child.id())?, instant());
    pause(IDLE);
    let share = (cpu_of(node.child.id())? - before) / began.elapsed().as_secs_f64() * 100.0;
    println!("idle standalone");
    println!("  memory (PSS)            {:8.1} MB  (bound: 40)", pss_mb(node.child.id())?);
    println!("  CPU                     {share:8.2} %   of a core (bound: 1)");
    let mut latencies: Vec<f64> = Vec::new();
    for _ in 0..TRIGGERS {
        latencies.push(node.latency(folder)?);
    }
    latencies.sort_by(f64::total_cmp);
    println!("  trigger to task, median {:8.1} ms  (bound: 50)", latencies[TRIGGERS / 2]);
    println!("  trigger to task, worst  {:8.1} ms", latencies[TRIGGERS - 1]);
    let (shims, shim_mb) = node.shims(folder)?;
    println!("  a shim with its init    {shim_mb:8.2} MB  (bound: 4; {shims} processes)");
    Ok(())
}

struct Node {
    child: Child,
    address: String,
    token: String,
}

impl Node {
    fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let dags = folder.join("dags");
        std::fs::create_dir(&dags)?;
        let stamp = folder.join("stamp");
        let task = format!(
            "tasks:\n  t: {{command: [sh, -c, 'date +%s%N > {0}.tmp && mv {0}.tmp {0}']}}\n",
            stamp.display()
        );
        std::fs::write(dags.join("stamp.yaml"), task)?;
        let long = "max_active_tasks: 8\ntasks:\n  t:\n    expand: {n: [1, 2, 3, 4]}\n    command: [sleep, '5']\n";
        std::fs::write(dags.join("long.yaml"), long)?;
        let home = folder.join("home");
        let mut child = Command::new(binary)
            .args(["standalone", "--listen", "127.0.0.1:0", "--home"])
            .arg(&home)
            .arg("--dags")
            .arg(&dags)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("ready http://").context("not ready")?.to_owned();
        let token = std::fs::read_to_string(home.join("token"))?.trim().to_owned();
        let node = Self { child, address, token };
        for _ in 0..200 {
            if node.call("GET", "/api/v1/dags/long", "")?.starts_with("HTTP/1.1 200") {
                return Ok(node);
            }
            pause(Duration::from_millis(50));
        }
        anyhow::bail!("the DAGs are not loaded")
    }

    fn call(&self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Milliseconds from the call to the task's own clock reading.
    fn latency(&self, folder: &Path) -> anyhow::Result<f64> {
        let stamp = folder.join("stamp");
        let _ = std::fs::remove_file(&stamp);
        let called = wall_nanos()?;
        let answer = self.call("POST", "/api/v1/dags/stamp/runs", "{}")?;
        anyhow::ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        for _ in 0..2_000 {
            if let Ok(text) = std::fs::read_to_string(&stamp) {
                pause(Duration::from_millis(50));
                return Ok((text.trim().parse::<f64>()? - called) / 1e6);
            }
            pause(Duration::from_millis(5));
        }
        anyhow::bail!("the task did not start")
    }

    /// How many shims run a long task, and what one takes.
    fn shims(&self, folder: &Path) -> anyhow::Result<(usize, f64)> {
        self.call("POST", "/api/v1/dags/long/runs", "{}")?;
        let attempts = folder.join("home/attempts");
        for _ in 0..200 {
            pause(Duration::from_millis(50));
            let shims = processes_with(&format!("shim {}", attempts.display()))?;
            // At level `pidns` the init of the tree is a fork of the shim: it counts.
            if shims.len() >= LONG_TASKS {
                pause(Duration::from_secs(1));
                let shims = processes_with(&format!("shim {}", attempts.display()))?;
                let sizes: Vec<f64> = shims.iter().filter_map(|pid| pss_mb(*pid).ok()).collect();
                return Ok((sizes.len(), sizes.iter().sum::<f64>() / LONG_TASKS as f64));
            }
        }
        anyhow::bail!("no shims")
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench waits and reads the clock")]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

#[expect(clippy::disallowed_methods, reason = "a bench waits and reads the clock")]
fn wall_nanos() -> anyhow::Result<f64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as f64)
}

fn processes_with(text: &str) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path: PathBuf = entry?.path();
        let Some(pid) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok())
        else {
            continue;
        };
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).replace('\0', " ").contains(text) {
            found.push(pid);
        }
    }
    Ok(found)
}
