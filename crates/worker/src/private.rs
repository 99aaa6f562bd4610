//! What a task is given that must not lie on a disk: its secrets and connections.
//!
//! They lie in a directory of their own, in memory (tmpfs) where there is one. The shim takes the variables
//! and removes their file before the task begins; the files of connections go with the attempt.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dir::AttemptDir;
use crate::sys::Account;

/// Where Linux has a tmpfs for everybody.
const MEMORY: &str = "/dev/shm";
const VARIABLES: &str = "variables.json";

/// What is private of an attempt.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Private {
    /// Variables of its environment.
    pub(crate) env: Vec<(String, String)>,
    /// Program and arguments, where one of them holds a secret.
    #[serde(default)]
    pub(crate) argv: Vec<String>,
    /// What is hidden in its log.
    pub(crate) masked: Vec<String>,
    /// Files by name, for the task to read.
    #[serde(skip)]
    pub(crate) files: Vec<(String, String)>,
}

/// Nothing of it is shown.
impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Private")
    }
}

impl Private {
    pub(crate) fn is_empty(&self) -> bool {
        self.env.is_empty() && self.masked.is_empty() && self.files.is_empty()
    }

    /// Writes it down for the shim and the task.
    pub(crate) fn write(&self, place: &Path, owner: Option<&str>) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(place)?;
        let account = owner.map(Account::lookup).transpose()?.flatten();
        let write = |name: &str, content: &[u8]| -> io::Result<PathBuf> {
            let path = place.join(name);
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(content)?;
            Ok(path)
        };
        let mut theirs = vec![place.to_owned()];
        for (name, content) in &self.files {
            theirs.push(write(name, content.as_bytes())?);
        }
        write(VARIABLES, &serde_json::to_vec(self).map_err(io::Error::other)?)?;
        // Last: then this process may have no business there any more.
        for path in theirs.iter().filter(|_| account.is_some()) {
            let ids = account.as_ref().map(|account| (account.uid, account.gid));
            chown(path, ids.map(|ids| ids.0), ids.map(|ids| ids.1))?;
        }
        Ok(())
    }

    /// Takes what the shim needs: afterwards it is nowhere but in its memory.
    pub(crate) fn take(place: &Path) -> io::Result<Self> {
        let path = place.join(VARIABLES);
        let taken = serde_json::from_slice(&fs::read(&path)?).map_err(io::Error::other)?;
        fs::remove_file(path)?;
        Ok(taken)
    }
}

/// Where the private files of an attempt go. Its id makes the name unique in the machine's memory.
pub(crate) fn place(dir: &AttemptDir, attempt_id: &str) -> PathBuf {
    match in_memory() {
        Some(base) => base.join(format!("{attempt_id}-{}", dir.name())),
        None => dir.path().join("private"),
    }
}

/// Removes the private files of an attempt.
pub(crate) fn remove(place: &Path) -> io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A directory in memory that is ours alone; everybody may write beside it.
fn in_memory() -> Option<PathBuf> {
    let uid = rustix::process::geteuid();
    let base = Path::new(MEMORY).join(format!("fencepost-{}", uid.as_raw()));
    // Others pass through to what is theirs (`run_as_user`), and list nothing.
    match DirBuilder::new().mode(0o711).create(&base) {
        Ok(()) => fs::set_permissions(&base, fs::Permissions::from_mode(0o711)).ok()?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => return None,
    }
    let about = fs::symlink_metadata(&base).ok()?;
    let is_ours = about.is_dir() && about.uid() == uid.as_raw() && about.mode() & 0o022 == 0;
    is_ours.then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_taken_once_and_files_stay() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("private");
        let private = Private {
            env: vec![("DSN".into(), "postgres://x".into())],
            argv: Vec::new(),
            masked: vec!["postgres://x".into()],
            files: vec![("conn_a.json".into(), "{}".into())],
        };
        private.write(&place, None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&place), 0o700);
        assert_eq!(mode(&place.join("conn_a.json")), 0o600);
        assert_eq!(mode(&place.join(VARIABLES)), 0o600);
        let taken = Private::take(&place).unwrap();
        assert_eq!((taken.env, taken.masked), (private.env, private.masked));
        assert!(Private::take(&place).is_err());
        assert!(place.join("conn_a.json").exists());
        remove(&place).unwrap();
        remove(&place).unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn a_place_is_the_attempts_own() {
        let dir = AttemptDir::new("/home/attempts/17-2");
        let name = place(&dir, "0198-id");
        assert!(name.ends_with("0198-id-17-2") || name.ends_with("17-2/private"), "{name:?}");
    }
}
