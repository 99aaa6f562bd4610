//! What an installation keeps under names for its tasks: variables, connections, secrets; and where a
//! secret of a task comes from.

use crate::connection::encode;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeSet;
use std::fmt;

/// The three kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Variable,
    Connection,
    Secret,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Variable, Self::Connection, Self::Secret];

    /// The word of the store, the interfaces and the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Variable => "variable",
            Self::Connection => "connection",
            Self::Secret => "secret",
        }
    }

    /// The kind of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A thing that is kept.
pub type Name = (Kind, String);

/// Where the value of a secret comes from: `store:NAME`, `env:NAME`, `file:/PATH`, `exec:COMMAND`.
///
/// The first is read by the server, which alone opens the store; the others by the worker that runs the
/// task: what a server's own environment and files say is none of a DAG file's business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// A secret of the installation.
    Store(String),
    /// A variable of the worker's environment.
    Env(String),
    /// A file of the worker's machine, without its last line end.
    File(String),
    /// What a command of the worker's shell prints, without its last line end.
    Exec(String),
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("it does not say where the value comes from")]
    NoBackend,
    #[error("`{0}:` is no backend of this release")]
    Unknown(String),
    #[error("nothing comes after `{0}:`")]
    Nothing(&'static str),
    #[error("`file:` needs an absolute path")]
    Relative,
    #[error("a worker's own settings (FENCEPOST_...) are not for tasks")]
    Own,
}

impl SecretSource {
    /// Reads `BACKEND:WHAT`.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let (backend, what) = text.split_once(':').ok_or(SourceError::NoBackend)?;
        let what = what.trim();
        let some = |name| if what.is_empty() { Err(SourceError::Nothing(name)) } else { Ok(what) };
        match backend {
            "store" => Ok(Self::Store(some("store")?.into())),
            "env" if what.starts_with("FENCEPOST_") => Err(SourceError::Own),
            "env" => Ok(Self::Env(some("env")?.into())),
            "file" if !some("file")?.starts_with('/') => Err(SourceError::Relative),
            "file" => Ok(Self::File(what.into())),
            "exec" => Ok(Self::Exec(some("exec")?.into())),
            other => Err(SourceError::Unknown(other.into())),
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (backend, what) = match self {
            Self::Store(what) => ("store", what),
            Self::Env(what) => ("env", what),
            Self::File(what) => ("file", what),
            Self::Exec(what) => ("exec", what),
        };
        write!(f, "{backend}:{what}")
    }
}

/// The variables and connections that a template may speak of: `var.value.NAME`, `var.json.NAME`,
/// `conn.NAME`, and the same with `["NAME"]`. Text that only looks like it costs a look-up, no more;
/// that nothing is overlooked is checked where a file is validated.
pub fn mentioned(text: &str) -> BTreeSet<Name> {
    let forms =
        [("var.value", Kind::Variable), ("var.json", Kind::Variable), ("conn", Kind::Connection)];
    let mut found = BTreeSet::new();
    for (form, kind) in forms {
        for (at, _) in text.match_indices(form) {
            found.extend(name_at(&text[at + form.len()..]).map(|name| (kind, name.to_owned())));
        }
    }
    found
}

/// A text shorter than this is not hidden: it would hide half of every log.
const HIDDEN_LEAST: usize = 4;

/// What is to be hidden of secrets: each as it is, each of its lines, and what comes of them where
/// somebody writes them as JSON, as a part of an address, or in base64.
pub fn hidden(secrets: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for secret in secrets {
        let lines: Vec<&str> = secret.lines().map(str::trim).collect();
        for text in lines.into_iter().chain([secret.as_str()]) {
            if text.len() >= HIDDEN_LEAST {
                all.extend(forms(text));
            }
        }
    }
    all.retain(|text| text.len() >= HIDDEN_LEAST);
    all
}

fn forms(text: &str) -> Vec<String> {
    let json = serde_json::Value::from(text).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let ascii = json.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) });
    let ascii: String = ascii.collect();
    let address = encode(text);
    let path = address.replace("%2F", "/");
    let form = address.replace("%20", "+");
    let mut forms = vec![text.to_owned(), json, ascii, address, path, form];
    // `echo` adds a line end.
    for bytes in [text.as_bytes(), format!("{text}\n").as_bytes()] {
        forms.extend([STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)]);
    }
    forms.extend((0..3).flat_map(|before| in_longer_base64(text, before)));
    forms
}

/// What of a text is always there in the base64 of a longer one, with that many bytes (modulo 3) before it:
/// the characters that no other byte has a share in.
fn in_longer_base64(text: &str, before: usize) -> [String; 2] {
    let bytes = [&[0; 2][..before], text.as_bytes()].concat();
    let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)].map(|all| all[from..to].into())
}

/// As JSON writes it where only ASCII may stand.
fn escaped(c: char) -> String {
    let mut units = [0; 2];
    let add = |text: String, unit: &mut u16| text + &format!("\\u{unit:04x}");
    c.encode_utf16(&mut units).iter_mut().fold(String::new(), add)
}

/// The name that a text begins with, as an attribute or as an item.
fn name_at(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('.') {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let name = rest.split(is_end).next().unwrap_or_default();
        return Some(name).filter(|name| !name.is_empty());
    }
    let rest = text.strip_prefix('[')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (name, after) = rest[1..].split_once(quote)?;
    after.trim_start().starts_with(']').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_written_alike() {
        for text in ["store:dsn", "env:DSN", "file:/run/secrets/dsn", "exec:pass show a:b"] {
            assert_eq!(SecretSource::parse(text).unwrap().to_string(), text);
        }
        let refused = [
            ("dsn", SourceError::NoBackend),
            ("vault:kv/sales#dsn", SourceError::Unknown("vault".into())),
            ("store: ", SourceError::Nothing("store")),
            ("file:", SourceError::Nothing("file")),
            ("file:dsn", SourceError::Relative),
            ("env:FENCEPOST__SECRETS__KEYS", SourceError::Own),
        ];
        for (text, why) in refused {
            assert_eq!(SecretSource::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_secret_is_hidden_in_every_form_unless_it_is_too_short() {
        let found = hidden(["abc".to_owned(), "s3cr=t/ \u{c5}\nline2\nx".to_owned()]);
        for form in [
            "s3cr=t/ \u{c5}\nline2\nx",
            "s3cr=t/ \u{c5}",
            "line2",
            r"s3cr=t/ \u00c5\nline2\nx",
            "s3cr%3Dt%2F%20%C3%85",
            "s3cr%3Dt/%20%C3%85",
            "s3cr%3Dt%2F+%C3%85",
            "czNjcj10LyDDhQpsaW5lMgp4",
            "bGluZTI=",
            "bGluZTIK",
        ] {
            assert!(found.contains(form), "{form} is not in {found:#?}");
        }
        assert!(!found.contains("abc") && !found.contains("x"), "{found:#?}");
    }

    #[test]
    fn a_secret_within_longer_base64_is_hidden_wherever_it_begins() {
        for secret in ["hunter2", "hunter22", "hunter222", "\u{f8}\u{ff}?>~~"] {
            let found = hidden([secret.to_owned()]);
            for (before, after) in
                [("", ""), ("a", ""), ("ab", ""), ("abc", "x"), ("abcd", "xy"), ("me:", "\n")]
            {
                let text = format!("{before}{secret}{after}");
                for all in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let best = found.iter().filter(|form| all.contains(*form)).map(String::len);
                    // All but the characters that a byte of something else has a share in.
                    let least = (secret.len() * 8).saturating_sub(8) / 6;
                    let best = best.max().unwrap_or(0);
                    assert!(best >= least, "{secret} in {all}: {best} of {least}");
                }
            }
        }
    }

    #[test]
    fn every_way_to_name_one_is_found() {
        let text = "{{ var.value.region }} {{ var.json['a-b'] }} {{conn.warehouse.host}}
            {{ conn[ \"x y\" ].login }} {{ conn[name] }} conn. {{ var.value }} connect.me";
        let names = [
            (Kind::Variable, "a-b"),
            (Kind::Variable, "region"),
            (Kind::Connection, "warehouse"),
            (Kind::Connection, "x y"),
        ];
        let names: BTreeSet<Name> =
            names.into_iter().map(|(kind, name)| (kind, name.to_owned())).collect();
        assert_eq!(mentioned(text), names);
    }
}
