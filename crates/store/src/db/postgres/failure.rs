//! Errors of the server and of the line, by what a caller does about them.

use crate::error::{StoreError, StoreErrorKind};
use std::error::Error as _;
use std::fmt::Write as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The kind of an error that the server named.
fn kind_of(state: &SqlState) -> StoreErrorKind {
    let contended = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    if contended.contains(state) {
        return StoreErrorKind::Contended;
    }
    if *state == SqlState::DISK_FULL {
        return StoreErrorKind::Full;
    }
    match state.code().get(..2) {
        Some("23") => StoreErrorKind::Constraint,
        Some("XX") if state.code() != "XX000" => StoreErrorKind::Corrupt,
        // A wrong password, no such role, no such database: nothing that time mends.
        Some("28" | "3D") => StoreErrorKind::Setup,
        _ => StoreErrorKind::Unavailable,
    }
}

/// An error of the library, with its cause: the library's own message does not tell it.
pub(crate) fn wrong(op: &'static str, error: &Error) -> StoreError {
    let Some(told) = error.as_db_error() else {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            let _ = write!(message, ": {source}");
            cause = source.source();
        }
        return StoreError::new(StoreErrorKind::Unavailable, op, message);
    };
    let mut message = format!("{} ({})", told.message(), told.code().code());
    for more in [told.detail(), told.hint()].into_iter().flatten() {
        let _ = write!(message, "; {more}");
    }
    StoreError::new(kind_of(told.code()), op, message)
}
