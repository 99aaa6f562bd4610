//! How a verb fails: an exit code, a sentence, and what to do about it.

use crate::exit::Exit;
use fencepost_api::problem::Problem;
use std::io;

/// What a verb returns.
pub(crate) type Outcome<T = Exit> = Result<T, CliError>;

/// A failure as the user sees it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// Lines below the message: what would have worked.
    pub(crate) hints: Vec<String>,
    /// What the server said, if it was the server.
    pub(crate) problem: Option<Box<Problem>>,
}

impl CliError {
    /// A failure without hints.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hints: Vec::new(), problem: None }
    }

    /// Bad usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The same with one more hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What the server answered.
    pub(crate) fn from_problem(problem: Problem) -> Self {
        let exit = Exit::of_problem(&problem);
        let message =
            if problem.detail.is_empty() { problem.title.clone() } else { problem.detail.clone() };
        let mut error = Self::new(exit, message);
        for mistake in &problem.errors {
            let mend = mistake.suggestion.as_ref().map(|s| format!(" ({s})")).unwrap_or_default();
            error.hints.push(format!("{}: {}{mend}", mistake.pointer, mistake.message));
        }
        error.hints.extend(problem.suggestion.clone());
        if exit == Exit::NotAllowed {
            error.hints.push(
                "the token comes from --token-file, FENCEPOST_TOKEN or $FENCEPOST_HOME/token"
                    .into(),
            );
        }
        error.problem = Some(Box::new(problem));
        error
    }

    /// Whether the reader of our output went away, which is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.message == CLOSED_PIPE
    }
}

const CLOSED_PIPE: &str = "the reader of the output is gone";

impl From<io::Error> for CliError {
    /// Only for our own output; other files name themselves in the message.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::new(Exit::Done, CLOSED_PIPE)
        } else {
            Self::new(Exit::Unexpected, format!("cannot write the output: {error}"))
        }
    }
}
