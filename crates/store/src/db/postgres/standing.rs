//! Which server this is: one that can be written, and that tells its timeline and its identity.
//!
//! Tokens are minted only on the server that their epoch was made on. A role that may not ask which
//! one that is would fail with the first token; so it is refused when it opens the store.

use super::connect::{PgOptions, Wire, connect};
use super::url::Target;
use super::wrong;
use crate::error::{StoreError, StoreErrorKind};
use tokio_postgres::error::SqlState;

/// What minting calls.
const CALLS: [(&str, &str); 3] = [
    ("pg_current_wal_lsn()", "SELECT pg_current_wal_lsn()"),
    ("pg_walfile_name(pg_lsn)", "SELECT pg_walfile_name(pg_current_wal_lsn())"),
    ("pg_control_system()", "SELECT system_identifier FROM pg_control_system()"),
];

pub(super) async fn verify(target: &Target, options: &PgOptions) -> Result<(), StoreError> {
    let wire = connect(target, options).await?;
    let standby = "SELECT 1 WHERE pg_is_in_recovery()";
    let found = wire.client.query_opt(standby, &[]).await.map_err(|e| wrong("open", &e))?;
    if found.is_some() {
        return Err(a_standby(target, "open"));
    }
    for (function, call) in CALLS {
        wire.client.query(call, &[]).await.map_err(|error| refusal(target, function, &error))?;
    }
    drop::<Wire>(wire);
    Ok(())
}

/// It may be promoted in a moment.
pub(super) fn a_standby(target: &Target, op: &'static str) -> StoreError {
    let message = format!(
        "{} is a standby: it cannot be written (several hosts and \
         target_session_attrs=read-write in the address find the primary)",
        target.shown()
    );
    StoreError::new(StoreErrorKind::Unavailable, op, message)
}

fn refusal(target: &Target, function: &str, error: &tokio_postgres::Error) -> StoreError {
    let mut told = wrong("open", error);
    if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        let role = target.config.get_user().unwrap_or("?").replace('"', "\"\"");
        told.kind = StoreErrorKind::Setup;
        told.message = format!(
            "{}: {}; tokens are minted only on the server that their epoch was made on, so this \
             role has to ask which one it is. Run this as a superuser in this database:\n\
             GRANT EXECUTE ON FUNCTION {function} TO \"{role}\";",
            target.shown(),
            told.message
        );
    }
    told
}
