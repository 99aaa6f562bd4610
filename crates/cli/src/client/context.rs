//! Contexts: servers by name, so that a person who works with several need not repeat addresses.
//!
//! They lie in `$FENCEPOST_HOME/contexts.toml`. A context names the *file* of its token and never
//! holds the token itself, so the list can be shown and copied.

use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::Global;
use crate::nearest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

const FILE: &str = "contexts.toml";

/// A server that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) server: String,
    /// Absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
}

/// All contexts of a home, and the one in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// Those of a home; none if it has no file.
    pub(crate) fn load(home: &Path) -> Outcome<Self> {
        let file = home.join(FILE);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(CliError::usage(format!("{}: {error}", file.display()))),
        };
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            CliError::usage(format!("{}: {}", file.display(), error.to_string().trim_end()))
        })
    }

    /// Writes them, whole or not at all.
    pub(crate) fn save(&self, home: &Path) -> Outcome<()> {
        let text = toml::to_string(self)
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        let (file, half) = (home.join(FILE), home.join(format!("{FILE}.tmp")));
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(home)?;
            let mut out = std::fs::File::create(&half)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            std::fs::rename(&half, &file)
        };
        write().map_err(|error| {
            CliError::new(Exit::Unexpected, format!("{}: {error}", file.display()))
        })
    }

    /// The context of that name.
    pub(crate) fn get(&self, name: &str) -> Outcome<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let error = CliError::new(Exit::NotFound, format!("no context `{name}`"));
            match nearest::nearest(name, self.contexts.keys().map(String::as_str)) {
                Some(other) => error.hint(format!("did you mean `{other}`?")),
                None => error.hint("fencepost context list      shows those that there are"),
            }
        })
    }

    /// The one that `--context` or `FENCEPOST_CONTEXT` names, else the one in use; with its name.
    pub(crate) fn chosen(global: &Global, env: &Environment) -> Outcome<Option<(String, Context)>> {
        let all = Self::load(&env.home(global.home.as_ref()))?;
        let name = global.context.as_deref().or_else(|| env.get("FENCEPOST_CONTEXT"));
        let Some(name) = name.or(all.current.as_deref()) else { return Ok(None) };
        Ok(Some((name.to_owned(), all.get(name)?.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(text: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(FILE), text).unwrap();
        home
    }

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_the_one_in_use() {
        let home = home_with(
            "current = 'a'\n[contexts.a]\nserver = 'http://a:1'\n[contexts.b]\nserver = 'http://b:1'\n",
        );
        let chosen = |flag: Option<&str>, variables: &[(&str, &str)]| {
            let global = Global {
                home: Some(home.path().into()),
                context: flag.map(Into::into),
                ..Global::default()
            };
            Contexts::chosen(&global, &Environment::of(variables)).map(|found| found.unwrap().0)
        };
        assert_eq!(chosen(None, &[]).unwrap(), "a");
        assert_eq!(chosen(None, &[("FENCEPOST_CONTEXT", "b")]).unwrap(), "b");
        assert_eq!(chosen(Some("a"), &[("FENCEPOST_CONTEXT", "b")]).unwrap(), "a");
        assert_eq!(chosen(Some("c"), &[]).unwrap_err().exit, Exit::NotFound);
    }

    #[test]
    fn what_is_saved_is_read_again_and_a_damaged_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Contexts::load(home.path()).unwrap(), Contexts::default());
        let mut all = Contexts { current: Some("a".into()), ..Contexts::default() };
        let token_file = Some(PathBuf::from("/t"));
        all.contexts.insert("a".into(), Context { server: "http://a:1".into(), token_file });
        all.save(home.path()).unwrap();
        assert_eq!(Contexts::load(home.path()).unwrap(), all);
        let home = home_with("[contexts.a]\nserver = 'http://a:1'\ntoken = 'x'\n");
        let error = Contexts::load(home.path()).unwrap_err();
        assert!(error.message.contains("contexts.toml"), "{}", error.message);
        assert!(error.message.contains("unknown field `token`"), "{}", error.message);
    }
}
