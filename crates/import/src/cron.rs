//! Crontabs: of a user (`crontab -l`) and of the system (`/etc/crontab`, `/etc/cron.d/*`), one DAG per line.
//!
//! The rules are those of Vixie cron, cronie and Debian's: fields and names, `%`, settings between the
//! lines. The rule for day of month and day of week is the one of DAG files too (if one of them begins
//! with `*`, a day must match both, else either), and so is the one for clock changes.

mod fields;
mod line;

use crate::dag::{DagFile, Draft};
use crate::names::{Names, is_variable};
use crate::report::{Imported, Notes};
use crate::script;
use crate::{Source, text_of};
use line::{Job, Line, When};
use serde_json::{Map, Value, json};

/// Whether lines name a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronForm {
    User,
    System,
}

/// What a crontab does not say itself.
#[derive(Debug, Clone, Copy)]
pub struct CronOptions<'a> {
    /// The zone of the machine that it is from, where no `CRON_TZ` says another.
    pub zone: &'a str,
    /// `None`: by the file's name, or because the sixth word is `root`.
    pub form: Option<CronForm>,
}

/// The DAG files of a crontab.
pub fn cron(source: &Source<'_>, options: &CronOptions<'_>) -> Imported {
    let mut notes = Notes::of(source.name);
    let mut files = Vec::new();
    if let Some(text) = text_of(source, &mut notes) {
        let form = options.form.unwrap_or_else(|| form_of(source.name, text));
        let mut reading = Reading {
            name: source.name,
            form,
            zone: options.zone.to_owned(),
            settings: Map::new(),
            names: Names::default(),
            about: String::new(),
            notes: &mut notes,
        };
        for (number, line) in (1_u32..).zip(text.lines()) {
            files.extend(reading.line(number, line));
        }
    }
    Imported { files, notes: notes.finish() }
}

fn form_of(name: &str, text: &str) -> CronForm {
    let is_system = name == "/etc/crontab" || name.contains("/cron.d/");
    let names_root = |line: &str| match line::read(line, CronForm::System) {
        Line::Job(job) => job.user == "root",
        Line::Nothing | Line::Comment(_) | Line::Setting(..) | Line::Wrong(_) => false,
    };
    if is_system || text.lines().any(names_root) { CronForm::System } else { CronForm::User }
}

struct Reading<'a> {
    name: &'a str,
    form: CronForm,
    zone: String,
    /// What was set so far, for the lines that follow.
    settings: Map<String, Value>,
    names: Names,
    /// The comment right above.
    about: String,
    notes: &'a mut Notes,
}

impl Reading<'_> {
    fn line(&mut self, number: u32, text: &str) -> Option<DagFile> {
        self.notes.dag_id.clear();
        let about = std::mem::take(&mut self.about);
        match line::read(text, self.form) {
            Line::Nothing => {}
            Line::Comment(comment) => comment.clone_into(&mut self.about),
            Line::Setting(name, value) => self.setting(number, &name, value),
            Line::Job(job) => return self.job(number, text, &job, &about),
            Line::Wrong(why) => {
                let todo = "cron runs no such line either; mend it or take it out";
                self.notes.needs(number, text, why, todo);
            }
        }
        None
    }

    fn setting(&mut self, number: u32, name: &str, value: String) {
        let what = format!("{name}={value}");
        match name {
            "CRON_TZ" if fencepost_core::schedule::Zone::get(&value).is_some() => {
                self.notes.converted(number, what, "timezone of the lines that follow");
                self.zone = value;
            }
            "CRON_TZ" => {
                let todo = "write an IANA name, such as Europe/Berlin";
                self.notes.needs(number, what, "there is no such time zone", todo);
            }
            "MAILTO" if value.is_empty() => {
                self.notes.ignored(number, what, "output goes to the log of the attempt");
            }
            "MAILTO" => {
                let why = "output is not mailed: it is kept in the log of the attempt";
                let todo = "where somebody must hear of a failure, set a callback or an alert";
                self.notes.needs(number, what, why, todo);
            }
            "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => {
                self.notes.ignored(number, what, "output is not mailed");
            }
            "RANDOM_DELAY" => {
                let todo = "spread the schedules, or limit what runs at once by a pool";
                self.notes.needs(number, what, "starts are not delayed at random", todo);
            }
            _ if !is_variable(name) || name.starts_with("FENCEPOST_") => {
                let todo = "set it in the script";
                self.notes.needs(number, what, "no task can have a variable of that name", todo);
            }
            _ => {
                self.notes.converted(number, what, "env of the lines that follow");
                self.settings.insert(name.to_owned(), json!(value));
            }
        }
    }

    fn job(&mut self, number: u32, text: &str, job: &Job<'_>, about: &str) -> Option<DagFile> {
        let wish = line::program(job.command);
        let task = crate::names::clean(wish).unwrap_or_else(|| "job".to_owned());
        let dag_id = self.names.give(wish, &format!("cron_line_{number}"));
        self.notes.dag_id.clone_from(&dag_id);
        let mut draft = Draft::new(&dag_id, format!("line {number} of {}", self.name), number);
        draft.set_some("description", about);
        self.when(number, text, job, &mut draft);
        let env = self.settings.iter().map(|(name, value)| {
            (name.clone(), json!(script::literal_value(value.as_str().unwrap_or_default())))
        });
        draft.set_some("env", env.collect::<Map<_, _>>());
        let shell = self.settings.get("SHELL").and_then(Value::as_str).unwrap_or("/bin/sh");
        let mut keys = Map::new();
        keys.insert("run".into(), json!(script::literal(&job.script())));
        keys.insert("shell".into(), json!([shell]));
        if self.form == CronForm::System {
            let (user, rest) = job.user.split_once([':', '/']).unwrap_or((job.user, ""));
            keys.insert("run_as_user".into(), json!(user));
            if !rest.is_empty() {
                let todo = "a task has a user and no group or class of its own";
                self.notes.needs(number, job.user, "only the user is taken over", todo);
            }
        }
        draft.tasks.insert(task, Value::Object(keys));
        draft.finish(self.notes)
    }

    fn when(&mut self, number: u32, text: &str, job: &Job<'_>, draft: &mut Draft) {
        let expression = match &job.when {
            When::Name(name) => (*name).to_owned(),
            When::Fields(fields) => match fields::expression(fields) {
                Ok(expression) => expression,
                Err(fields::Wrong::Random) => {
                    let why = "cron picks a value at random each time it reads the file; it is written without a schedule";
                    self.notes.needs(number, text, why, "choose one and write it as `schedule`");
                    return;
                }
                Err(fields::Wrong::No(why)) => {
                    let why = format!("{why}; it is written without a schedule");
                    self.notes.needs(
                        number,
                        text,
                        why,
                        "cron runs no such line either; write a `schedule`",
                    );
                    return;
                }
            },
            When::Boot => {
                let why = "it runs when the machine starts, which is no time; it is written without a schedule";
                let todo = "make it a service that starts at boot, or trigger it";
                self.notes.needs(number, text, why, todo);
                return;
            }
        };
        if let Err(error) = fencepost_core::schedule::Cron::parse(&expression) {
            let why = format!("{error}; it is written without a schedule");
            self.notes.needs(number, text, why, "write a `schedule`");
            return;
        }
        self.notes.converted(number, text, format!("{}.yaml", draft.dag_id));
        draft.set("schedule", expression);
        draft.set("timezone", self.zone.as_str());
        // As cron: what fell due while nobody looked is not made up for.
        draft.set("catchup", "next");
    }
}
