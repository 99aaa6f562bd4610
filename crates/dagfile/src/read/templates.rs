//! Which fields are templates, and of what kind.

use super::fields::Fields;
use super::{env, http, trigger, wait};
use crate::template;
use crate::yaml::{Entry, Node};

/// A piece of text that is a Jinja template.
pub(crate) struct Template<'a> {
    /// `run`, `command[2]`, `env.NAME`.
    pub(crate) field: String,
    pub(crate) node: &'a Node,
    pub(crate) kind: TemplateKind,
}

/// What a template's text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateKind {
    /// A shell script: what is pasted in is read by the shell; no Jinja comments.
    Script,
    /// An argument; no Jinja comments.
    Argument,
    Text,
    /// A text of a callback, which knows what happened to an instance, or to a run.
    Callback,
    OfRun,
    /// True or false.
    Condition,
    /// A list.
    Elements,
}

impl TemplateKind {
    /// Its text is one expression whose value counts, not what it renders to.
    pub(crate) const fn is_expression(self) -> bool {
        matches!(self, Self::Condition | Self::Elements)
    }
}

fn is_elements(list: &Entry) -> bool {
    list.value.as_text().is_some_and(template::is_expression)
}

/// The templates among the fields of a task or of `default_args`.
pub(super) fn of<'a>(fields: &Fields<'a>) -> Vec<Template<'a>> {
    let mut templates = Vec::new();
    let kinds = [
        ("run", TemplateKind::Script),
        ("when", TemplateKind::Condition),
        ("map_index_template", TemplateKind::Text),
        ("working_dir", TemplateKind::Text),
    ];
    for (name, kind) in kinds {
        if let Some(field) = fields.get(name) {
            templates.push(Template { field: name.into(), node: &field.entry.value, kind });
        }
    }
    let words = fields.get("command").and_then(|field| field.entry.value.as_list());
    for (index, node) in words.unwrap_or_default().iter().enumerate() {
        let field = format!("command[{index}]");
        templates.push(Template { field, node, kind: TemplateKind::Argument });
    }
    let lists = fields.get("expand").and_then(|field| field.entry.value.as_map());
    for entry in lists.unwrap_or_default().iter().filter(|list| is_elements(list)) {
        let (field, kind) = (format!("expand.{}", entry.key), TemplateKind::Elements);
        templates.push(Template { field, node: &entry.value, kind });
    }
    templates.extend(http::templates(fields));
    templates.extend(trigger::templates(fields));
    templates.extend(wait::templates(fields));
    templates.extend(env::templates(fields));
    templates
}
