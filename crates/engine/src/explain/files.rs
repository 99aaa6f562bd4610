//! What is known of a DAG's file: a mistake in it stops no run, which is pinned to its version, and is
//! told all the same.

use super::Gates;
use crate::error::EngineError;
use fencepost_store::Tx;
use fencepost_store::query::dag::{self, DagRow, ImportError};
use serde_json::Value;
use std::path::Path;

const CODE: &str = "import_error";

/// Files with mistakes that are looked through for one that would define a DAG that is not known.
const FILES: u32 = 10_000;

/// Blocks where no version can be the newest: no file defines the DAG any more.
pub(super) async fn gate(tx: &Tx, row: &DagRow, gates: &mut Gates) -> Result<(), EngineError> {
    let known = dag::import_error(tx, &row.fileloc).await?;
    let text = match &known {
        Some(error) => format!("{}; version {} goes on", told(error), row.version),
        None if row.is_active => return Ok(()),
        None => format!("{} does not define it any more", row.fileloc),
    };
    gates.add(CODE, row.is_active, text);
    gates.advise(known.map_or_else(
        || format!("put {} back", row.fileloc),
        |error| format!("mend {}, and see  fencepost dags errors", error.fileloc),
    ));
    Ok(())
}

/// The same for a run, which goes on whatever became of the file.
pub(super) async fn note(tx: &Tx, row: &DagRow, gates: &mut Gates) -> Result<(), EngineError> {
    let text = match dag::import_error(tx, &row.fileloc).await? {
        Some(error) => told(&error),
        None if row.is_active => return Ok(()),
        None => format!("{} does not define the DAG any more", row.fileloc),
    };
    gates.add(CODE, true, format!("{text}; the run goes on with its own version"));
    Ok(())
}

/// The file that would define a DAG that is not known, if it can be told by its name.
pub(super) async fn of_unknown(tx: &Tx, dag_id: &str) -> Result<Option<ImportError>, EngineError> {
    let named = |error: &ImportError| {
        Path::new(&error.fileloc).file_stem().is_some_and(|stem| stem == dag_id)
    };
    Ok(dag::import_errors(tx, FILES).await?.into_iter().find(named))
}

/// Blocks: the file that would define the DAG cannot be read.
pub(super) fn unread(error: &ImportError, gates: &mut Gates) {
    gates.add(CODE, false, told(error));
    gates.advise(format!("mend {}, and see  fencepost dags errors", error.fileloc));
}

/// The first mistake, as `validate` says it, and how many more there are.
fn told(error: &ImportError) -> String {
    let list = error.errors.as_array().map_or(&[][..], Vec::as_slice);
    let Some(first) = list.first() else {
        return format!("{} cannot be read", error.fileloc);
    };
    let word = |key: &str| first.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let line = first.get("line").and_then(Value::as_u64).unwrap_or(1);
    let message = word("message").unwrap_or("cannot be read");
    let hint = word("hint").map_or_else(String::new, |hint| format!(" ({hint})"));
    let more = match list.len() {
        0 | 1 => String::new(),
        many => format!(", and {} more", many - 1),
    };
    format!("{} line {line}: {message}{hint}{more}", error.fileloc)
}
