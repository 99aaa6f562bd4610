//! What the audit needs of the DAG versions: edges, and budgets that no row of an instance holds.
//!
//! The stored form of a DAG is JSON in the words of the DAG file; here only three of its keys are
//! read, and a version that does not have them gives no tasks: the audit then checks less.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::audit::AuditTask;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) const AUDIT_VERSIONS: Stmt = Stmt::same(
    "audit_versions",
    "SELECT version_pk, ir FROM dag_version WHERE version_pk IN (
        SELECT version_pk FROM run WHERE run_pk > $1 AND run_pk <= $2)",
);

/// The tasks of each run: (run, version).
pub(super) async fn tasks(
    tx: &Tx,
    runs: &[(i64, i64)],
    (after, to): (i64, i64),
) -> Result<Vec<AuditTask>, StoreError> {
    let mut versions: BTreeMap<i64, Vec<AuditTask>> = BTreeMap::new();
    for row in tx.query(&AUDIT_VERSIONS, values![after, to]).await? {
        let mut c = row.columns("dag_version");
        let version_pk = c.int()?;
        versions.insert(version_pk, of_stored(&c.json()?).unwrap_or_default());
    }
    let of_run = |(run, version_pk): &(i64, i64)| {
        let run = *run;
        let tasks = versions.get(version_pk).into_iter().flatten();
        tasks.map(move |task| AuditTask { run, ..task.clone() })
    };
    Ok(runs.iter().flat_map(of_run).collect())
}

/// The tasks of a stored form, in its order; `None` if it is not one.
fn of_stored(stored: &Value) -> Option<Vec<AuditTask>> {
    let tasks = stored.get("tasks")?.as_object()?;
    let default = stored.get("default_args").and_then(infra_retries);
    let places: BTreeMap<&str, u32> = tasks.keys().map(String::as_str).zip(0..).collect();
    (0..)
        .zip(tasks.values())
        .map(|(task, content)| {
            Some(AuditTask {
                run: 0,
                task,
                upstreams: upstreams(content.as_object()?, &places)?,
                infra_retries: infra_retries(content).or(default)?,
            })
        })
        .collect()
}

fn infra_retries(of: &Value) -> Option<u32> {
    u32::try_from(of.get("infra_retries")?.as_u64()?).ok()
}

fn upstreams(task: &Map<String, Value>, places: &BTreeMap<&str, u32>) -> Option<Vec<u32>> {
    let Some(names) = task.get("depends_on") else { return Some(Vec::new()) };
    let names = names.as_array()?.iter();
    names.map(|name| places.get(name.as_str()?).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::of_stored;
    use serde_json::json;

    #[test]
    fn edges_and_budgets_are_read_from_the_stored_form() {
        let stored = json!({
            "default_args": {"infra_retries": 5},
            "tasks": {"z": {}, "a": {"depends_on": ["z"], "infra_retries": 0},
                      "m": {"depends_on": ["a", "z"]}},
        });
        let tasks = of_stored(&stored).unwrap();
        let shown: Vec<_> =
            tasks.iter().map(|t| (t.task, t.upstreams.as_slice(), t.infra_retries)).collect();
        assert_eq!(shown, [(0, &[][..], 5), (1, &[0][..], 0), (2, &[1, 0][..], 5)]);
    }

    #[test]
    fn what_is_no_stored_form_gives_no_tasks() {
        for stored in [
            json!(null),
            json!({"tasks": []}),
            json!({"tasks": {"a": {}}}),
            json!({"default_args": {"infra_retries": 1}, "tasks": {"a": {"depends_on": ["b"]}}}),
        ] {
            assert_eq!(of_stored(&stored), None, "{stored}");
        }
    }
}
