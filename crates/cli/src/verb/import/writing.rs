//! DAG files into a folder or onto stdout, and the report.

use super::Target;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_import::{DagFile, Imported, Note, NoteKind};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) struct Writing<'a> {
    pub(super) cx: &'a Cx,
    pub(super) target: &'a Target,
}

impl Writing<'_> {
    /// Writes all files or none, then reports.
    pub(super) fn finish(&self, imported: Imported) -> Outcome {
        let imported = apart(imported);
        let paths = self.paths(&imported)?;
        if !self.cx.global.dry_run {
            for (file, path) in imported.files.iter().zip(&paths) {
                self.write(file, path)?;
            }
        }
        self.report(&imported, &paths)?;
        let needs = imported.count(NoteKind::NeedsPerson) > 0;
        Ok(match (imported.count(NoteKind::Unreadable), needs && self.target.strict) {
            (0, false) => Exit::Done,
            (0, true) => Exit::Held,
            _ => Exit::Usage,
        })
    }

    /// Where each file goes; fails if one is there, or if there is no folder for several.
    fn paths(&self, imported: &Imported) -> Outcome<Vec<PathBuf>> {
        let Some(folder) = &self.target.to else {
            let is_text = !self.cx.out.format.is_data() && !self.cx.global.dry_run;
            if imported.files.len() > 1 && is_text {
                let message = format!("there are {} DAGs", imported.files.len());
                return Err(CliError::usage(message)
                    .hint("say where they go: --to dags/ (and --dry-run to look first)"));
            }
            return Ok(Vec::new());
        };
        let path = |file: &DagFile| folder.join(format!("{}.yaml", file.dag_id));
        let paths: Vec<PathBuf> = imported.files.iter().map(path).collect();
        let there: Vec<String> = paths
            .iter()
            .filter(|path| path.exists())
            .map(|path| path.display().to_string())
            .collect();
        if there.is_empty() || self.target.force {
            return Ok(paths);
        }
        let message = format!("{} is there already; nothing was written", there.join(", "));
        Err(CliError::new(Exit::Conflict, message)
            .hint("--force writes over it, or choose another folder"))
    }

    fn write(&self, file: &DagFile, path: &Path) -> Outcome<()> {
        let failed = |error: std::io::Error| {
            CliError::new(Exit::Unexpected, format!("cannot write {}: {error}", path.display()))
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true);
        if self.target.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let mut out = options.open(path).map_err(failed)?;
        out.write_all(file.text.as_bytes()).map_err(failed)
    }

    fn report(&self, imported: &Imported, paths: &[PathBuf]) -> Outcome<()> {
        let shown = |place: usize| paths.get(place).map(|path| path.display().to_string());
        let files = imported.files.iter().enumerate().map(|(place, file)| {
            json!({
                "dag_id": file.dag_id,
                "path": shown(place),
                "needs_person": file.needs_person,
                "text": file.text,
            })
        });
        let data = json!({ "files": files.collect::<Vec<_>>(), "notes": imported.notes });
        if self.cx.out.data(&data)? {
            return Ok(());
        }
        // The report goes where no DAG goes.
        let to_stdout = self.target.to.is_some() || self.cx.global.dry_run;
        let mut text: String = imported.notes.iter().map(line).collect();
        let verb = if self.cx.global.dry_run { "would write" } else { "wrote" };
        for (place, file) in imported.files.iter().enumerate().filter(|_| to_stdout) {
            let paused = if file.needs_person { "  (paused)" } else { "" };
            let name = shown(place).unwrap_or_else(|| format!("{}.yaml", file.dag_id));
            text.push_str(&format!("{verb} {name}{paused}\n"));
        }
        if to_stdout {
            self.cx.out.print(&text)?;
        } else {
            self.cx.out.remark(text.trim_end());
            self.cx
                .out
                .print(&imported.files.iter().map(|file| file.text.as_str()).collect::<String>())?;
        }
        self.cx.out.remark(&summary(imported));
        Ok(())
    }
}

fn line(note: &Note) -> String {
    let kind = match note.kind {
        NoteKind::Unreadable => "unreadable",
        NoteKind::NeedsPerson => "needs a person",
        NoteKind::Converted => "converted",
        NoteKind::Ignored => "ignored",
    };
    let todo = if note.todo.is_empty() { String::new() } else { format!("; {}", note.todo) };
    let what = if note.what.is_empty() { String::new() } else { format!("{}  ->  ", note.what) };
    let visible: String = note.source.chars().map(crate::output::table::visible).collect();
    format!("{visible}:{}  {kind}  {what}{}{todo}\n", note.line, note.why)
}

fn summary(imported: &Imported) -> String {
    let paused = imported.files.iter().filter(|file| file.needs_person).count();
    let count = |kind| imported.count(kind);
    let mut text = format!(
        "{} ({paused} paused until a person has looked): {} converted, {} a person, {} ignored",
        if imported.files.len() == 1 {
            "1 DAG".to_owned()
        } else {
            format!("{} DAGs", imported.files.len())
        },
        count(NoteKind::Converted),
        match count(NoteKind::NeedsPerson) {
            1 => "1 needs".to_owned(),
            n => format!("{n} need"),
        },
        count(NoteKind::Ignored),
    );
    if count(NoteKind::Unreadable) > 0 {
        text.push_str(&format!(", {} unreadable", count(NoteKind::Unreadable)));
    }
    text
}

/// Files of several sources by names of their own.
fn apart(mut imported: Imported) -> Imported {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for file in &mut imported.files {
        let own = file.dag_id.clone();
        let mut number = 2_u32;
        while !taken.insert(file.dag_id.clone()) {
            file.dag_id = format!("{own}_{number}");
            number += 1;
        }
        if file.dag_id != own {
            let line = |id: &str| format!("\ndag_id: {id}\n");
            file.text = file.text.replacen(&line(&own), &line(&file.dag_id), 1);
        }
    }
    imported
}
