//! Errors of the store. The kind decides what a caller does.

use std::fmt;

/// What a caller does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Locked, stopped, out of reach: the next pass tries again.
    Unavailable,
    /// Another transaction was in the way (a deadlock, a lock that was waited for too long): nothing
    /// is changed, and the same again at once may succeed.
    Contended,
    /// The disk is full: claims stop, results are kept by their workers until it has room.
    Full,
    /// The lease of the job that writes is over, or its epoch is: it must drop what it believes.
    Fenced,
    /// The server is another one, or on another timeline, than when the epoch was made: nothing is
    /// minted before there is a new epoch.
    EpochOver,
    /// A rule of the schema: a duplicate, or a bug.
    Constraint,
    /// Not a store of ours, or damaged, or newer than this program.
    Corrupt,
    /// Its address, its credentials or its settings: a person has to mend it.
    Setup,
    /// A row does not have the shape that its decoder expects.
    Decode,
}

/// What failed: the operation, the statement, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    pub kind: StoreErrorKind,
    pub op: String,
    pub message: String,
}

impl StoreError {
    /// An error of that kind.
    pub fn new(kind: StoreErrorKind, op: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { kind, op: op.into(), message: message.to_string() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StoreErrorKind::Unavailable => "the store is unavailable",
            StoreErrorKind::Contended => "another transaction was in the way",
            StoreErrorKind::Setup => "the store cannot be used as it is set up",
            StoreErrorKind::Full => "the disk of the store is full",
            StoreErrorKind::Fenced => "this job may not write any more",
            StoreErrorKind::EpochOver => "a new epoch is needed",
            StoreErrorKind::Constraint => "the store refused a row",
            StoreErrorKind::Corrupt => "the store cannot be used",
            StoreErrorKind::Decode => "a row of the store cannot be read",
        };
        write!(f, "{what} ({}): {}", self.op, self.message)
    }
}

impl std::error::Error for StoreError {}
