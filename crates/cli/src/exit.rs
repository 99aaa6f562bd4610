//! Exit codes of the command line, as documented; and what each kind of problem exits with.

use fencepost_api::problem::Problem;
use std::process::ExitCode;

/// Every exit code that a verb may end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; with `--wait`: the run succeeded.
    Done = 0,
    Unexpected = 1,
    /// Bad usage, or validation errors.
    Usage = 2,
    /// A run or task failed (`--wait`, `watch`).
    Failed = 3,
    NotFound = 4,
    /// A conflict, or refused.
    Conflict = 5,
    NotAllowed = 6,
    Unreachable = 7,
    /// Timed out waiting.
    TimedOut = 8,
    /// A person is needed.
    Held = 9,
    /// Inside a task: its attempt is not the current one.
    Fenced = 76,
    /// Inside a task: it resumes when something has come.
    Deferred = 100,
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// What an answer of the server ends the verb with.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            400 | 405 | 413 | 415 | 422 => Self::Usage,
            401 | 403 => Self::NotAllowed,
            404 | 410 => Self::NotFound,
            409 | 412 | 423 => Self::Conflict,
            502..=504 => Self::Unreachable,
            _ => Self::Unexpected,
        }
    }

    /// As [`Exit::of_status`].
    pub(crate) const fn of_problem(problem: &Problem) -> Self {
        Self::of_status(problem.status)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_api::problem::ProblemCode;

    #[test]
    fn each_problem_has_the_documented_exit_code() {
        use ProblemCode as P;
        for (problem, code) in [
            (P::ValidationFailed, 2),
            (P::BadRequest, 2),
            (P::NoSuchDag, 4),
            (P::NoSuchRun, 4),
            (P::RunExists, 5),
            (P::AlreadyTerminal, 5),
            (P::StaleFencingToken, 5),
            (P::PreconditionFailed, 5),
            (P::Unauthenticated, 6),
            (P::Forbidden, 6),
            (P::Unavailable, 7),
            (P::Internal, 1),
            (P::NoSpace, 1),
        ] {
            assert_eq!(Exit::of_problem(&Problem::new(problem, "")).code(), code, "{problem:?}");
        }
    }
}
