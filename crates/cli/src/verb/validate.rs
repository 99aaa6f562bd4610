//! `fencepost validate`: DAG files without a server, in a terminal, an editor or CI.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::Format;
use clap::Args;
use fencepost_core::dag::Dag;
use fencepost_dagfile::render::{self, FileReport};
use fencepost_dagfile::{Diagnostic, FILE_MAX, Severity};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Check DAG files; all mistakes at once, each with its place and mend
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost validate dags/
  fencepost validate --strict -o github dags/     annotations in GitHub Actions
  cat new.yaml | fencepost validate -

Formats: table, json, yaml, name (ids of good DAGs), sarif, github
Exit: 2 if there is an error, or with --strict a warning")]
pub(crate) struct Validate {
    /// Files, folders, or - for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Warnings count as errors
    #[arg(long)]
    strict: bool,
}

/// One file and what became of it.
struct Checked {
    path: String,
    diagnostics: Vec<Diagnostic>,
    dag: Option<Dag>,
}

/// Checks them.
pub(super) fn run(cx: &Cx, args: Validate) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        if path == Path::new("-") {
            files.push(check(path, read_stdin()));
        } else if path.is_dir() {
            let found = yaml_files(path);
            files.extend(found.into_iter().map(|path| check(&path, read_file(&path))));
        } else {
            files.push(check(path, read_file(path)));
        }
    }
    refuse_twins(&mut files);
    print(cx, &files)?;
    let found = files.iter().flat_map(|file| &file.diagnostics);
    let bad = |d: &Diagnostic| args.strict || d.severity == Severity::Error;
    Ok(if found.into_iter().any(bad) { Exit::Usage } else { Exit::Done })
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    fencepost_dagfile::read_bounded(path)
}

fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(FILE_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check(path: &Path, bytes: std::io::Result<Vec<u8>>) -> Checked {
    let shown: String =
        path.display().to_string().chars().map(crate::output::table::visible).collect();
    let name = if shown == "-" { "stdin" } else { &shown };
    let parsed = match bytes {
        Ok(bytes) => fencepost_dagfile::parse(&bytes, name),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            let diagnostics = vec![whole_file("unreadable", message)];
            return Checked { path: shown, diagnostics, dag: None };
        }
    };
    Checked { path: shown, diagnostics: parsed.diagnostics, dag: parsed.dag }
}

const fn whole_file(code: &'static str, message: String) -> Diagnostic {
    let severity = Severity::Error;
    Diagnostic { line: 1, column: 1, severity, code, message, hint: String::new() }
}

/// A DAG id belongs to one file.
fn refuse_twins(files: &mut [Checked]) {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for file in files {
        let Some(dag) = &file.dag else { continue };
        let id = dag.dag_id.to_string();
        if let Some(first) = owners.get(&id).filter(|first| **first != file.path) {
            let message = format!("the dag id `{id}` is taken by {first}");
            file.diagnostics.insert(0, whole_file("duplicate-dag-id", message));
            file.dag = None;
        } else {
            owners.insert(id, file.path.clone());
        }
    }
}

/// The DAG files below a folder, by name; hidden ones and links to folders are left out.
fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !hidden => folders.push(path),
                Ok(_) if is_yaml && !hidden && path.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn print(cx: &Cx, files: &[Checked]) -> Outcome<()> {
    let reports: Vec<FileReport<'_>> = files
        .iter()
        .map(|file| FileReport { path: &file.path, diagnostics: &file.diagnostics })
        .collect();
    match cx.out.format {
        Format::Json | Format::Yaml => {
            cx.out.data(&render::json(&reports))?;
        }
        Format::Sarif => {
            let text = serde_json::to_string_pretty(&render::sarif(&reports))
                .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
            cx.out.print(&(text + "\n"))?;
        }
        Format::Github => cx.out.print(&render::github(&reports))?,
        Format::Name => {
            let dags = files.iter().filter_map(|file| file.dag.as_ref());
            let ids: Vec<String> = dags.map(|dag| dag.dag_id.to_string() + "\n").collect();
            cx.out.print(&ids.concat())?;
        }
        Format::Table | Format::Wide => cx.out.print(&render::lines(&reports))?,
    }
    let dags = files.iter().filter(|file| file.dag.is_some()).count();
    cx.out.remark(&render::summary(&reports, dags));
    Ok(())
}
