//! What a home forgets: logs of attempts that ended long ago, and state that nobody has touched for long.
//!
//! A worker does not know which runs the store still has, so it goes by the age of files on its own clock: an
//! archived log by that of its directory, the state of a run by the newest file in it. A log that its server
//! does not have yet stays, whatever its age. Nothing that is live lies here: running attempts have
//! directories elsewhere. Links are never followed.

use super::archive::ARCHIVE;
use super::ship::MARK;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const STATE: &str = "state";

/// How long a home keeps things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAtHome {
    /// Logs of ended attempts.
    pub logs: Duration,
    /// State of a run (`FENCEPOST_STATE_DIR`) that was not touched since.
    pub state: Duration,
    /// Only logs that the server has.
    pub only_shipped: bool,
}

/// What went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub logs: usize,
    pub states: usize,
    /// What could not be removed, with why; it is tried again the next time.
    pub failures: Vec<String>,
}

/// Removes what is old. One directory that cannot be removed stops no other.
pub fn forget_old(home: &Path, keep: &KeepAtHome, now: SystemTime) -> Forgotten {
    let mut gone = Forgotten::default();
    for group in folders(&home.join(ARCHIVE)) {
        for dir in folders(&group) {
            let is_kept = keep.only_shipped && !dir.join(MARK).exists();
            let changed = fs::symlink_metadata(&dir).and_then(|about| about.modified());
            if !is_kept && changed.is_ok_and(|at| is_older(at, keep.logs, now)) {
                gone.logs += remove(&dir, &mut gone.failures);
            }
        }
        // Groups that are empty now; the others stay.
        let _ = fs::remove_dir(&group);
    }
    for dag in folders(&home.join(STATE)) {
        for run in folders(&dag) {
            if newest(&run).is_ok_and(|at| is_older(at, keep.state, now)) {
                gone.states += remove(&run, &mut gone.failures);
            }
        }
        let _ = fs::remove_dir(&dag);
    }
    gone
}

fn is_older(at: SystemTime, than: Duration, now: SystemTime) -> bool {
    // One from the future is young.
    now.duration_since(at).is_ok_and(|age| age > than)
}

fn remove(dir: &Path, failures: &mut Vec<String>) -> usize {
    match fs::remove_dir_all(dir) {
        Ok(()) => 1,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => {
            failures.push(format!("{}: {error}", dir.display()));
            0
        }
    }
}

/// The folders in a folder, links left out; none if it is not there.
fn folders(path: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    list.filter(is_folder).map(|entry| entry.path()).collect()
}

/// When anything in a folder was changed last. What cannot be read counts as new.
fn newest(path: &Path) -> io::Result<SystemTime> {
    let mut newest = fs::symlink_metadata(path)?.modified()?;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            newest = newest.max(entry.metadata()?.modified()?);
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const KEEP: KeepAtHome = KeepAtHome {
        logs: Duration::from_hours(48),
        state: Duration::from_hours(72),
        only_shipped: true,
    };

    fn put(home: &Path, name: &str) {
        let file = home.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "x").unwrap();
    }

    /// A home with a shipped log and one that is not, the state of a run, and a link out of it.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for name in ["logs/12/12001/log", "logs/12/12001/shipped", "logs/12/12002/log"] {
            put(home.path(), name);
        }
        put(home.path(), "state/d/r1/t/deep/file");
        put(home.path(), "elsewhere/file");
        std::os::unix::fs::symlink("../elsewhere", home.path().join("state/linked")).unwrap();
        home
    }

    fn later(days: u32) -> SystemTime {
        #[expect(clippy::disallowed_methods, reason = "the files of a test are made now")]
        let now = SystemTime::now();
        now + DAY * days
    }

    #[test]
    fn what_is_young_stays_and_what_is_old_goes() {
        let home = home();
        assert_eq!(forget_old(home.path(), &KEEP, later(0)), Forgotten::default());
        let gone = forget_old(home.path(), &KEEP, later(4));
        assert_eq!((gone.logs, gone.states, gone.failures.len()), (1, 1, 0));
        assert!(!home.path().join("logs/12/12001").exists());
        assert!(home.path().join("logs/12/12002/log").exists(), "the server does not have it");
        assert!(!home.path().join("state/d").exists());
        assert!(home.path().join("elsewhere/file").exists(), "a link is not followed");
        let standalone = KeepAtHome { only_shipped: false, ..KEEP };
        assert_eq!(forget_old(home.path(), &standalone, later(4)).logs, 1);
        assert!(!home.path().join("logs/12").exists());
    }

    #[test]
    fn state_that_was_touched_anywhere_stays_whole() {
        let home = home();
        let file = fs::File::options().write(true).open(home.path().join("state/d/r1/t/deep/file"));
        file.unwrap().set_modified(later(3)).unwrap();
        assert_eq!(forget_old(home.path(), &KEEP, later(4)).states, 0);
        assert!(home.path().join("state/d/r1/t/deep/file").exists());
    }

    #[test]
    fn a_home_without_anything_is_fine() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(forget_old(home.path(), &KEEP, later(9)), Forgotten::default());
    }
}
