//! The execution API over HTTP: `POST` with a JSON body to [`PREFIX`] + `/` + a name of [`Call`].
//!
//! Each request says its version in [`VERSION_HEADER`] and its caller in `Authorization: Bearer`:
//! the join token for `hello` and `register`, the job's credential for the calls of a worker, the
//! attempt's credential for those of a task. An answer is the JSON of its type, or a problem.

use super::{Found, LogPiece, Report, Start};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands before every path.
pub const PREFIX: &str = "/execution/v1";
/// The header that carries the version of the caller, in decimal.
pub const VERSION_HEADER: &str = "fencepost-execution-version";
/// Largest body of a request, in bytes.
pub const BODY_MAX: usize = 16 << 20;

/// Who may make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Whoever has a join token.
    Join,
    /// A registered worker.
    Job,
    /// A task's process.
    Attempt,
}

macro_rules! calls {
    ($($variant:ident $name:literal $caller:ident;)*) => {
        /// Every call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call { $($variant,)* }

        impl Call {
            /// Every call, for tests.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// The last segment of its path.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
            /// Whose credential it needs.
            pub const fn caller(self) -> Caller {
                match self { $(Self::$variant => Caller::$caller,)* }
            }
        }
    };
}

calls! {
    Hello "hello" Join;
    Register "register" Join;
    TakeOver "take-over" Job;
    Poll "poll" Job;
    Start "start" Job;
    Report "report" Job;
    Beat "beat" Job;
    Release "release" Job;
    Leave "leave" Job;
    Logs "logs" Job;
    FenceCheck "fence-check" Attempt;
    XcomGet "xcom-get" Attempt;
    XcomSet "xcom-set" Attempt;
}

impl Call {
    /// The call of that path.
    pub fn find(path: &str) -> Option<Self> {
        let name = path.strip_prefix(PREFIX)?.strip_prefix('/')?;
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }

    /// Its path.
    pub fn path(self) -> String {
        format!("{PREFIX}/{}", self.name())
    }
}

/// The answer to `hello`: whom a worker would join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub installation_id: String,
    /// Of the server's program.
    pub version: String,
    /// The newest and the oldest version of this API that it serves.
    pub newest: u32,
    pub oldest: u32,
}

/// `take-over`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeOver {
    pub job_id: String,
    /// The number of this call, which the attempt keeps.
    #[serde(default)]
    pub call: i64,
    pub token: String,
    pub found: Found,
}

/// `start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts {
    pub job_id: String,
    pub starts: Vec<Start>,
}

/// `report`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reports {
    pub job_id: String,
    pub reports: Vec<Report>,
}

/// `release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    pub job_id: String,
    pub tokens: Vec<String>,
}

/// `leave`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    pub job_id: String,
}

/// `logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    pub job_id: String,
    pub pieces: Vec<LogPiece>,
}

/// `xcom-get`: an output of a task of the same run; without a task, of the attempt's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XcomGet {
    #[serde(default)]
    pub task_id: Option<String>,
    /// `None`: not of a mapped instance; of the own task, the own instance.
    #[serde(default)]
    pub map_index: Option<i32>,
    pub key: String,
}

/// The answer to `xcom-get`; `None`: there is no such output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct XcomGot {
    pub value: Option<Value>,
}

/// `xcom-set`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct XcomSet {
    pub key: String,
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use super::super::{Beat, Beaten, Says};
    use super::*;

    #[test]
    fn every_call_is_found_by_its_path_and_nothing_else_is() {
        for call in Call::ALL {
            assert_eq!(Call::find(&call.path()), Some(*call));
        }
        for path in ["", "/execution/v1", "/execution/v1/", "/execution/v2/poll", "/api/v1/poll"] {
            assert_eq!(Call::find(path), None, "{path}");
        }
    }

    /// Between a version and the one before it: what the older one does not say has a default, and
    /// what the newer one adds is passed over.
    #[test]
    fn beats_and_their_answers_are_read_across_versions() {
        let old = r#"{"job_id": "j", "seq": 7, "inventory": ["1"]}"#;
        let beat: Beat = serde_json::from_str(old).unwrap();
        let known =
            Beat { job_id: "j".into(), seq: 7, inventory: vec!["1".into()], ..Beat::default() };
        assert_eq!(beat, known);
        let answer: Beaten = serde_json::from_str(r#"{"disowned": ["1"]}"#).unwrap();
        assert_eq!(answer, Beaten { disowned: vec!["1".into()], ..Beaten::default() });
        #[derive(serde::Deserialize)]
        struct OldBeat {
            job_id: String,
            seq: i64,
            inventory: Vec<String>,
        }
        let new = Beat { call: 9, says: Says::All, epoch: 3, reconciles: true, ..known };
        let text = serde_json::to_string(&new).unwrap();
        let read: OldBeat = serde_json::from_str(&text).unwrap();
        assert_eq!((read.job_id.as_str(), read.seq, read.inventory), ("j", 7, vec!["1".into()]));
        assert_eq!(serde_json::from_str::<Beat>(&text).unwrap(), new);
    }
}
