//! The Jinja engine (minijinja), set up once for each of the two syntaxes.

use super::{OUTPUT_MAX, instant, macros, size};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use std::io;
use std::sync::LazyLock;

/// Steps of the engine per template.
const FUEL: u64 = 200_000;

/// Which marks a template knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `{{ }}` and `{% %}`.
    NoComments,
    /// Also `{# #}`.
    Full,
}

/// Whether a shell reads the field: the script of a task, or of a callback (`on_failure_callback[0].run`).
pub(crate) fn is_script(field: &str) -> bool {
    let of_callback =
        |key: &str| !key.contains('.') && (key.starts_with("on_") || key.starts_with("deadline"));
    field == "run" || field.strip_suffix(".run").is_some_and(of_callback)
}

impl Syntax {
    pub(super) fn of_field(field: &str) -> Self {
        let is_code = is_script(field) || field.starts_with("command");
        if is_code { Self::NoComments } else { Self::Full }
    }

    /// A mark with a NUL never comes up in a file, which holds none.
    pub(super) fn config(self) -> SyntaxConfig {
        let mut builder = SyntaxConfig::builder();
        builder.keep_trailing_newline(true);
        if self == Self::NoComments {
            builder.comment_delimiters("{\0#", "#\0}");
        }
        builder.build().unwrap_or_default()
    }
}

static NO_COMMENTS: LazyLock<Environment<'static>> =
    LazyLock::new(|| environment(Syntax::NoComments));
static FULL: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Syntax::Full));

fn environment(syntax: Syntax) -> Environment<'static> {
    let mut environment = Environment::new();
    // Only so do errors name what is undefined.
    environment.set_debug(true);
    environment.set_syntax(syntax.config());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(50);
    instant::add_filters(&mut environment);
    environment.add_filter("sh", macros::sh);
    environment
}

pub(super) fn render(syntax: Syntax, template: &str, context: Value) -> Result<String, Error> {
    let environment = match syntax {
        Syntax::NoComments => &NO_COMMENTS,
        Syntax::Full => &FULL,
    };
    size::check(template, Some(environment.syntax())).map_err(too_large)?;
    let mut output = Capped(Vec::new());
    environment.template_from_str(template)?.render_captured_to(context, &mut output)?;
    String::from_utf8(output.0)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "the template rendered no text"))
}

pub(super) fn evaluate(expression: &str, context: Value) -> Result<bool, Error> {
    eval(expression, context).map(|value| value.is_true())
}

pub(super) fn value_of(expression: &str, context: Value) -> Result<serde_json::Value, Error> {
    let value = eval(expression, context)?;
    serde_json::to_value(&value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, format!("it gives no JSON: {error}"))
    })
}

fn eval(expression: &str, context: Value) -> Result<Value, Error> {
    size::check(expression, None).map_err(too_large)?;
    let value = FULL.compile_expression(expression)?.eval(context)?;
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(value)
}

/// Whether the engine has a filter of that name.
pub(crate) fn has_filter(name: &str) -> bool {
    probe(&format!("none|{name}")) != Some(ErrorKind::UnknownFilter)
}

/// Whether the engine has a test of that name.
pub(crate) fn has_test(name: &str) -> bool {
    probe(&format!("none is {name}")) != Some(ErrorKind::UnknownTest)
}

fn too_large(error: super::analysis::SyntaxError) -> Error {
    Error::new(ErrorKind::SyntaxError, error.message)
}

fn probe(expression: &str) -> Option<ErrorKind> {
    let compiled = FULL.compile_expression(expression);
    compiled.and_then(|expression| expression.eval(())).err().map(|error| error.kind())
}

/// Collects output up to the cap.
struct Capped(Vec<u8>);

impl io::Write for &mut Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_MAX {
            return Err(io::Error::other("it renders to more than 1 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
