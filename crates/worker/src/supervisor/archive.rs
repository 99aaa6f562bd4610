//! Where the logs of ended attempts go, so that a restart looks only at those that have not.

use crate::attempt::HostError;
use crate::dir::AttemptDir;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where live attempts have their directories, below the home.
pub(super) const LIVE: &str = "attempts";
pub(super) const ARCHIVE: &str = "logs";

/// The directory of an ended attempt: `logs/GROUP/NAME`, a thousand tokens to a group.
pub fn archived(home: &Path, name: &str) -> PathBuf {
    let token = name.split('-').next().unwrap_or(name);
    let group = token.get(..token.len().saturating_sub(3)).unwrap_or("");
    home.join(ARCHIVE).join(if group.is_empty() { "0" } else { group }).join(name)
}

/// Names of archived attempts whose directory has no file `mark`.
pub(super) fn unmarked(home: &Path, mark: &str) -> Vec<String> {
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let groups = list(&home.join(ARCHIVE));
    groups
        .flat_map(|group| list(&group.path()).collect::<Vec<_>>())
        .filter(|dir| !dir.path().join(mark).exists())
        .filter_map(|dir| dir.file_name().into_string().ok())
        .collect()
}

/// Where the log of an attempt is now.
pub fn log_dir(home: &Path, token: &str) -> AttemptDir {
    let newest = newest_start(home, token);
    let live = home.join(LIVE).join(&newest);
    AttemptDir::new(if live.exists() { live } else { archived(home, &newest) })
}

/// An attempt that was started again after `never_ran` has a directory for each start: `TOKEN`,
/// `TOKEN-2`, ...; the last one counts.
fn newest_start(home: &Path, token: &str) -> String {
    let mut newest = token.to_owned();
    for n in 2..1_000 {
        let next = format!("{token}-{n}");
        if !home.join(LIVE).join(&next).exists() && !archived(home, &next).exists() {
            break;
        }
        newest = next;
    }
    newest
}

/// Moves what is left of an attempt that was tidied up to the archive.
pub(crate) fn archive(home: &Path, from: &AttemptDir) -> Result<(), HostError> {
    let to = archived(home, &from.name());
    let failed = |path: &Path| HostError::io("archiving", path.to_owned());
    if let Some(group) = to.parent() {
        fs::create_dir_all(group).map_err(failed(group))?;
    }
    for file in [from.lock(), from.page()] {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&file)(error));
            }
            _ => {}
        }
    }
    match fs::rename(from.path(), &to) {
        // A predecessor came as far as this.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(failed(from.path())),
    }
}

/// Removes the archived logs of an attempt. Doing it twice is fine.
pub fn remove_archived(home: &Path, token: &str) -> io::Result<()> {
    for n in 1..1_000 {
        let name = if n == 1 { token.to_owned() } else { format!("{token}-{n}") };
        match fs::remove_dir_all(archived(home, &name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if n > 1 {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
