//! The folder of DAG files: read again when something changes in it, and each `parse_interval`.
//!
//! A thread of its own looks, reads and parses; what it found goes to the engine as whole files.
//! Where inotify works a change is seen at once; the interval is for where it does not.

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_core::dag::Dag;
use fencepost_core::id::JobId;
use fencepost_dagfile::render::{self, FileReport};
use fencepost_dagfile::{Diagnostic, FILE_MAX, Severity, content_hash, ir, parse, read_bounded};
use fencepost_engine::Cx;
use fencepost_engine::operations::dag_files::{self, DagFile, ReadDag};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// Files and folders that are looked at, at most.
const ENTRIES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 8;
/// A file that changes is read when it has been quiet for this long: half a file is not read.
const QUIET: Duration = Duration::from_millis(50);

/// What a file looked like when it was read.
type Stamp = (u64, Option<SystemTime>);

/// What a look has found.
#[derive(Debug, Default)]
pub(crate) struct Change {
    files: Vec<DagFile>,
    present: BTreeSet<String>,
}

/// A DAG folder that is watched.
#[derive(Debug)]
pub(crate) struct DagFolder {
    path: PathBuf,
    seen: BTreeMap<String, Stamp>,
}

impl DagFolder {
    /// A folder that was not looked at yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, seen: BTreeMap::new() }
    }

    /// Starts the thread that looks, and the task that loads what it finds.
    /// `cx` gives the context of the job that loads them now.
    pub(crate) fn watch(
        mut self,
        cx: impl Fn() -> Cx + Send + Sync + 'static,
        interval: Duration,
    ) -> std::io::Result<()> {
        let (sender, mut found) = mpsc::channel::<Change>(1);
        std::thread::Builder::new().name("dag-folder".into()).stack_size(1 << 21).spawn(
            move || {
                let (watch, mut trouble) = (Watch::new(), None);
                loop {
                    match self.look() {
                        Ok(change) => {
                            trouble = None;
                            if sender.blocking_send(change).is_err() {
                                return;
                            }
                        }
                        // What cannot be listed is not gone: everything stays as it is.
                        Err(error) => {
                            let text = error.to_string();
                            if trouble.replace(text.clone()).as_ref() != Some(&text) {
                                eprint_trouble(&text);
                            }
                        }
                    }
                    watch.wait(&self.path, interval);
                }
            },
        )?;
        tokio::spawn(async move {
            let mut last = None;
            while let Some(change) = found.recv().await {
                load(&cx, &change, &mut last).await;
            }
        });
        Ok(())
    }

    /// Reads what is new or changed.
    pub(crate) fn look(&mut self) -> io::Result<Change> {
        let found = files_below(&self.path)?;
        let is_new = |(name, stamp): &(&String, &Stamp)| self.seen.get(*name) != Some(*stamp);
        let changed = found.iter().filter(is_new);
        let files = changed.map(|(name, _)| read(&self.path, name)).collect();
        let present = found.keys().cloned().collect();
        self.seen = found;
        Ok(Change { files, present })
    }
}

/// Which job last said which files there are.
type Last = Option<(Option<JobId>, BTreeSet<String>)>;

/// Loads what a look has found, if that is news: to the store, or of the job that this process is now.
async fn load(cx: &(impl Fn() -> Cx + Send + Sync), change: &Change, last: &mut Last) {
    loop {
        let cx = cx();
        let own = cx.own.as_ref().map(|own| own.job_id);
        let is_same = last.as_ref().is_some_and(|(job, p)| *job == own && *p == change.present);
        if is_same && change.files.is_empty() {
            return;
        }
        match dag_files::load(&cx, &change.files, &change.present).await {
            Ok(_) => {
                *last = Some((own, change.present.clone()));
                return;
            }
            Err(error) => eprint_trouble(&error.to_string()),
        }
        super::surroundings::pause(Duration::from_secs(1)).await;
    }
}

#[expect(clippy::print_stderr, reason = "the log of a role is its stderr")]
fn eprint_trouble(text: &str) {
    eprintln!("fencepost: loading DAG files: {text}");
}

/// Inotify over the folder and its subfolders; where it does not work, only the interval counts.
struct Watch(Option<OwnedFd>);

impl Watch {
    fn new() -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Self(inotify::init(flags).ok())
    }

    fn wait(&self, folder: &Path, interval: Duration) {
        let Some(fd) = &self.0 else { return pause(interval) };
        let what = inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE;
        for dir in folders_below(folder) {
            // Watching a folder twice is one watch; one that vanished is none.
            let _ = inotify::add_watch(fd, &dir, what);
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(interval.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: interval.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&timeout)), Ok(n) if n > 0) {
            pause(QUIET);
            let mut buffer = [0_u8; 4096];
            while rustix::io::read(fd, &mut buffer).is_ok_and(|n| n > 0) {}
        }
    }
}

fn pause(length: Duration) {
    crate::clock::pause(length);
}

fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    // A folder that cannot be listed has nothing to watch below it.
    let _ = walk(folder, &mut |path, is_dir| {
        if is_dir {
            found.push(path.to_owned());
        }
    });
    found
}

fn files_below(folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = BTreeMap::new();
    walk(folder, &mut |path, is_dir| {
        let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if is_dir || !yaml {
            return;
        }
        // A link that leads nowhere is a file that cannot be read, and is told as one.
        let meta = std::fs::metadata(path).or_else(|_| std::fs::symlink_metadata(path));
        let (Ok(name), Ok(meta)) = (path.strip_prefix(folder), meta) else {
            return;
        };
        found.insert(name.to_string_lossy().into_owned(), (meta.len(), meta.modified().ok()));
    })?;
    Ok(found)
}

/// Visits what lies below a folder, hidden names and what is too deep left out.
fn walk(folder: &Path, visit: &mut impl FnMut(&Path, bool)) -> io::Result<()> {
    let mut stack = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((dir, depth)) = stack.pop() {
        let entries = match std::fs::read_dir(&dir) {
            // Removed since its parent was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir != folder => continue,
            Err(error) => {
                let text = format!("the DAG folder `{}` cannot be listed: {error}", dir.display());
                return Err(io::Error::new(error.kind(), text));
            }
            Ok(entries) => entries,
        };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if hidden || seen > ENTRIES_MAX {
                continue;
            }
            let path = entry.path();
            let is_dir = path.is_dir();
            visit(&path, is_dir);
            if is_dir && depth < DEPTH_MAX {
                stack.push((path, depth + 1));
            }
        }
    }
    Ok(())
}

fn read(folder: &Path, name: &str) -> DagFile {
    let fileloc = name.to_owned();
    let bytes = match read_bounded(&folder.join(name)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let errors = serde_json::json!([{
                "path": name, "line": 1, "column": 1, "severity": "error", "code": "unreadable",
                "message": error.to_string(), "hint": "",
            }]);
            return DagFile { fileloc, content: Err(errors) };
        }
    };
    debug_assert!(bytes.len() <= FILE_MAX + 1);
    let parsed = parse(&bytes, name);
    let content = if let Some(dag) = parsed.dag {
        Ok(read_dag(dag, String::from_utf8_lossy(&bytes).into_owned()))
    } else {
        let is_error = |d: &Diagnostic| d.severity == Severity::Error;
        let errors: Vec<Diagnostic> = parsed.diagnostics.into_iter().filter(is_error).collect();
        Err(render::json(&[FileReport { path: name, diagnostics: &errors }]))
    };
    DagFile { fileloc, content }
}

fn read_dag(dag: Dag, source: String) -> ReadDag {
    ReadDag::new(dag, source, |dag| (content_hash(dag), ir(dag)))
}

/// Loads one DAG that is in hand, as the only one.
pub(crate) async fn load_dag(cx: &Cx, fileloc: &str, dag: Dag) -> Outcome<()> {
    let file = DagFile { fileloc: fileloc.into(), content: Ok(read_dag(dag, String::new())) };
    let present = BTreeSet::from([fileloc.to_owned()]);
    match dag_files::load(cx, &[file], &present).await {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::new(Exit::Unexpected, error.to_string())),
    }
}
