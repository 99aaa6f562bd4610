//! An installation as it is deployed: a PostgreSQL of its own, two schedulers, two servers and three
//! workers as processes, and a cable between each and what it calls.

use crate::dags;
use crate::disk::SmallDisk;
use crate::proxy::{Cable, Exchange};
use crate::roles::{Recipe, Roles, bare};
use anyhow::Context as _;
use fencepost_testing::Cluster;
use fencepost_worker::dir::AttemptDir;
use fencepost_worker::page::{Page, Phase};
use fencepost_worker::process::ProcessId;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names of the roles.
pub const SCHEDULERS: [&str; 2] = ["s1", "s2"];
pub const SERVERS: [&str; 2] = ["v1", "v2"];
pub const WORKERS: [&str; 3] = ["w1", "w2", "w3"];
/// Attempts that a worker runs at a time.
const SLOTS: &str = "8";
/// The database that everything is in.
pub const DATABASE: &str = "postgres";
/// The lease of every role, in nanoseconds; the settings below say the same.
pub const TTL_NS: u64 = 6 * crate::clock::SECOND;

/// Short leases, so that many faults fit into a minute.
const SETTINGS: [(&str, &str); 12] = [
    ("worker.lease_ttl", "6s"),
    ("worker.heartbeat_interval", "1s"),
    ("worker.self_fence", "4s"),
    ("worker.kill_grace", "1s"),
    ("worker.margin", "1s"),
    ("worker.drain_timeout", "2s"),
    ("scheduler.lease_ttl", "6s"),
    ("scheduler.heartbeat_interval", "1s"),
    ("server.lease_ttl", "6s"),
    ("scheduler.start_timeout", "15s"),
    ("scheduler.requeue_limit", "1000"),
    ("logging.level", "info"),
];

const POSTGRESQL: &str = "
wal_level = replica
max_wal_senders = 4
max_connections = 120
";

/// How an installation is made.
#[derive(Debug, Clone)]
pub struct Make {
    /// The binary of the roles.
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub containment: String,
    /// Guards that are off in all roles: `FENCEPOST_UNSAFE`.
    pub without: Option<String>,
}

/// An installation.
pub struct Installation {
    pub roles: Roles,
    /// Under the home of one worker, where this user may mount one.
    pub disk: Option<(&'static str, SmallDisk)>,
    /// Of each worker to the servers.
    worker_cables: Vec<Cable>,
    /// Of each scheduler, then of each server, to the store.
    store_cables: Vec<(String, Cable)>,
    server_ports: Vec<u16>,
    admin: String,
    make: Make,
    cluster: Mutex<Cluster>,
    exchange: Exchange,
}

impl Shim {
    /// Sends it a signal; nobody else gets it.
    pub fn signal(&self, signal: rustix::process::Signal) {
        if let Ok(Some(descriptor)) = self.process.open() {
            // It may end at any time.
            let _ = rustix::process::pidfd_send_signal(descriptor, signal);
        }
    }
}

/// A shim that lives.
#[derive(Debug, Clone)]
pub struct Shim {
    pub token: String,
    pub process: ProcessId,
}

impl Installation {
    /// Makes it, and starts everything.
    pub fn start(make: Make) -> anyhow::Result<Self> {
        let folder = make.folder.clone();
        for part in ["dags", "logs", "homes", "oracle/fenced"] {
            std::fs::create_dir_all(folder.join(part))?;
        }
        std::fs::File::create(folder.join("oracle/ledger"))?;
        let cluster = Cluster::start_with(&folder.join("postgresql"), POSTGRESQL)?;
        let exchange = Exchange::start()?;
        let server_ports = SERVERS.iter().map(|_| free_port()).collect::<std::io::Result<_>>()?;
        let mut it = Self {
            roles: Roles::keep(),
            disk: None,
            worker_cables: Vec::new(),
            store_cables: Vec::new(),
            server_ports,
            admin: String::new(),
            make,
            cluster: Mutex::new(cluster),
            exchange,
        };
        it.write_dags()?;
        it.disk = it.mount_disk()?;
        let url = it.cluster().url(DATABASE);
        it.verb(&["db", "migrate", "--store", &url])?;
        it.admin = it.verb(&["tokens", "create", "--role", "admin", "--store", &url])?;
        let worker = it.verb(&["tokens", "create", "--role", "worker", "--store", &url])?;
        it.start_roles(&worker)?;
        Ok(it)
    }

    fn start_roles(&mut self, worker_token: &str) -> anyhow::Result<()> {
        let cluster = self.cluster();
        let (url, port) = (cluster.url(DATABASE), cluster.port());
        drop(cluster);
        for name in SCHEDULERS.iter().chain(&SERVERS) {
            let cable = self.exchange.lay(vec![port])?;
            let own = url.replace(&format!(":{port}/"), &format!(":{}/", cable.port()));
            self.store_cables.push(((*name).to_owned(), cable));
            self.add(name, &own, &[])?;
        }
        for name in WORKERS {
            let cable = self.exchange.lay(self.server_ports.clone())?;
            let url = format!("http://127.0.0.1:{}", cable.port());
            self.worker_cables.push(cable);
            self.add(name, &url, &[("FENCEPOST_WORKER_TOKEN", worker_token)])?;
        }
        Ok(())
    }

    fn add(&self, name: &str, url: &str, more: &[(&str, &str)]) -> anyhow::Result<()> {
        let dags = self.path("dags").display().to_string();
        let home = self.home(name).display().to_string();
        std::fs::create_dir_all(&home)?;
        let port = SERVERS.iter().position(|own| *own == name).map(|n| self.server_ports[n]);
        let listen = format!("127.0.0.1:{}", port.unwrap_or(0));
        let arguments: Vec<&str> = match name {
            "s1" | "s2" => vec!["scheduler", "--store", url, "--dags", &dags],
            "v1" | "v2" => vec!["server", "--store", url, "--listen", &listen],
            _ => vec!["worker", "--server", url, "--name", name, "-c", SLOTS, "--home", &home],
        };
        let mut environment = self.environment();
        environment.push(("FENCEPOST_HOME".into(), home.clone()));
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        environment.extend(more.iter().map(own));
        self.roles.add(Recipe {
            name: name.into(),
            program: self.make.binary.clone(),
            arguments: arguments.into_iter().map(ToOwned::to_owned).collect(),
            environment,
            log: self.path("logs").join(name),
        });
        Ok(())
    }

    fn environment(&self) -> Vec<(String, String)> {
        let variable = |(key, value): &(&str, &str)| {
            let name = format!("FENCEPOST__{}", key.replace('.', "__").to_uppercase());
            (name, (*value).to_owned())
        };
        let mut all: Vec<(String, String)> = SETTINGS.iter().map(variable).collect();
        let off = self.make.without.iter().map(|off| ("FENCEPOST_UNSAFE".into(), off.clone()));
        all.extend(off);
        all
    }

    fn mount_disk(&self) -> anyhow::Result<Option<(&'static str, SmallDisk)>> {
        let Some(name) = WORKERS.last() else { return Ok(None) };
        let home = self.home(name);
        std::fs::create_dir_all(&home)?;
        Ok(SmallDisk::mount(&home).map(|disk| (*name, disk)))
    }

    fn write_dags(&self) -> anyhow::Result<()> {
        let program = std::env::current_exe()?;
        let oracle = self.path("oracle");
        for (name, yaml) in dags::files(&program, &oracle, &self.make.containment) {
            std::fs::write(self.path("dags").join(format!("{name}.yaml")), yaml)?;
        }
        Ok(())
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.make.folder.join(name)
    }

    /// The home of a role.
    pub fn home(&self, name: &str) -> PathBuf {
        self.path("homes").join(name)
    }

    /// The database server; others wait meanwhile.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's cable.
    pub fn worker_cable(&self, pick: u64) -> (&'static str, &Cable) {
        let n = index(pick, WORKERS.len());
        (WORKERS[n], &self.worker_cables[n])
    }

    /// The cable of a scheduler or server to the store.
    pub fn store_cable(&self, pick: u64) -> (&str, &Cable) {
        let (name, cable) = &self.store_cables[index(pick, self.store_cables.len())];
        (name, cable)
    }

    /// All cables.
    pub fn cables(&self) -> impl Iterator<Item = &Cable> {
        self.worker_cables.iter().chain(self.store_cables.iter().map(|(_, cable)| cable))
    }

    /// Where a server listens.
    pub fn server_url(&self, pick: u64) -> String {
        format!("http://127.0.0.1:{}", self.server_ports[index(pick, self.server_ports.len())])
    }

    /// The token of a person who may do everything.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Starts another worker in the home of this one, whose lock somebody has removed; its name.
    pub fn second_in_home_of(&self, name: &str) -> anyhow::Result<String> {
        let mut recipe = self.roles.recipe(name).context("no such role")?;
        let home = self.home(name);
        std::fs::rename(home.join("lock"), home.join("lock.removed"))?;
        recipe.name = format!("{name}-second");
        recipe.log = self.path("logs").join(&recipe.name);
        let second = recipe.name.clone();
        self.roles.add(recipe);
        Ok(second)
    }

    /// A verb of the binary that must succeed; what it prints.
    pub fn verb(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = bare(&self.make.binary);
        command.args(arguments).env("FENCEPOST_HOME", self.path("person"));
        if let Some(port) = self.server_ports.first() {
            command.env("FENCEPOST_SERVER", format!("http://127.0.0.1:{port}"));
        }
        let ran = command.env("FENCEPOST_TOKEN", &self.admin).output()?;
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        anyhow::ensure!(ran.status.success(), "{}: {out}{err}", arguments.join(" "));
        Ok(out.trim().to_owned())
    }

    /// The shims that live, of one worker or of all.
    pub fn shims(&self, worker: Option<&str>) -> Vec<Shim> {
        let all = WORKERS.iter().filter(|name| worker.is_none_or(|only| only == **name));
        all.flat_map(|name| shims_of(&self.home(name))).collect()
    }
}

/// A pick among so many.
pub fn index(pick: u64, count: usize) -> usize {
    usize::try_from(pick).unwrap_or(0) % count.max(1)
}

fn shims_of(home: &Path) -> Vec<Shim> {
    let Ok(entries) = std::fs::read_dir(home.join("attempts")) else { return Vec::new() };
    let shim = |entry: std::fs::DirEntry| {
        let dir = AttemptDir::new(entry.path());
        if dir.outcome().exists() {
            return None;
        }
        let page = Page::open(&dir).ok()?;
        if page.phase() == Phase::Ended {
            return None;
        }
        let process = page.shim()?;
        (ProcessId::of(process.pid) == Some(process)).then(|| Shim { token: dir.name(), process })
    };
    entries.flatten().filter_map(shim).collect()
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The binary of the roles beside this one.
pub fn binary_beside() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.parent().context("this program is nowhere")?.join("fencepost");
    anyhow::ensure!(path.exists(), "there is no {}: cargo build -p fencepost-cli", path.display());
    Ok(path)
}
