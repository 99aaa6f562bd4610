//! Checks of a whole file after its parts were read: what templates use, and doubtful habits.

mod doubts;
mod upstream;

use crate::diagnostic::{Findings, Place, quoted};
use crate::read::{Draft, Reading, Template, TemplateKind};
use crate::suggest::did_you_mean;
use crate::template::{self, Use};
use crate::yaml::{Content, Node};
use fencepost_core::connection::is_sensitive;
use fencepost_core::dag::{OutputType, Task};
use fencepost_core::kept::{self, Kind};
use upstream::Upstreams;

/// Checks every template of a reading and warns of what may surprise. `file` is its text.
pub(crate) fn check(reading: &Reading<'_>, file: &str, findings: &mut Findings) {
    let mut upstreams = Upstreams::of(&reading.tasks);
    for template in &reading.templates {
        Check { reading, file, draft: None, template, findings, upstreams: &mut upstreams }.run();
    }
    for (index, draft) in reading.tasks.iter().enumerate() {
        for template in &draft.templates {
            let draft = Some((index, draft));
            Check { reading, file, draft, template, findings, upstreams: &mut upstreams }.run();
        }
        doubts::lost_retry(draft, findings);
    }
}

/// The check of one template.
struct Check<'a, 'b> {
    reading: &'a Reading<'a>,
    file: &'a str,
    /// The task that it belongs to, with its place.
    draft: Option<(usize, &'a Draft<'a>)>,
    template: &'a Template<'a>,
    findings: &'b mut Findings,
    upstreams: &'b mut Upstreams<'a>,
}

const UNKNOWN_NAME: &str = "unknown-name";

impl Check<'_, '_> {
    fn run(&mut self) {
        let Some(text) = self.template.node.as_text() else { return };
        let is_condition = self.template.kind.is_expression();
        if !is_condition && !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            return;
        }
        let analysis = match template::analyse(&self.template.field, text, is_condition) {
            Ok(analysis) => analysis,
            Err(error) => {
                let message = format!("`{}`: {}", self.template.field, error.message);
                let hint = "see the template syntax of Jinja";
                self.findings.error(self.place(error.offset), "template-syntax", message, hint);
                return;
            }
        };
        for (name, offset) in &analysis.filters {
            if !template::has_filter(name) {
                let message = format!("there is no filter `{name}`");
                self.findings.error(self.place(*offset), "unknown-filter", message, FILTERS);
            }
        }
        for (name, offset) in &analysis.tests {
            if !template::has_test(name) {
                let message = format!("there is no test `{name}`");
                self.findings.error(self.place(*offset), "unknown-filter", message, "");
            }
        }
        for used in &analysis.uses {
            self.check_use(used);
        }
    }

    fn place(&self, offset: usize) -> Place {
        place_in(self.template.node, offset, self.file)
    }

    fn error(&mut self, used: &Use, code: &'static str, message: String, hint: impl Into<String>) {
        let place = self.place(used.offset);
        self.findings.error(place, code, message, hint);
    }

    fn check_use(&mut self, used: &Use) {
        let path: Vec<&str> = used.path.iter().map(String::as_str).collect();
        let is_told = [TemplateKind::OfRun, TemplateKind::Callback].contains(&self.template.kind);
        if is_told && matches!(path.first(), Some(&"var" | &"conn")) {
            // What a callback says is kept as it is, and shown.
            let message =
                format!("what a callback says is kept and shown, and `{}` may be secret", path[0]);
            let hint = if template::is_script(&self.template.field) {
                "give the DAG `secrets` or `connections`: the command has them in its environment"
            } else {
                "name a connection: conn: NAME"
            };
            return self.error(used, "secret-kept", message, hint);
        }
        if self.is_kept_in_the_store() && speaks_of_secrets(&path) {
            let field = self.template.field.split('.').next().unwrap_or_default();
            let message =
                format!("`{field}` is kept as it is rendered, and `{}` may be secret", path[0]);
            return self.error(
                used,
                "secret-kept",
                message,
                "give it to a task that runs: env, secrets",
            );
        }
        match path.as_slice() {
            ["params", name, ..] => self.check_param(used, name),
            ["dag_run", "conf", ..] | ["conf", ..] => self.check_pasted(used),
            ["outputs", task, rest @ ..] => self.check_output(used, task, rest.first().copied()),
            ["macros", name, ..] if template::macro_names().all(|known| known != *name) => {
                let near = did_you_mean(name, template::macro_names());
                self.error(used, UNKNOWN_NAME, format!("there is no `macros.{name}`"), near);
            }
            ["var", form, name, ..] if matches!(*form, "value" | "json") => {
                self.check_kept(used, (Kind::Variable, name));
            }
            ["conn", name, ..] => self.check_kept(used, (Kind::Connection, name)),
            ["var", ..] => {
                let message = "`var` stands for nothing by itself".to_owned();
                self.error(used, UNKNOWN_NAME, message, "write var.value.NAME or var.json.NAME");
            }
            ["conn"] => {
                let message = "`conn` stands for nothing by itself".to_owned();
                self.error(used, UNKNOWN_NAME, message, "write conn.NAME, the name as it is");
            }
            [root, ..] => self.check_root(used, root),
            [] => {}
        }
    }

    /// What these become is a row of the store, which people may read.
    fn is_kept_in_the_store(&self) -> bool {
        ["trigger_dag", "wait", "expand"].iter().any(|key| self.template.field.starts_with(key))
    }

    /// What is kept is read before a template is rendered, by the names that its text shows.
    fn check_kept(&mut self, used: &Use, (kind, name): (Kind, &str)) {
        let text = self.template.node.as_text().unwrap_or_default();
        if !kept::mentioned(text).contains(&(kind, name.to_owned())) {
            let message = format!("a {kind} is named as it is, in one piece");
            let hint = match kind {
                Kind::Connection => "write conn.NAME or conn[\"NAME\"]",
                Kind::Variable | Kind::Secret => {
                    "write var.value.NAME or var.json.NAME, with `| default(...)` if it may be missing"
                }
            };
            return self.error(used, UNKNOWN_NAME, message, hint);
        }
        self.check_pasted(used);
    }

    fn check_root(&mut self, used: &Use, root: &str) {
        let mapped = self.draft.is_some_and(|(_, draft)| {
            draft.task.expand.iter().any(|(name, _)| name == root) || draft.maps_over(root)
        });
        let kind = self.template.kind;
        if kind == TemplateKind::OfRun && template::is_of_tasks(root) {
            let message = format!("`{root}`: this callback is about a run, not about a task");
            self.error(used, UNKNOWN_NAME, message, "write the callback at the tasks");
            return;
        }
        let told = [TemplateKind::OfRun, TemplateKind::Callback].contains(&kind)
            && template::is_of_callbacks(root);
        if told && root == "reason" {
            self.check_pasted(used);
        }
        if told
            || mapped
            || template::is_function(root)
            || template::top_level().any(|name| name == root)
        {
            return;
        }
        if template::is_of_callbacks(root) {
            let message = format!("`{root}` is known in callbacks only");
            self.error(used, UNKNOWN_NAME, message, "");
        } else if template::later(root) {
            let message = format!("`{root}` in templates is not supported yet");
            self.error(used, "not-supported-yet", message, "use params or env");
        } else if let Some(now) = template::replaced(root) {
            let message = format!("`{root}` is not defined in templates");
            self.error(used, UNKNOWN_NAME, message, format!("write {{{{ {now} }}}}"));
        } else {
            let near = did_you_mean(root, template::top_level());
            let message = format!("{} is not defined in templates", quoted(root));
            self.error(used, UNKNOWN_NAME, message, near);
        }
    }

    fn check_param(&mut self, used: &Use, name: &str) {
        let params = &self.reading.head.params;
        let Some(param) = params.iter().find(|param| param.name == name) else {
            // A param that could not be read has been reported.
            if !self.reading.declares_param(name) {
                let near = did_you_mean(name, params.iter().map(|param| param.name.as_str()));
                let hint = if near.is_empty() { "declare it under `params`".into() } else { near };
                let message = format!("there is no param {}", quoted(name));
                self.error(used, "unknown-param", message, hint);
            }
            return;
        };
        let harmless = ["integer", "number", "boolean"];
        let kind = param.schema.get("type").and_then(|kind| kind.as_str());
        if !kind.is_some_and(|kind| harmless.contains(&kind)) {
            self.check_pasted(used);
        }
    }

    fn check_output(&mut self, used: &Use, task: &str, output: Option<&str>) {
        let Some(upstream) = self.upstreams.index_of(task) else {
            if self.reading.tree.is_group(task) {
                self.report_group(used, task, output);
            } else if !self.reading.tree.declares_task(task) {
                let near = self.upstreams.did_you_mean(task);
                let message = format!("there is no task {}", quoted(task));
                self.error(used, "unknown-task", message, near);
            }
            return;
        };
        let is_upstream =
            self.draft.is_some_and(|(index, _)| self.upstreams.reaches(upstream, index));
        if !is_upstream {
            self.report_not_upstream(used, task);
            return;
        }
        let declared = &self.reading.tasks[upstream].task;
        let Some(output) = output else { return self.check_pasted(used) };
        match find_output(declared, output) {
            Found::Unknown => {
                let names = declared.outputs.iter().map(|(name, _)| name.as_str());
                let near = did_you_mean(output, names);
                let hint = if near.is_empty() { "declare it there".to_owned() } else { near };
                let message = format!("`{task}` declares no output {}", quoted(output));
                self.error(used, "unknown-output", message, hint);
            }
            Found::Harmless => {}
            Found::Text => self.check_pasted(used),
        }
    }

    /// A dot follows the name of a group where its task's was to come.
    fn report_group(&mut self, used: &Use, group: &str, member: Option<&str>) {
        let message = format!("`{group}` is a task group");
        let member = member.unwrap_or("TASK");
        self.error(used, "unknown-task", message, format!("write outputs[\"{group}.{member}\"]"));
    }

    fn report_not_upstream(&mut self, used: &Use, task: &str) {
        let (before, hint) = match self.draft.map(|(_, draft)| draft.task.task_id.as_str()) {
            Some(own) if own == task => {
                (format!("`{own}`"), "a task has its outputs when it ends".into())
            }
            Some(own) => (format!("`{own}`"), format!("add it: depends_on: [{task}]")),
            None => ("every task".into(), "write this at the tasks that come after it".into()),
        };
        let message = format!("`{task}` does not come before {before}");
        self.error(used, "not-upstream", message, hint);
    }

    /// Warns of a value that becomes part of a shell script unquoted.
    fn check_pasted(&mut self, used: &Use) {
        if !template::is_script(&self.template.field) || !used.is_pasted {
            return;
        }
        let of_task = self.template.kind == TemplateKind::Script;
        let (name, variable) = match used.path.as_slice() {
            [root, name, ..] if root == "params" => {
                (format!("params.{name}"), Some(format!("FENCEPOST_PARAM_{}", variable(name))))
            }
            [root] if root == "reason" => ("reason".into(), Some("CALLBACK_REASON".into())),
            [root, task, name, ..] if root == "outputs" && of_task => {
                let input = format!("FENCEPOST_INPUT_{}_{}", variable(task), variable(name));
                let path = if task.contains('.') {
                    format!("outputs[\"{task}\"].{name}")
                } else {
                    format!("outputs.{task}.{name}")
                };
                (path, Some(input))
            }
            path => (path.join("."), None),
        };
        let hint = match variable {
            Some(variable) => format!("use \"${variable}\" or `| sh`"),
            None => "use `| sh`, or pass it through `env`".to_owned(),
        };
        let message = format!("{name} is pasted into `{}`", self.template.field);
        self.findings.warn(self.place(used.offset), "script-injection", message, hint);
    }
}

/// Connections, and variables that are named like secrets.
fn speaks_of_secrets(path: &[&str]) -> bool {
    match path {
        ["conn", ..] => true,
        ["var", _, name, ..] => is_sensitive(name),
        _ => false,
    }
}

const FILTERS: &str =
    "Jinja's, and ds, ds_nodash, ts, ts_nodash, ts_nodash_with_tz, sh (quotes for the shell)";

enum Found {
    Unknown,
    Harmless,
    Text,
}

/// An output of a task that declares some must be among them.
fn find_output(task: &Task, name: &str) -> Found {
    match task.outputs.iter().find(|(known, _)| known == name) {
        Some((_, OutputType::Integer | OutputType::Number | OutputType::Boolean)) => {
            Found::Harmless
        }
        None if !task.outputs.is_empty() => Found::Unknown,
        _ => Found::Text,
    }
}

/// A name as part of an environment variable.
fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

fn place_in(node: &Node, offset: usize, file: &str) -> Place {
    match &node.content {
        Content::Scalar(scalar) => scalar.place_of(offset, node.place, file),
        Content::List(_) | Content::Map(_) => node.place,
    }
}
