//! Why a request is not answered as asked: a problem, boxed, so that results stay small.

use crate::execution;
use fencepost_api::problem::{FieldError, Problem, ProblemCode};
use fencepost_engine::contention;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_store::StoreError;

/// A problem on its way to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) Box<Problem>, pub(crate) Again);

/// Whether the same request may succeed at once, since nothing but another one was in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    Yes,
}

impl Failure {
    /// A problem of that code.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// One mistake: of a field of the body (`/params/x`) or of the query (`?limit`).
    pub(crate) fn field(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let (pointer, message) = (pointer.into(), message.into());
        Self::fields(vec![FieldError { pointer, message, suggestion: None }])
    }

    /// Mistakes, all at once.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let texts: Vec<String> =
            errors.iter().map(|e| format!("{}: {}", e.pointer, e.message)).collect();
        let mut problem = Problem::new(ProblemCode::ValidationFailed, texts.join("; "));
        problem.errors = errors;
        problem.into()
    }

    /// Whether the request may be served again at once: it has changed nothing.
    pub(crate) fn is_contended(&self) -> bool {
        self.1 == Again::Yes
    }

    /// The same with a mend.
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = Some(suggestion.into());
        self
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem), Again::No)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        *failure.0
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let again = if contention::is_contended(&error) { Again::Yes } else { Again::No };
        Self(Box::new(execution::problem(&error)), again)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        EngineError::from(refusal).into()
    }
}
