//! Task instances of some tasks of a run, and their outputs.

use crate::query::task_instance::TiKey;
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// Below every map index.
pub const FIRST: i64 = -2;

const TI_PAGE_OF_TASK: Stmt = Stmt::same(
    "ti_page_of_task",
    "SELECT task_index, map_index FROM task_instance
     WHERE run_pk = $1 AND task_index = $2 AND map_index > $3
       AND ($4 = '' OR $4 LIKE '%,' || state || ',%')
     ORDER BY map_index LIMIT $5",
);

/// Keys of the instances of some tasks, in the order given: (task, after this map index). Up to
/// `limit` of each task; `states` as [`super::words`].
pub async fn keys(
    tx: &Tx,
    run_pk: i64,
    tasks: &[(u32, i64)],
    states: &str,
    limit: u32,
) -> Result<Vec<TiKey>, StoreError> {
    let sets = tasks.iter().map(|(t, after)| values![run_pk, *t, *after, states, limit]).collect();
    let rows = tx.query_many(&TI_PAGE_OF_TASK, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            Ok(TiKey { run_pk, task_index: c.number()?, map_index: c.number()? })
        })
        .collect()
}

/// An accepted output, and the attempt that it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub name: String,
    pub value: serde_json::Value,
    pub token: Option<Token>,
}

const XCOM_OF_TI: Stmt = Stmt::same(
    "xcom_of_ti",
    "SELECT name, value, token FROM xcom
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 ORDER BY name LIMIT 10000",
);

/// The outputs of an instance, by name.
pub async fn outputs(tx: &Tx, ti: TiKey) -> Result<Vec<Output>, StoreError> {
    let rows = tx.query(&XCOM_OF_TI, values![ti.run_pk, ti.task_index, ti.map_index]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("xcom");
            Ok(Output { name: c.text()?, value: c.json()?, token: c.opt_token()? })
        })
        .collect()
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[TI_PAGE_OF_TASK, XCOM_OF_TI];
