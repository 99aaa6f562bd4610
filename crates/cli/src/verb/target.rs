//! What a verb is about: a run, a task instance, an attempt.

use crate::client::Client;
use crate::error::{CliError, Outcome};
use clap::Args;
use fencepost_api::rest::Run;
use fencepost_core::id::Token;

/// One run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunTarget {
    /// The DAG's id
    pub(crate) dag: String,
    /// The run's id, a unique beginning of it, or @latest
    pub(crate) run: String,
}

impl RunTarget {
    /// The run that is meant.
    pub(crate) fn find(&self, client: &Client) -> Outcome<Run> {
        client.run(&self.dag, &self.run)
    }
}

/// One task instance.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskTarget {
    #[command(flatten)]
    pub(crate) run: RunTarget,
    /// The task's id; of a mapped task: `load[3]`, or with --map-index
    task: String,
    /// Which instance of a mapped task
    #[arg(long, value_name = "N")]
    map_index: Option<u32>,
}

impl TaskTarget {
    /// The task, and which of its instances if only one is meant.
    pub(crate) fn named(&self) -> Outcome<(String, Option<u32>)> {
        let (task, index) = split(&self.task)?;
        Ok((task.into(), self.map_index.or(index)))
    }

    /// The task instance in an address: `load`, `load;3`.
    pub(crate) fn path(&self) -> Outcome<String> {
        let (task, index) = split(&self.task)?;
        Ok(match self.map_index.or(index) {
            Some(index) => format!("{task};{index}"),
            None => task.into(),
        })
    }
}

/// `load[3]` or `load;3` into task and index.
pub(crate) fn split(text: &str) -> Outcome<(&str, Option<u32>)> {
    let inner = text.strip_suffix(']').and_then(|rest| rest.split_once('['));
    let Some((task, index)) = inner.or_else(|| text.split_once(';')) else {
        return Ok((text, None));
    };
    let wrong = |_| CliError::usage(format!("`{index}` is not a map index: write {task}[3]"));
    Ok((task, Some(index.parse().map_err(wrong)?)))
}

/// `--attempt N|TOKEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptRef {
    /// Its number within the task instance.
    Number(u32),
    Token(Token),
}

impl std::str::FromStr for AttemptRef {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(token) = text.parse::<Token>() {
            return Ok(Self::Token(token));
        }
        text.parse()
            .map(Self::Number)
            .map_err(|_| format!("`{text}` is neither an attempt's number nor a token (7-48211)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbers_or_tokens() {
        for (text, want) in [
            ("3", Some(AttemptRef::Number(3))),
            ("7-48211", Some(AttemptRef::Token(Token::new(7, 48_211).unwrap()))),
            ("3848290745427", Some(AttemptRef::Token(Token::new(7, 48_211).unwrap()))),
            ("-1", None),
            ("x", None),
        ] {
            assert_eq!(text.parse().ok(), want, "{text}");
        }
    }

    #[test]
    fn mapped_tasks_are_written_two_ways() {
        assert_eq!(split("load").unwrap(), ("load", None));
        assert_eq!(split("load[3]").unwrap(), ("load", Some(3)));
        assert_eq!(split("load;0").unwrap(), ("load", Some(0)));
        assert!(split("load[x]").is_err() && split("load;-1").is_err());
    }
}
