//! What is read: files, stdin, folders of units.

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_dagfile::FILE_MAX;
use fencepost_import::Source;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file with its name for the report.
pub(super) struct Bytes {
    name: String,
    bytes: Vec<u8>,
}

impl Bytes {
    pub(super) fn source(&self) -> Source<'_> {
        Source { name: &self.name, bytes: &self.bytes }
    }

    fn of(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let bytes = fencepost_dagfile::read_bounded(path).map_err(|error| {
            let exit = if error.kind() == std::io::ErrorKind::NotFound {
                Exit::NotFound
            } else {
                Exit::Usage
            };
            CliError::new(exit, format!("cannot read {name}: {error}"))
        })?;
        Ok(Self { name, bytes })
    }
}

/// Files, and stdin for `-`.
pub(super) fn read(paths: &[PathBuf]) -> Outcome<Vec<Bytes>> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(FILE_MAX as u64 + 1).read_to_end(&mut bytes)?;
            files.push(Bytes { name: "stdin".into(), bytes });
        } else {
            files.push(Bytes::of(path)?);
        }
    }
    Ok(files)
}

/// Files, and the YAML files of folders, by name.
pub(super) fn yaml(paths: &[PathBuf]) -> Outcome<Vec<Bytes>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let is_yaml =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        let entries =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<PathBuf> =
            entries.filter(|path| is_yaml(path) && path.is_file()).collect();
        found.sort();
        all.extend(found);
    }
    read(&all)
}

/// Where systemd looks for the service of a timer that does not lie beside it.
const UNIT_FOLDERS: [&str; 3] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// The units of a folder, or of the folder that a timer lies in.
pub(super) fn units(path: &Path) -> Outcome<Vec<Bytes>> {
    let folder = if path.is_dir() {
        path
    } else {
        path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new("."))
    };
    let mut files = Vec::new();
    if !path.is_dir() {
        files.push(Bytes::of(path)?);
    }
    for found in unit_files(folder) {
        if found.file_name() != path.file_name() {
            files.push(Bytes::of(&found)?);
        }
    }
    let here: BTreeSet<String> =
        files.iter().filter_map(|file| Some(file.name.rsplit('/').next()?.to_owned())).collect();
    let services =
        here.iter().filter_map(|name| Some(format!("{}.service", name.strip_suffix(".timer")?)));
    for service in services.filter(|service| !here.contains(service)) {
        let candidates = UNIT_FOLDERS.iter().map(|folder| Path::new(folder).join(&service));
        if let Some(found) = candidates.into_iter().find(|path| path.is_file()) {
            files.push(Bytes::of(&found)?);
        }
    }
    Ok(files)
}

/// Timers, services and their drop-ins, by name.
fn unit_files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let ends = |path: &Path, ends: &[&str]| {
        ends.iter().any(|end| path.to_str().is_some_and(|path| path.ends_with(end)))
    };
    let mut found = Vec::new();
    for path in entries(folder) {
        if ends(&path, &[".timer.d", ".service.d"]) && path.is_dir() {
            found.extend(entries(&path).filter(|path| ends(path, &[".conf"]) && path.is_file()));
        } else if ends(&path, &[".timer", ".service"]) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}
