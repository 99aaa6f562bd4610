//! The guards of a session: a process that stops inside a transaction must not stop the others.
//!
//! Each connection sets them for itself. Behind a pooler that gives every transaction another
//! connection of its own they are lost, or another's; so on opening they are read again in a later
//! transaction, while another one keeps the pooler from handing out the same connection.

use super::connect::{PgOptions, Wire};
use super::url::Target;
use super::{connect, wrong};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Span;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Transactions after which a connection that is still the same is taken for one's own.
const LOOKS: u32 = 3;

/// (setting, milliseconds): what the server does by itself.
fn limits(guard: Span) -> [(&'static str, i64); 4] {
    let all = guard.as_micros() / 1_000;
    [
        ("statement_timeout", all),
        ("lock_timeout", all / 2),
        ("idle_in_transaction_session_timeout", all),
        ("tcp_user_timeout", all),
    ]
}

/// Sets the guards. `enable_bitmapscan` is off because of tables that were filled and never
/// analysed: the planner then reads and sorts all of what waits instead of the first few.
pub(super) async fn set(client: &Client, options: &PgOptions) -> Result<(), StoreError> {
    let mut text = String::new();
    for (setting, millis) in limits(options.guard) {
        text += &format!("SET {setting} = {millis}; ");
    }
    text += "SET enable_bitmapscan = off; SET jit = off; SET client_min_messages = error";
    client.batch_execute(&text).await.map_err(|error| wrong("open", &error))
}

/// Reads the guards in later transactions, and refuses if they do not hold.
pub(super) async fn verify(target: &Target, options: &PgOptions) -> Result<(), StoreError> {
    let (first, second) = (connect(target, options).await?, connect(target, options).await?);
    check(target, options, &first, &second).await.map_err(|error| wrong("open", &error))?
}

/// Behind a pooler that gives each transaction a connection of its own, what one process has set may
/// be found by another, for a while: there only what the connection began with counts.
async fn check(
    target: &Target,
    options: &PgOptions,
    first: &Wire,
    second: &Wire,
) -> Result<Result<(), StoreError>, tokio_postgres::Error> {
    let (own, other) = (backend(first).await?, backend(second).await?);
    let kept = first.client.prepare("SELECT 1").await?;
    second.client.batch_execute("BEGIN; SELECT 1").await?;
    let mut is_pooled = own == other;
    for _ in 0..LOOKS {
        is_pooled |= backend(first).await? != own;
    }
    let mut lost = Vec::new();
    for (setting, most) in limits(options.guard) {
        let column = if is_pooled { "reset_val" } else { "setting" };
        let found = shown(first, setting, column).await?;
        let holds = found.is_some_and(|found| 0 < found && found <= most);
        if !holds && !is_of_no_use(first, setting).await? {
            lost.push((setting, most));
        }
    }
    let keeps = !is_pooled || first.client.query(&kept, &[]).await.is_ok();
    second.client.batch_execute("ROLLBACK").await?;
    Ok(match (lost.is_empty(), keeps) {
        (false, _) => Err(refusal(target, &lost)),
        (true, false) => Err(forgetful(target)),
        (true, true) => Ok(()),
    })
}

async fn backend(wire: &Wire) -> Result<Option<String>, tokio_postgres::Error> {
    let answer = wire.client.simple_query("SELECT pg_backend_pid()").await?;
    Ok(first_text(&answer).map(str::to_owned))
}

async fn shown(
    wire: &Wire,
    setting: &str,
    column: &str,
) -> Result<Option<i64>, tokio_postgres::Error> {
    let text = format!("SELECT {column} FROM pg_settings WHERE name = '{setting}'");
    Ok(first_text(&wire.client.simple_query(&text).await?).and_then(|text| text.parse().ok()))
}

/// A socket of this machine has no line that could break.
async fn is_of_no_use(wire: &Wire, setting: &str) -> Result<bool, tokio_postgres::Error> {
    if setting != "tcp_user_timeout" {
        return Ok(false);
    }
    let text = "SELECT 1 WHERE inet_server_addr() IS NULL";
    Ok(first_text(&wire.client.simple_query(text).await?).is_some())
}

fn first_text(messages: &[SimpleQueryMessage]) -> Option<&str> {
    messages.iter().find_map(|message| {
        if let SimpleQueryMessage::Row(row) = message { row.get(0) } else { None }
    })
}

fn refusal(target: &Target, lost: &[(&'static str, i64)]) -> StoreError {
    let quoted = |name: Option<&str>| format!("\"{}\"", name.unwrap_or("?").replace('"', "\"\""));
    let config = &target.config;
    let role = quoted(config.get_user());
    let database = quoted(config.get_dbname().or(config.get_user()));
    let statements: Vec<String> = lost
        .iter()
        .map(|(setting, ms)| {
            format!("ALTER ROLE {role} IN DATABASE {database} SET {setting} = {ms};")
        })
        .collect();
    let message = format!(
        "settings of a session do not hold on {} (a pooler in transaction mode?): a process that \
         stops inside a transaction would stop all others. Run this and let the pooler connect anew \
         (pgbouncer: RECONNECT), or connect without it:\n{}",
        target.shown(),
        statements.join("\n")
    );
    StoreError::new(StoreErrorKind::Setup, "open", message)
}

fn forgetful(target: &Target) -> StoreError {
    let message = format!(
        "{} forgets prepared statements between transactions: let the pooler keep them \
         (pgbouncer 1.21 and later: max_prepared_statements = 500), or connect without it",
        target.shown()
    );
    StoreError::new(StoreErrorKind::Setup, "open", message)
}
