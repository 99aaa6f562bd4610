//! systemd timers: one DAG per timer, with the tasks of the service that it starts.
//!
//! Sources are unit files and drop-ins, by their paths: `backup.timer`, `backup.service`,
//! `backup.timer.d/override.conf`. Each timer among them is converted.

mod calendar;
mod service;
mod span;
mod timer;
mod unit;
mod words;

use crate::dag::{DagFile, Draft};
use crate::names::Names;
use crate::report::{Imported, Note, NoteKind, Notes};
use crate::{Source, text_of};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use timer::Timing;
use unit::Unit;
use words::Specifiers;

/// The DAG files of the timers among unit files, or of those of them that are named. `zone` is that of the
/// machine that they are from.
pub fn systemd(sources: &[Source<'_>], only: Option<&[&str]>, zone: &str) -> Imported {
    let folder = Folder::read(sources);
    let mut imported = Imported::default();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut names = Names::default();
    let is_wanted =
        |name: &str| is_a(name, &["timer"]) && only.is_none_or(|only| only.contains(&name));
    for (name, timer) in folder.units.iter().filter(|(name, _)| is_wanted(name)) {
        let of = Conversion { name, timer, folder: &folder, zone };
        used.extend([name.as_str(), of.service().0]);
        let (files, notes) = of.run(&mut names);
        imported.files.extend(files);
        imported.notes.extend(notes);
    }
    for (name, notes) in &folder.notes {
        let is_unread = notes.iter().any(|note| note.kind == NoteKind::Unreadable);
        if used.contains(name.as_str()) || is_unread {
            imported.notes.extend(notes.iter().cloned());
        } else if only.is_none() {
            let mut notes = Notes::of(&folder.path(name));
            notes.ignored(1, name, "no timer among these starts it");
            imported.notes.extend(notes.finish());
        }
    }
    imported.notes.sort_by(|a, b| (&a.source, a.line).cmp(&(&b.source, b.line)));
    imported
}

/// Unit files and their drop-ins.
struct Folder {
    units: BTreeMap<String, Unit>,
    /// Where each unit's own file is.
    paths: BTreeMap<String, String>,
    /// What is to be said of the text of each.
    notes: BTreeMap<String, Vec<Note>>,
}

impl Folder {
    fn read(sources: &[Source<'_>]) -> Self {
        let mut folder =
            Self { units: BTreeMap::new(), paths: BTreeMap::new(), notes: BTreeMap::new() };
        let mut sorted: Vec<&Source<'_>> = sources.iter().collect();
        // A unit before its drop-ins, those by their names.
        sorted.sort_by_key(|source| (drop_in_of(source.name).is_some(), source.name));
        for source in sorted {
            let mut notes = Notes::of(source.name);
            let name = drop_in_of(source.name).unwrap_or_else(|| last(source.name)).to_owned();
            if let Some(text) = text_of(source, &mut notes) {
                let unit = folder.units.entry(name.clone()).or_default();
                unit.read(text);
                for (line, odd) in std::mem::take(&mut unit.odd) {
                    notes.needs(
                        line,
                        odd,
                        "it is no assignment",
                        "systemd passes over it too; mend it",
                    );
                }
            }
            folder.paths.entry(name.clone()).or_insert_with(|| source.name.to_owned());
            folder.notes.entry(name).or_default().extend(notes.finish());
        }
        folder
    }

    fn path(&self, unit: &str) -> String {
        self.paths.get(unit).map_or_else(|| unit.to_owned(), Clone::clone)
    }
}

/// Whether a unit or a file is of one of those kinds.
fn is_a(name: &str, kinds: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The unit that a file in `NAME.d/` adds to.
fn drop_in_of(path: &str) -> Option<&str> {
    let (folder, file) = path.rsplit_once('/')?;
    if !is_a(file, &["conf"]) {
        return None;
    }
    last(folder).strip_suffix(".d")
}

struct Conversion<'a> {
    name: &'a str,
    timer: &'a Unit,
    folder: &'a Folder,
    zone: &'a str,
}

impl<'a> Conversion<'a> {
    /// The file of the unit that it starts, and that unit's own name.
    fn service(&self) -> (&'a str, String) {
        let stem = self.name.trim_end_matches(".timer");
        let named = self.timer.last("Timer", "Unit").map(|a| a.value.clone());
        let name = named.unwrap_or_else(|| format!("{stem}.service"));
        let name = Specifiers { unit: self.name }.expand(&name).unwrap_or(name);
        let known =
            |name: &str| self.folder.units.get_key_value(name).map(|(known, _)| known.as_str());
        let file = known(&name).or_else(|| known(&template_of(&name)?));
        (file.unwrap_or_default(), name)
    }

    fn run(&self, names: &mut Names) -> (Vec<DagFile>, Vec<Note>) {
        let stem = self.name.trim_end_matches(".timer");
        if stem.ends_with('@') {
            let mut notes = Notes::of(&self.folder.path(self.name));
            let todo =
                format!("give it (or a link to it) the name of an instance: {stem}NAME.timer");
            notes.needs(1, self.name, "it is a template, of which nothing runs by itself", todo);
            return (Vec::new(), notes.finish());
        }
        let mut notes = Notes::of(&self.folder.path(self.name));
        let dag_id = names.give(stem, "timer");
        notes.dag_id.clone_from(&dag_id);
        let timing = timer::read(self.timer, self.zone, &mut notes);
        let (file, service) = self.service();
        let unit = self.folder.units.get(file);
        let mut draft = Draft::new(&dag_id, format!("{} and {service}", self.name), 1);
        self.about(&mut draft, unit);
        let mut service_notes = Notes::of(&self.folder.path(file));
        service_notes.dag_id.clone_from(&dag_id);
        if let Some(unit) = unit {
            unit_section(unit, &mut service_notes);
            let mut reading = service::Reading {
                unit,
                specifiers: Specifiers { unit: &service },
                notes: &mut service_notes,
            };
            service::read(service.trim_end_matches(".service"), &mut reading, &mut draft);
        } else {
            let todo = format!("give {service} beside it, or say what it runs");
            notes.needs(1, &service, "the unit that it starts is not there", todo);
            let script = crate::script::refuses(&format!(
                "{service} was not there when {} was imported",
                self.name
            ));
            draft.tasks.insert("missing".into(), json!({ "run": script }));
        }
        unit_section(self.timer, &mut notes);
        let mut files = Vec::new();
        let mut all = notes.finish();
        all.extend(service_notes.finish());
        let mut notes = Notes::from(&self.folder.path(self.name), all);
        for (place, part) in schedules(&timing).into_iter().enumerate() {
            let mut draft = draft.copy();
            if place > 0 {
                draft.rename(&names.give(stem, "timer"));
                notes.dag_id.clone_from(&draft.dag_id);
                let todo = "nothing keeps the two from running at once; write the times in one zone if that matters";
                notes.needs(
                    1,
                    self.name,
                    "its times are in several zones, so it became several DAGs",
                    todo,
                );
            }
            part.write(&timing, &mut draft);
            files.extend(draft.finish(&mut notes));
        }
        (files, notes.finish())
    }

    fn about(&self, draft: &mut Draft, service: Option<&Unit>) {
        let find = |name: &str| {
            let of = |unit: &Unit| unit.last("Unit", name).map(|a| a.value.clone());
            service.and_then(of).or_else(|| of(self.timer))
        };
        let text = |value: String| Specifiers { unit: self.name }.expand(&value).unwrap_or(value);
        draft.set_some("description", find("Description").map(text).unwrap_or_default());
        draft.set_some("doc_md", find("Documentation").unwrap_or_default());
    }
}

/// `a@b.service` is made of `a@.service`.
fn template_of(name: &str) -> Option<String> {
    let (prefix, rest) = name.split_once('@')?;
    let (_, suffix) = rest.rsplit_once('.')?;
    Some(format!("{prefix}@.{suffix}"))
}

/// `[Unit]` and `[Install]`: dependencies and conditions.
fn unit_section(unit: &Unit, notes: &mut Notes) {
    for assignment in unit.assignments.iter().filter(|a| !a.value.is_empty()) {
        let (line, name) = (assignment.line, assignment.name.as_str());
        let what = format!("{name}={}", assignment.value);
        match (assignment.section.as_str(), name) {
            (
                "Unit",
                "Description" | "Documentation" | "StartLimitBurst" | "StartLimitIntervalSec",
            )
            | ("Timer" | "Service", _) => {}
            ("Install", _) => notes.ignored(line, what, "a DAG file in the folder is enabled"),
            (
                "Unit",
                "After" | "Before" | "Wants" | "Requires" | "BindsTo" | "Requisite" | "PartOf",
            ) if assignment
                .value
                .split_whitespace()
                .all(|unit| is_a(unit, &["target", "timer", "slice"])) =>
            {
                notes.ignored(line, what, "the scheduler runs when the machine is up");
            }
            (
                "Unit",
                "DefaultDependencies" | "RefuseManualStart" | "RefuseManualStop" | "CollectMode",
            ) => {
                notes.ignored(line, what, "it is about the unit in systemd");
            }
            ("Unit", "OnFailure" | "OnSuccess") => {
                notes.needs(
                    line,
                    what,
                    "no unit is started at its end",
                    "add a task with trigger_rule one_failed, or a callback",
                );
            }
            ("Unit", name) if name.starts_with("Condition") || name.starts_with("Assert") => {
                let why = "conditions of units are not looked at";
                notes.needs(line, what, why, "test it in the script: exit 99 skips the task");
            }
            (
                "Unit",
                "After" | "Before" | "Wants" | "Requires" | "BindsTo" | "Requisite" | "PartOf"
                | "Conflicts",
            ) => {
                notes.needs(
                    line,
                    what,
                    "it does not wait for other units",
                    "make one DAG of both, or wait: {external_run: ...}",
                );
            }
            (section, _) => {
                let why = format!("it is not known in [{section}]");
                notes.needs(line, what, why, "look whether the job depends on it");
            }
        }
    }
}

/// What one DAG of a timer has as its schedule.
enum Part<'a> {
    Crons(&'a str, &'a [String]),
    Every(u64),
    Nothing,
}

fn schedules(timing: &Timing) -> Vec<Part<'_>> {
    let crons = timing.crons.iter().map(|(zone, crons)| Part::Crons(zone, crons));
    let every = timing.every.map(Part::Every);
    let all: Vec<Part<'_>> = crons.chain(every).collect();
    if all.is_empty() { vec![Part::Nothing] } else { all }
}

impl Part<'_> {
    fn write(&self, timing: &Timing, draft: &mut Draft) {
        match self {
            Part::Crons(zone, crons) => {
                let one = crons.first().filter(|_| crons.len() == 1);
                draft.set("schedule", one.map_or_else(|| json!(crons), |cron| json!(cron)));
                draft.set("timezone", *zone);
            }
            Part::Every(span) => draft.set("schedule", json!({ "every": span::duration(*span) })),
            Part::Nothing => return,
        }
        // A unit that runs is not started again, and what was missed is made up for once or not at all.
        draft.set("catchup", if timing.is_persistent { json!(false) } else { json!("next") });
        draft.set("max_active_runs", 1);
        draft.set("overlap", "skip");
    }
}
