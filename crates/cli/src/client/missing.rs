//! When something is not found: the nearest name that exists.

use super::Client;
use crate::error::CliError;
use crate::nearest::nearest;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::routes::{DAG_LIST, POOL_LIST, Route, TASK_LIST};
use serde_json::Value;

/// The error with a suggestion, unless the server gave one. Best effort: a second failure on the
/// way changes nothing.
pub(super) fn suggest(client: &Client, route: Route, args: &[&str], error: CliError) -> CliError {
    let Some(problem) = &error.problem else { return error };
    if problem.suggestion.is_some() || route == DAG_LIST {
        return error;
    }
    let (list, of, field, wanted, command) = match problem.known() {
        Some(ProblemCode::NoSuchDag) => {
            (DAG_LIST, &args[..0], "dag_id", args.first(), "fencepost dags list".to_owned())
        }
        Some(ProblemCode::NoSuchPool) => {
            (POOL_LIST, &args[..0], "name", args.first(), "fencepost pools list".to_owned())
        }
        Some(ProblemCode::NoSuchTask) if args.len() > 2 => {
            let command = format!("fencepost tasks list {} {}", args[0], args[1]);
            (TASK_LIST, &args[..2], "task_id", args.get(2), command)
        }
        _ => return error,
    };
    let items = client.list(list, of, &(), Some(1_000)).unwrap_or_default();
    let names = items.iter().filter_map(|item| item.get(field).and_then(Value::as_str));
    let wanted = wanted.map_or("", |text| text.split(';').next().unwrap_or(text));
    match nearest(wanted, names) {
        Some(name) if name != wanted => error.hint(format!("did you mean `{name}`?")),
        _ => error.hint(format!("see  {command}")),
    }
}
