//! Jinja templates of a DAG file: Airflow's names, strict, bounded, rendered once.
//!
//! An undefined name is an error, never an empty text. A template can neither run for ever (fuel)
//! nor grow without end (a cap on the output), and what it renders is not rendered again.
//! In `run` and `command` there is no comment syntax, so bash's `${#x}` stays what it is.
//! Nothing here reads a clock or draws a random number: equal context, equal text.

mod analysis;
mod context;
mod engine;
mod instant;
mod kept;
mod macros;
mod names;
mod path;
mod size;

pub(crate) use analysis::{Use, analyse, expression_of, is_expression};
pub use context::{AttemptFacts, Context, Happened, HappenedTo, ShortDates};
pub(crate) use engine::{has_filter, has_test, is_script};
pub use kept::Kept;
pub(crate) use names::{
    is_function, is_of_callbacks, is_of_tasks, is_top_level, later, macro_names, replaced,
    top_level,
};

use engine::Syntax;
use minijinja::ErrorKind;

/// Most bytes that a template may render to.
pub const OUTPUT_MAX: usize = 1 << 20;

/// Why a template gives no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` line {line}: {message}")]
pub struct TemplateError {
    /// The field of the task: `run`, `command[2]`, `env.NAME`.
    pub field: String,
    /// From 1, within the template.
    pub line: u32,
    pub message: String,
}

/// The text that a template stands for.
pub fn render(field: &str, template: &str, context: &Context) -> Result<String, TemplateError> {
    // Most fields are plain text; the engine would copy them as they are.
    if !["{{", "{%", "{#"].iter().any(|mark| template.contains(mark)) {
        return Ok(template.to_owned());
    }
    let syntax = Syntax::of_field(field);
    engine::render(syntax, template, context.to_value())
        .map_err(|error| explain(field, &error, context))
}

/// Whether a condition holds: `"{{ outputs.extract.rows > 0 }}"` or the bare expression.
pub fn evaluate(expression: &str, context: &Context) -> Result<bool, TemplateError> {
    let (bare, _) = expression_of(expression);
    engine::evaluate(bare, context.to_value()).map_err(|error| explain("when", &error, context))
}

/// What a template gives: the value of an expression (`"{{ outputs.list.files }}"`) as JSON, else the
/// text that it renders to.
pub fn value_of(
    field: &str,
    template: &str,
    context: &Context,
) -> Result<serde_json::Value, TemplateError> {
    if !is_expression(template) {
        return render(field, template, context).map(serde_json::Value::String);
    }
    let (bare, _) = expression_of(template);
    engine::value_of(bare, context.to_value()).map_err(|error| explain(field, &error, context))
}

fn explain(field: &str, error: &minijinja::Error, context: &Context) -> TemplateError {
    let mut message = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    if let Some(source) = std::error::Error::source(error) {
        message = format!("{message}: {source}");
    }
    if error.kind() == ErrorKind::OutOfFuel {
        "the template works too long or makes too much".clone_into(&mut message);
    }
    let is_undefined = error.kind() == ErrorKind::UndefinedError;
    if is_undefined && context.logical_date.is_none() {
        message.push_str("; this run has no logical date, so neither have ds, ts and their like");
    }
    if is_undefined && !context.kept.missing.is_empty() {
        message.push_str("; ");
        message.push_str(&context.kept.missing.join("; "));
    }
    let line = error.line().and_then(|line| u32::try_from(line).ok()).unwrap_or(1);
    TemplateError { field: field.to_owned(), line, message }
}
