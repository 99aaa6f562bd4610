//! Errors on the wire: RFC 9457 `application/problem+json` with a stable code.
//!
//! The code is the contract: each has one HTTP status and one title, and is the last segment of
//! `type`. Text in `detail` is for people and may change. A client that meets a code that it does
//! not know goes by `status`.

use serde::{Deserialize, Serialize};

/// The content type of a problem.
pub const CONTENT_TYPE: &str = "application/problem+json";
/// What stands before the code in `type`.
pub const TYPE_PREFIX: &str = "https://fencepost.dev/problems/";

macro_rules! codes {
    ($($variant:ident $code:literal $status:literal $title:literal;)*) => {
        /// A stable code; see the module for what it promises.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemCode { $(#[doc = $title] $variant,)* }

        impl ProblemCode {
            /// Every code, for documentation and tests.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// The code as it stands on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
            /// The HTTP status that always goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }
            /// The title that always goes with it.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    BadRequest "bad-request" 400 "The request cannot be read";
    UnsupportedVersion "unsupported-version" 400 "The other side speaks another version";
    Unauthenticated "unauthenticated" 401 "A token is missing or not valid";
    Forbidden "forbidden" 403 "The token's role does not allow this";
    NoSuchRoute "no-such-route" 404 "There is no such resource";
    NoSuchDag "no-such-dag" 404 "There is no such DAG";
    NoSuchVersion "no-such-version" 404 "The DAG has no such version";
    NoSuchRun "no-such-run" 404 "The DAG has no such run";
    NoSuchTask "no-such-task" 404 "The run has no such task instance";
    NoSuchAttempt "no-such-attempt" 404 "There is no such attempt";
    NoSuchPool "no-such-pool" 404 "There is no such pool";
    NoSuchVariable "no-such-variable" 404 "There is no such variable";
    NoSuchConnection "no-such-connection" 404 "There is no such connection";
    NoSuchSecret "no-such-secret" 404 "There is no such secret";
    NoSuchWorker "no-such-worker" 404 "There is no such worker";
    NoSuchIncident "no-such-incident" 404 "There is no such incident";
    NoSuchBackfill "no-such-backfill" 404 "There is no such backfill";
    NoSuchCallback "no-such-callback" 404 "There is no such callback";
    NoSuchAsset "no-such-asset" 404 "There is no such asset";
    NoSuchToken "no-such-token" 404 "There is no such API token";
    MethodNotAllowed "method-not-allowed" 405 "The resource has no such method";
    RunExists "run-exists" 409 "The run exists already";
    AlreadyTerminal "already-terminal" 409 "It has ended already";
    NotRunning "not-running" 409 "It is not running";
    StillActive "still-active" 409 "It is still active";
    BackfillUnderWay "backfill-under-way" 409 "The DAG has a backfill under way";
    Paused "paused" 409 "It is paused";
    InactiveDag "inactive-dag" 409 "The DAG's file is gone";
    PoolInUse "pool-in-use" 409 "The pool is in use or protected";
    VaultClosed "vault-closed" 409 "No key here opens it";
    LastAdminToken "last-admin-token" 409 "It is the last token of an admin";
    StaleFencingToken "stale-fencing-token" 409 "A newer attempt exists";
    StaleHome "stale-home" 409 "A later process of the home has registered";
    LeaseExpired "lease-expired" 409 "The lease is over";
    Conflict "conflict" 409 "It changed meanwhile";
    PreconditionFailed "precondition-failed" 412 "It is not the version that you saw";
    TooLarge "too-large" 413 "The request is too large";
    UnsupportedMediaType "unsupported-media-type" 415 "The body must be JSON";
    ValidationFailed "validation-failed" 422 "The request has mistakes";
    IdempotencyKeyReused "idempotency-key-reused" 422 "The Idempotency-Key was used for another request";
    TooManyRequests "too-many-requests" 429 "Too many requests";
    Internal "internal" 500 "The server failed";
    Unavailable "unavailable" 503 "The store cannot be reached at present";
    NoSpace "no-space" 507 "The disk is full";
}

impl ProblemCode {
    /// The code written as `text`, if this build knows it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

/// One problem. Build it with [`Problem::new`], then set the extensions that apply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// `https://fencepost.dev/problems/CODE`: an identifier, not an address to fetch.
    #[serde(rename = "type")]
    pub type_uri: String,
    pub title: String,
    pub status: u16,
    /// The stable code, the same as the end of `type`.
    pub code: String,
    /// What happened in this case, in a sentence.
    pub detail: String,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What would have worked: the nearest name, the command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The single mistakes of a request that did not validate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_token: Option<String>,
    /// Decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presented_token: Option<String>,
    /// The number of a home's last registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
}

/// One mistake of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// A JSON pointer into the body (`/params/regions`), or `?name` for a query parameter.
    pub pointer: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Problem {
    /// A problem of that code, with a sentence on this case.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("{TYPE_PREFIX}{}", code.as_str()),
            title: code.title().into(),
            status: code.status(),
            code: code.as_str().into(),
            detail: detail.into(),
            ..Self::default()
        }
    }

    /// The same with a mend.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Its code, if this build knows it.
    pub fn known(&self) -> Option<ProblemCode> {
        ProblemCode::parse(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for (index, code) in ProblemCode::ALL.iter().enumerate() {
            assert_eq!(ProblemCode::parse(code.as_str()), Some(*code));
            assert!(!ProblemCode::ALL[..index].iter().any(|c| c.as_str() == code.as_str()));
            assert!((400..600).contains(&code.status()));
        }
    }

    #[test]
    fn a_problem_has_no_empty_extensions_and_reads_with_unknown_ones() {
        let problem = Problem::new(ProblemCode::NoSuchDag, "there is no DAG `salse`");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["type"], "https://fencepost.dev/problems/no-such-dag");
        assert_eq!(json.as_object().unwrap().len(), 5);
        let text = r#"{"type":"about:blank","title":"Teapot","status":418,"new":1}"#;
        let foreign: Problem = serde_json::from_str(text).unwrap();
        assert_eq!((foreign.status, foreign.known()), (418, None));
    }
}
