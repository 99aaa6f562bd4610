//! One question to a database that is not ours: what a `wait` for `sql` asks.
//!
//! A connection of its own for each question, in a transaction that only reads, of which the first value
//! of the first row counts. Nothing of it is kept.

use crate::db::{PgOptions, Target, pg_dial, pg_error};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Span;
use futures_util::StreamExt;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, InterruptHandle, OpenFlags};
use std::pin::pin;
use tokio::sync::oneshot;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::Type;

const OP: &str = "ask";
/// A value as text is kept up to this many characters.
const SHOWN: usize = 200;

/// The first value of the first row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// It is there, and not null, false, 0 or empty.
    pub is_true: bool,
    /// As text, cut off where it is long; `None`: null, or no row.
    pub value: Option<String>,
}

/// Asks the database at `url` (`postgres://...` or `sqlite:PATH`) one query, for no longer than `limit`.
pub async fn ask(url: &str, query: &str, limit: Span) -> Result<Answer, StoreError> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return ask_sqlite(path.to_owned(), query.to_owned(), limit).await;
    }
    let asked = tokio::time::timeout(limit.to_std(), ask_postgres(url, query, limit));
    asked.await.unwrap_or_else(|_| Err(too_long(limit)))
}

fn too_long(limit: Span) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, OP, format!("no answer within {limit}"))
}

fn failed(message: impl std::fmt::Display) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, OP, message)
}

async fn ask_postgres(url: &str, query: &str, limit: Span) -> Result<Answer, StoreError> {
    let target = Target::parse(url)?;
    let (client, connection) =
        pg_dial(&target, &PgOptions::new("fencepost wait", || Span::ZERO)).await?;
    // It ends with the client.
    tokio::spawn(async move { drop(connection.await) });
    let told = |error: tokio_postgres::Error| pg_error(OP, &error);
    let millis = limit.as_micros() / 1_000;
    // The server's own limit: after ours nobody is there who would cancel.
    let begin = format!("SET statement_timeout = {millis}; BEGIN READ ONLY");
    client.batch_execute(&begin).await.map_err(told)?;
    // One statement, or it is refused: none can end the transaction and then write.
    let prepared = client.prepare(query).await.map_err(told)?;
    let Some(kind) = prepared.columns().first().map(|column| column.type_().clone()) else {
        return Err(failed("the query gives no columns"));
    };
    let mut rows = pin!(client.simple_query_raw(query).await.map_err(told)?);
    while let Some(message) = rows.next().await {
        if let SimpleQueryMessage::Row(row) = message.map_err(told)? {
            return Ok(row.get(0).map_or_else(Answer::default, |text| answer(&kind, text)));
        }
    }
    Ok(Answer::default())
}

fn answer(kind: &Type, text: &str) -> Answer {
    let is_true = match *kind {
        Type::BOOL => text == "t",
        Type::INT2
        | Type::INT4
        | Type::INT8
        | Type::FLOAT4
        | Type::FLOAT8
        | Type::NUMERIC
        | Type::OID => is_number(text),
        _ => is_text(text),
    };
    Answer { is_true, value: Some(shown(text)) }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number != 0.0)
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && text != "0"
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

async fn ask_sqlite(path: String, query: String, limit: Span) -> Result<Answer, StoreError> {
    let (opened, handle) = oneshot::channel::<InterruptHandle>();
    let asked = tokio::task::spawn_blocking(move || read_sqlite(&path, &query, limit, opened));
    let mut asked = pin!(asked);
    let finished = |done: Result<_, tokio::task::JoinError>| {
        done.unwrap_or_else(|error| Err(failed(error.to_string())))
    };
    if let Ok(done) = tokio::time::timeout(limit.to_std(), asked.as_mut()).await {
        return finished(done);
    }
    // It stops at its next step.
    match handle.await {
        Ok(handle) => handle.interrupt(),
        Err(_) => return Err(too_long(limit)),
    }
    finished(asked.await).map_err(|_| too_long(limit))
}

fn read_sqlite(
    path: &str,
    query: &str,
    limit: Span,
    opened: oneshot::Sender<InterruptHandle>,
) -> Result<Answer, StoreError> {
    let told = |error: rusqlite::Error| failed(format!("{path}: {error}"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(told)?;
    // Nobody may wait for it any more.
    let _ = opened.send(connection.get_interrupt_handle());
    connection.busy_timeout(limit.to_std()).map_err(told)?;
    let mut statement = connection.prepare(query).map_err(told)?;
    if statement.column_count() == 0 {
        return Err(failed("the query gives no columns"));
    }
    let mut rows = statement.query([]).map_err(told)?;
    let Some(row) = rows.next().map_err(told)? else { return Ok(Answer::default()) };
    Ok(match row.get_ref(0).map_err(told)? {
        ValueRef::Null => Answer::default(),
        ValueRef::Integer(n) => Answer { is_true: n != 0, value: Some(n.to_string()) },
        ValueRef::Real(n) => Answer { is_true: n != 0.0, value: Some(n.to_string()) },
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            Answer { is_true: is_text(&text), value: Some(shown(&text)) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(dir: &tempfile::TempDir) -> String {
        let path = dir.path().join("other.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (3)").unwrap();
        format!("sqlite:{}", path.display())
    }

    async fn is_true(url: &str, query: &str) -> bool {
        ask(url, query, Span::from_secs(5)).await.unwrap().is_true
    }

    #[tokio::test]
    async fn the_first_value_of_the_first_row_counts() {
        let dir = tempfile::tempdir().unwrap();
        let url = sqlite(&dir);
        for query in ["SELECT n FROM t", "SELECT 'x', 0", "SELECT 0.5", "SELECT n > 2 FROM t"] {
            assert!(is_true(&url, query).await, "{query}");
        }
        for query in [
            "SELECT n FROM t WHERE n > 3",
            "SELECT NULL",
            "SELECT ''",
            "SELECT '0'",
            "SELECT 0.0, 1",
        ] {
            assert!(!is_true(&url, query).await, "{query}");
        }
    }

    #[tokio::test]
    async fn it_only_reads_and_says_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let url = sqlite(&dir);
        for (query, why) in [
            ("DELETE FROM t RETURNING n", "readonly"),
            ("SELECT x FROM t", "no such column"),
            ("BEGIN", "no columns"),
        ] {
            let error = ask(&url, query, Span::from_secs(5)).await.unwrap_err();
            assert!(error.message.contains(why), "{query}: {error}");
        }
        let missing = format!("sqlite:{}", dir.path().join("none").display());
        assert!(ask(&missing, "SELECT 1", Span::from_secs(5)).await.is_err());
        assert!(is_true(&url, "SELECT COUNT(*) = 1 FROM t").await);
    }

    #[tokio::test]
    async fn a_query_without_an_end_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c";
        let error = ask(&sqlite(&dir), endless, Span::from_millis(200)).await.unwrap_err();
        assert!(error.message.contains("no answer within"), "{error}");
    }

    #[test]
    fn types_of_postgres_say_what_is_true() {
        let of = |kind, text| answer(&kind, text).is_true;
        assert!(of(Type::BOOL, "t") && !of(Type::BOOL, "f"));
        assert!(of(Type::NUMERIC, "0.10") && !of(Type::NUMERIC, "0.00"));
        assert!(of(Type::FLOAT8, "NaN") && of(Type::TEXT, "f") && !of(Type::TEXT, "0"));
    }
}
