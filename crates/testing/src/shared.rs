//! The server that all tests of a user share.
//!
//! Each process that uses it holds a shared lock on `users`, which the kernel gives back however it
//! ends. A watcher outlives the tests: when nobody has held that lock for a while it ends the
//! server and removes its directory. Starting and ending happen under the lock `start`.

use crate::cluster::{Cluster, own_uid};
use std::fs::{self, File, TryLockError};
use std::io::{Error, Result};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Waits for the last user, and some seconds for another one.
const WATCHER: &str = r#"
cd "$1" || exit 1
exec 9>>watch; flock 9
while :; do
  flock users true
  sleep 15
  exec 8>>start; flock 8
  exec 7>>users
  if flock -n 7; then
    pid=$(head -n 1 cluster/data/postmaster.pid 2>/dev/null)
    [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null
    while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    rm -rf cluster
    exec 9>&-
    exit 0
  fi
  exec 7>&- 8>&-
done
"#;

/// The server, and this process's lock on it.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) dir: PathBuf,
    _user: File,
}

/// The shared server; it is started if need be.
pub(crate) fn shared() -> Result<&'static Shared> {
    static SHARED: OnceLock<std::result::Result<Shared, String>> = OnceLock::new();
    let known = SHARED.get_or_init(|| open().map_err(|error| error.to_string()));
    known.as_ref().map_err(|why| Error::other(why.clone()))
}

fn open() -> Result<Shared> {
    let dir = std::env::temp_dir().join(format!("fencepost-testing-{}", own_uid()?));
    match fs::DirBuilder::new().mode(0o755).create(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(&dir)?;
    if !found.is_dir() || found.uid() != own_uid()? {
        return Err(Error::other(format!("{} is somebody else's", dir.display())));
    }
    let start = lock_file(&dir, "start")?;
    start.lock()?;
    let user = lock_file(&dir, "users")?;
    user.lock_shared()?;
    let place = dir.join("cluster");
    let cluster = match Cluster::reopen(&place).ok().filter(Cluster::answers) {
        Some(cluster) => cluster,
        None => begin(&place)?,
    };
    watch(&dir)?;
    Ok(Shared { cluster, dir, _user: user })
}

pub(crate) fn lock_file(dir: &Path, name: &str) -> Result<File> {
    File::options().append(true).create(true).open(dir.join(name))
}

fn begin(place: &Path) -> Result<Cluster> {
    // What is left there does not answer.
    let pid = fs::read_to_string(place.join("data/postmaster.pid")).unwrap_or_default();
    if let Some(pid) = pid.lines().next() {
        // It may be gone, and its number another's: only a server of this directory is meant.
        let of = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        if of.starts_with(place) {
            let _ = Command::new("kill").args(["-QUIT", pid]).stderr(Stdio::null()).status();
        }
    }
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut cluster = Cluster::start(place)?;
    cluster.disown();
    Ok(cluster)
}

/// Starts the watcher, unless there is one.
fn watch(dir: &Path) -> Result<()> {
    match lock_file(dir, "watch")?.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", WATCHER, "sh"]).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
