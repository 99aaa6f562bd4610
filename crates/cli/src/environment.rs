//! The process's environment, read once at the start; nothing else looks at it.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

/// What the verbs may know of their surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
}

impl Environment {
    /// Of this process. Variables that are not UTF-8 are none of ours.
    pub(crate) fn of_process() -> Self {
        let utf8 = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            variables: utf8.collect(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables whose name begins so, without empty ones.
    pub(crate) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.variables
            .iter()
            .filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `--home`, else `FENCEPOST_HOME`, else `~/.fencepost`.
    pub(crate) fn home(&self, flag: Option<&PathBuf>) -> PathBuf {
        if let Some(home) = flag {
            return home.clone();
        }
        if let Some(home) = self.get("FENCEPOST_HOME") {
            return PathBuf::from(home);
        }
        PathBuf::from(self.get("HOME").unwrap_or(".")).join(".fencepost")
    }

    /// Whether this stream gets colours: a terminal that is not dumb, unless `NO_COLOR` or
    /// `--no-color` say no or `CLICOLOR_FORCE` says yes.
    pub(crate) fn colour(&self, no_color: bool, is_terminal: bool) -> bool {
        if no_color || self.get("NO_COLOR").is_some() {
            return false;
        }
        let forced = self.get("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        forced || (is_terminal && self.get("TERM") != Some("dumb"))
    }

    /// For tests: these variables and no terminal.
    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_flag_then_variable_then_default() {
        let env = Environment::of(&[("FENCEPOST_HOME", "/f"), ("HOME", "/h")]);
        assert_eq!(env.home(Some(&"/x".into())), PathBuf::from("/x"));
        assert_eq!(env.home(None), PathBuf::from("/f"));
        let env = Environment::of(&[("FENCEPOST_HOME", ""), ("HOME", "/h")]);
        assert_eq!(env.home(None), PathBuf::from("/h/.fencepost"));
    }

    #[test]
    fn colours_only_where_wanted() {
        for (variables, no_color, terminal, want) in [
            (&[][..], false, true, true),
            (&[], false, false, false),
            (&[], true, true, false),
            (&[("NO_COLOR", "1")], false, true, false),
            (&[("TERM", "dumb")], false, true, false),
            (&[("CLICOLOR_FORCE", "1")], false, false, true),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, true, false),
        ] {
            assert_eq!(Environment::of(variables).colour(no_color, terminal), want);
        }
    }
}
