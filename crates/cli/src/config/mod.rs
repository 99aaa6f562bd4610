//! The configuration: flag over environment over file over default, with the origin of each value.
//!
//! Everything is checked when it is loaded, all mistakes are told at once with their place, and
//! unknown keys are mistakes. What contradicts what is in [`lint`].

pub(crate) mod keys;
pub(crate) mod lint;
mod read;

use crate::environment::Environment;
use crate::error::CliError;
use crate::exit::Exit;
use fencepost_core::time::Span;
use keys::{Fallback, KEYS, Key, Kind};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value, or a mistake, stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Flag(&'static str),
    Variable(String),
    /// Line and column from 1.
    File {
        path: String,
        line: usize,
        column: usize,
    },
    Default,
}

impl Place {
    /// `flag`, `environment`, `file` or `default`.
    pub(crate) const fn origin(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Variable(_) => "environment",
            Self::File { .. } => "file",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub(crate) struct ConfigError {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// The effective value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// `None`: not set and without a fixed default.
    pub(crate) value: Option<String>,
    pub(crate) place: Place,
}

/// What a verb's own flags set: (`worker.slots`, `--slots`, value).
pub(crate) type Overrides = Vec<(&'static str, &'static str, String)>;

/// The whole configuration.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    settings: BTreeMap<&'static str, Setting>,
}

impl Settings {
    /// Loads and checks all layers. A file that was named must be there; the home's may be absent.
    pub(crate) fn load(
        home: &Path,
        named_file: Option<&PathBuf>,
        env: &Environment,
        overrides: Overrides,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let mut layers = Self::defaults(home);
        layers.file(home, named_file, &mut errors);
        layers.environment(env, &mut errors);
        layers.flags(overrides, &mut errors);
        if errors.is_empty() { Ok(layers) } else { Err(errors) }
    }

    fn defaults(home: &Path) -> Self {
        let settings = KEYS.iter().map(|key| {
            let value = match key.default {
                Fallback::Value(text) => Some(text.into()),
                Fallback::InHome(text) => Some(text.replace("{home}", &home.display().to_string())),
                Fallback::Computed(_) | Fallback::Unset => None,
            };
            (key.name, Setting { value, place: Place::Default })
        });
        Self { settings: settings.collect() }
    }

    fn file(&mut self, home: &Path, named: Option<&PathBuf>, errors: &mut Vec<ConfigError>) {
        let path = named.cloned().unwrap_or_else(|| home.join("fencepost.toml"));
        let shown = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return,
            Err(error) => {
                let place = Place::File { path: shown, line: 1, column: 1 };
                errors.push(ConfigError { place, message: error.to_string(), hint: None });
                return;
            }
        };
        let (values, mistakes) = read::read(&shown, &text);
        errors.extend(mistakes);
        let folder = path.parent().unwrap_or(Path::new("."));
        for value in values {
            let text = from_folder(value.key.kind, value.text, folder);
            self.set(value.key.name, text, value.place);
        }
    }

    fn environment(&mut self, env: &Environment, errors: &mut Vec<ConfigError>) {
        for (variable, value) in env.with_prefix("FENCEPOST__") {
            let name = variable["FENCEPOST__".len()..].to_lowercase().replace("__", ".");
            self.check_and_set(&name, value.into(), Place::Variable(variable.into()), errors);
        }
    }

    fn flags(&mut self, overrides: Overrides, errors: &mut Vec<ConfigError>) {
        for (name, flag, value) in overrides {
            self.check_and_set(name, value, Place::Flag(flag), errors);
        }
    }

    fn check_and_set(
        &mut self,
        name: &str,
        value: String,
        place: Place,
        errors: &mut Vec<ConfigError>,
    ) {
        let Some(key) = Key::find(name) else {
            let (message, hint) = read::unknown_key(name);
            errors.push(ConfigError { place, message, hint });
            return;
        };
        match key.kind.check(&value) {
            Ok(()) => self.set(key.name, value, place),
            Err(message) => errors.push(ConfigError { place, message, hint: None }),
        }
    }

    fn set(&mut self, name: &'static str, value: String, place: Place) {
        self.settings.insert(name, Setting { value: Some(value), place });
    }

    /// Every key with its value, by section as documented.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        KEYS.iter().filter_map(|key| self.settings.get(key.name).map(|setting| (key, setting)))
    }

    /// The value as text; `None`: not set, or no such key.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.settings.get(name)?.value.as_deref()
    }

    /// The value of a duration.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.text(name)?.parse().ok()
    }
}

/// A relative path in a file is one from the file's folder, whoever reads it from where.
fn from_folder(kind: Kind, text: String, folder: &Path) -> String {
    let (scheme, path) = match kind {
        Kind::Path => ("", Some(text.as_str())),
        Kind::StoreUrl => ("sqlite:", text.strip_prefix("sqlite:")),
        Kind::Text
        | Kind::Span
        | Kind::Count(..)
        | Kind::Share
        | Kind::Address
        | Kind::Url
        | Kind::Names
        | Kind::OneOf(_) => ("", None),
    };
    match path {
        Some(path) if Path::new(path).is_relative() => {
            format!("{scheme}{}", folder.join(path).display())
        }
        _ => text,
    }
}

/// The mistakes as one failure: the first is the message, the others follow it.
pub(crate) fn refuse(errors: &[ConfigError]) -> CliError {
    let mut failure = CliError::new(Exit::Usage, "the configuration has mistakes");
    for error in errors {
        let hint = error.hint.as_ref().map(|hint| format!("      {hint}")).unwrap_or_default();
        failure = failure.hint(format!("{error}{hint}"));
    }
    failure
}

#[cfg(test)]
mod tests;
