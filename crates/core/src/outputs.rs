//! The output file of a task: `name=value` lines and `name<<EOF ... EOF` blocks.
//!
//! The grammar is GitHub's for `$GITHUB_OUTPUT`. Values are text unless a type is declared, or the name
//! says `name:json`.

use crate::dag::OutputType;
use serde_json::Value;

/// Largest output file in bytes.
pub const OUTPUT_LIMIT: usize = 1 << 20;

/// An output file that cannot be taken. `line` is 1-based.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    #[error("outputs: line {line}: expected `name=value` or `name<<END`")]
    Line { line: usize },
    #[error("outputs: line {line}: `{name}` is not a name (A-Z a-z 0-9 _ -, at most 100)")]
    Name { line: usize, name: String },
    #[error("outputs: line {line}: `{name}<<{end}` has no closing line `{end}`")]
    Unclosed { line: usize, name: String, end: String },
    #[error("outputs: line {line}: `{name}` is said to be JSON, and is not")]
    Json { line: usize, name: String },
    #[error("outputs: `{name}` is declared as {expected}, and its value is not")]
    Type { name: String, expected: &'static str },
    #[error("outputs: `{name}` is declared and was not written")]
    Missing { name: String },
    #[error("outputs: the file is larger than {OUTPUT_LIMIT} bytes; write large data to a store")]
    TooLarge,
}

/// Reads an output file and checks it against the declared outputs; a later line of a name wins.
/// Invalid UTF-8 and NUL bytes are replaced, so that a value can always be stored.
pub fn parse(
    bytes: &[u8],
    declared: &[(String, OutputType)],
) -> Result<Vec<(String, Value)>, OutputError> {
    if bytes.len() > OUTPUT_LIMIT {
        return Err(OutputError::TooLarge);
    }
    let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    let mut found: Vec<Written> = Vec::new();
    let mut lines = (1_usize..).zip(text.lines());
    while let Some((line, content)) = lines.next() {
        if content.trim().is_empty() {
            continue;
        }
        let written = entry(line, content, &mut lines)?;
        found.retain(|other| other.name != written.name);
        found.push(written);
    }
    typed(found, declared)
}

/// An output as it was written.
struct Written {
    name: String,
    text: String,
    /// What the text says, where its name says `name:json`.
    json: Option<Value>,
}

fn entry<'a>(
    line: usize,
    content: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Written, OutputError> {
    let equals = content.find('=');
    let block = content.find("<<").filter(|at| equals.is_none_or(|eq| *at < eq));
    let Some(at) = block.or(equals) else { return Err(OutputError::Line { line }) };
    let written = content[..at].trim();
    let (name, is_json) = match written.strip_suffix(":json") {
        Some(name) => (name.to_owned(), true),
        None => (written.to_owned(), false),
    };
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.is_empty() || name.len() > 100 || !name.bytes().all(fits) {
        return Err(OutputError::Name { line, name });
    }
    let text = match block {
        None => content[at + 1..].to_owned(),
        Some(_) => self::block(&name, line, content[at + 2..].trim(), lines)?,
    };
    let json = is_json.then(|| serde_json::from_str(&text));
    let json = json.transpose().map_err(|_| OutputError::Json { line, name: name.clone() })?;
    Ok(Written { name, text, json })
}

/// The lines up to the one that closes them.
fn block<'a>(
    name: &str,
    line: usize,
    end: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<String, OutputError> {
    let mut value: Vec<&str> = Vec::new();
    for (_, next) in lines {
        if next == end && !end.is_empty() {
            return Ok(value.join("\n"));
        }
        value.push(next);
    }
    Err(OutputError::Unclosed { line, name: name.to_owned(), end: end.to_owned() })
}

fn typed(
    found: Vec<Written>,
    declared: &[(String, OutputType)],
) -> Result<Vec<(String, Value)>, OutputError> {
    for (name, _) in declared {
        if !found.iter().any(|written| written.name == *name) {
            return Err(OutputError::Missing { name: name.clone() });
        }
    }
    found
        .into_iter()
        .map(|Written { name, text, json }| {
            let declared = declared.iter().find(|(other, _)| *other == name).map(|(_, of)| *of);
            let value = match json {
                Some(value) => check(&name, value, declared)?,
                None => convert(&name, text, declared)?,
            };
            Ok((name, value))
        })
        .collect()
}

fn check(name: &str, value: Value, of: Option<OutputType>) -> Result<Value, OutputError> {
    match of.filter(|of| !of.fits(&value)) {
        None => Ok(value),
        Some(of) => Err(OutputError::Type { name: name.into(), expected: of.as_str() }),
    }
}

fn convert(name: &str, text: String, of: Option<OutputType>) -> Result<Value, OutputError> {
    let Some(of) = of.filter(|of| *of != OutputType::String) else {
        return Ok(Value::String(text));
    };
    let value: Option<Value> = serde_json::from_str(text.trim()).ok();
    value
        .filter(|value| of.fits(value))
        .ok_or(OutputError::Type { name: name.into(), expected: of.as_str() })
}

impl OutputType {
    /// The name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
    /// The type of that name.
    pub fn parse(text: &str) -> Option<Self> {
        let all =
            [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Array, Self::Object];
        all.into_iter().find(|of| of.as_str() == text)
    }
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_may_say_that_its_value_is_json() {
        let file = b"rows:json=12\nfiles:json<<E\n[1,\n {}]\nE\nname:json=\"x\"\n";
        let declared = [("name".to_owned(), OutputType::String)];
        let found: Vec<Value> = parse(file, &declared).unwrap().into_iter().map(|o| o.1).collect();
        assert_eq!(found, [json!(12), json!([1, {}]), json!("x")]);
        let of = [("rows".to_owned(), OutputType::String)];
        assert!(matches!(parse(file, &of), Err(OutputError::Type { .. })));
        let wrong = parse(b"a=1\nrows:json=x\n", &[]).unwrap_err();
        assert_eq!(wrong, OutputError::Json { line: 2, name: "rows".into() });
    }

    #[test]
    fn lines_and_blocks_are_read_and_typed() {
        let file = b"path=s3://a=b\nrows=12\ntext<<EOF\none\ntwo=2\nEOF\n\nrows=13\n";
        let declared =
            [("rows".to_owned(), OutputType::Integer), ("path".to_owned(), OutputType::String)];
        let found = parse(file, &declared).unwrap();
        let expected = [
            ("path".to_owned(), json!("s3://a=b")),
            ("text".to_owned(), json!("one\ntwo=2")),
            ("rows".to_owned(), json!(13)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_taken_says_where() {
        let rows = [("rows".to_owned(), OutputType::Integer)];
        assert_eq!(parse(b"x", &[]).unwrap_err(), OutputError::Line { line: 1 });
        assert!(matches!(parse(b"a b=1", &[]), Err(OutputError::Name { line: 1, .. })));
        assert!(matches!(parse(b"a<<E\nx\n", &[]), Err(OutputError::Unclosed { line: 1, .. })));
        assert!(matches!(parse(b"rows=many", &rows), Err(OutputError::Type { .. })));
        assert!(matches!(parse(b"", &rows), Err(OutputError::Missing { .. })));
        assert_eq!(parse(b"a=\xff\0", &[]).unwrap()[0].1, json!("\u{fffd}\u{fffd}"));
    }
}
