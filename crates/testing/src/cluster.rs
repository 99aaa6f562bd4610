//! A PostgreSQL server in a directory of its own.
//!
//! It is started as another user where this process is root, which PostgreSQL refuses. What it is told
//! to be fast (no fsync) survives the death of every process, only not that of the machine.

use std::fmt;
use std::fs;
use std::io::{Error, Result, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where systems keep the server's programs; the newest version first.
const PLACES: [&str; 9] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/14/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/opt/homebrew/bin",
];

const SETTINGS: &str = "
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_connections = 400
shared_buffers = 128MB
autovacuum_naptime = 5s
deadlock_timeout = 100ms
timezone = UTC
listen_addresses = '127.0.0.1'
";

/// Where a copy of the data lies until it is promoted.
const COPY: &str = "copy";

/// How a server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order: connections are closed, nothing is left to recover.
    Fast,
    /// At once, as by a crash.
    Immediate,
}

/// A server. Dropped, it is ended and its directory removed, unless it is [shared](Self::reopen).
pub struct Cluster {
    dir: PathBuf,
    bin: PathBuf,
    port: u16,
    password: String,
    is_own: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({}, port {})", self.dir.display(), self.port)
    }
}

impl Cluster {
    /// Makes and starts a server in a directory that must not exist yet.
    pub fn start(dir: &Path) -> Result<Self> {
        Self::start_with(dir, "")
    }

    /// Likewise, with more lines of `postgresql.conf`.
    pub fn start_with(dir: &Path, settings: &str) -> Result<Self> {
        let bin = programs()?;
        fs::DirBuilder::new().mode(0o700).create(dir)?;
        if let Some((uid, gid)) = other_user()? {
            chown(dir, Some(uid), Some(gid))?;
        }
        let password = random()?;
        let mut it = Self { dir: dir.to_owned(), bin, port: 0, password, is_own: true };
        it.init(settings)?;
        it.run_again()?;
        Ok(it)
    }

    /// A server that somebody else started and will end.
    pub(crate) fn reopen(dir: &Path) -> Result<Self> {
        let bin = programs()?;
        let port = fs::read_to_string(dir.join("port"))?.trim().parse().map_err(Error::other)?;
        let password = fs::read_to_string(dir.join("password"))?;
        Ok(Self { dir: dir.to_owned(), bin, port, password, is_own: false })
    }

    /// It is not ended with this handle.
    pub(crate) fn disown(&mut self) {
        self.is_own = false;
    }

    fn init(&self, settings: &str) -> Result<()> {
        self.write("password", &self.password)?;
        let init = |locale: &[&str]| {
            self.program("initdb", |command| {
                command.arg("-D").arg(self.data()).args(["-U", "postgres", "-E", "UTF8"]);
                command.args(["--no-sync", "--auth-local=trust", "--auth-host=scram-sha-256"]);
                command.arg("--pwfile").arg(self.dir.join("password")).args(locale);
            })
        };
        // A locale that does not sort by bytes, where there is one: what relies on bytes must say so.
        let linguistic = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"];
        if init(&linguistic).is_err() {
            drop(fs::remove_dir_all(self.data()));
            init(&["--locale=C.UTF-8"])?;
        }
        let sockets = format!("unix_socket_directories = '{}'\n", self.dir.display());
        let mut conf =
            fs::File::options().append(true).open(self.data().join("postgresql.conf"))?;
        conf.write_all([SETTINGS, &sockets, settings, "\n"].concat().as_bytes())
    }

    /// Starts it (again), on the same port if it had one.
    pub fn run_again(&mut self) -> Result<()> {
        let mut last = Error::other("it was not tried");
        for _ in 0..5 {
            let port = if self.port == 0 { free_port()? } else { self.port };
            let start = self.program("pg_ctl", |command| {
                command.arg("-D").arg(self.data()).arg("-l").arg(self.dir.join("log"));
                command.args(["-w", "-t", "60", "-o", &format!("-p {port}"), "start"]);
            });
            match start {
                Ok(()) => {
                    self.port = port;
                    return self.write("port", &port.to_string());
                }
                Err(error) => last = error,
            }
        }
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        Err(Error::other(format!("{last}\n{log}")))
    }

    /// Ends it; its data stay.
    pub fn end(&self, how: End) -> Result<()> {
        let mode = match how {
            End::Fast => "fast",
            End::Immediate => "immediate",
        };
        self.program("pg_ctl", |command| {
            command.arg("-D").arg(self.data()).args(["-w", "-t", "60", "-m", mode, "stop"]);
        })
    }

    /// Takes a copy of it that can be promoted. The server needs `wal_level = replica` and two WAL
    /// senders.
    pub fn back_up(&self) -> Result<()> {
        let port = self.port.to_string();
        self.program("pg_basebackup", |command| {
            command.arg("-D").arg(self.dir.join(COPY)).arg("-h").arg(&self.dir);
            command.args(["-p", &port, "-U", "postgres", "-X", "stream", "-c", "fast", "-N"]);
        })
    }

    /// The server dies, and its copy is promoted in its place: what was committed since the
    /// [back-up](Self::back_up) is lost, and the timeline is another one.
    pub fn fail_over(&mut self) -> Result<()> {
        self.end(End::Immediate)?;
        let dead = self.dir.join("dead");
        if dead.exists() {
            fs::remove_dir_all(&dead)?;
        }
        fs::rename(self.data(), dead)?;
        fs::rename(self.dir.join(COPY), self.data())?;
        self.write("data/standby.signal", "")?;
        self.run_again()?;
        self.sql("postgres", "SELECT pg_promote()").map(drop)
    }

    /// The address of a database, by TCP.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The address of a database, by a socket of this machine.
    pub fn socket_url(&self, database: &str) -> String {
        let place = self.dir.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{place}:{}/{database}", self.port)
    }

    /// Where the server's programs are, `pgbench` among them.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements by `psql`, each in a transaction of its own; what they print.
    pub fn sql(&self, database: &str, text: &str) -> Result<String> {
        let mut command = Command::new(self.bin.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
        command.arg("-h").arg(&self.dir).args(["-p", &self.port.to_string(), "-d", database]);
        for line in text.split(";\n").filter(|line| !line.trim().is_empty()) {
            command.args(["-c", line]);
        }
        output(command.stdin(Stdio::null()))
    }

    /// Whether it answers.
    pub fn answers(&self) -> bool {
        self.sql("postgres", "SELECT 1").is_ok()
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text)?;
        match other_user()? {
            Some((uid, gid)) => chown(&path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }

    fn program(&self, name: &str, arguments: impl FnOnce(&mut Command)) -> Result<()> {
        let mut command = Command::new(self.bin.join(name));
        arguments(&mut command);
        if let Some((uid, gid)) = other_user()? {
            command.uid(uid).gid(gid);
        }
        // What stays behind must not keep the caller's output open, nor get its signals.
        let log = fs::File::options().append(true).create(true).open(self.dir.join("programs"))?;
        command.current_dir(&self.dir).stdin(Stdio::null()).process_group(0);
        let status = command.stdout(log.try_clone()?).stderr(log).status()?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(self.dir.join("programs")).unwrap_or_default();
        Err(Error::other(format!("{name} failed ({status}):\n{said}")))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.is_own {
            // It may be ended already, and a test has nobody to tell.
            let _ = self.end(End::Immediate);
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn programs() -> Result<PathBuf> {
    let has = |place: &&&str| {
        ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|p| Path::new(place).join(p).exists())
    };
    PLACES.iter().find(has).map(PathBuf::from).ok_or_else(|| {
        Error::other("PostgreSQL's programs are not installed (package `postgresql`)")
    })
}

/// Who runs this process.
pub(crate) fn own_uid() -> Result<u32> {
    fs::metadata("/proc/self").map(|this| this.uid())
}

/// The user that the server runs as, if this process is root.
fn other_user() -> Result<Option<(u32, u32)>> {
    if own_uid()? != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let found = of("postgres").or_else(|| of("nobody"));
    found.map(Some).ok_or_else(|| Error::other("there is no user that PostgreSQL could run as"))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn random() -> Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().replace('-', ""))
}
