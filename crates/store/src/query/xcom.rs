//! Outputs of tasks (XCom).

use crate::query::task_instance::TiKey;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// One output of one task instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Xcom {
    pub run_pk: i64,
    pub task_index: u32,
    pub map_index: i32,
    pub name: String,
    pub value: serde_json::Value,
}

const XCOM_CLEAR: Stmt = Stmt::same(
    "xcom_clear",
    "DELETE FROM xcom WHERE run_pk = $1 AND task_index = $2 AND map_index = $3",
);
const XCOM_INSERT: Stmt = Stmt::same(
    "xcom_insert",
    "INSERT INTO xcom (run_pk, task_index, map_index, name, value, token)
     VALUES ($1, $2, $3, $4, $5, $6)",
)
.batched(
    0,
    "INSERT INTO xcom (run_pk, task_index, map_index, name, value, token) SELECT * FROM \
        unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])",
);

/// What an attempt leaves at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Produced {
    pub ti: TiKey,
    pub token: Token,
    pub outputs: Vec<(String, serde_json::Value)>,
}

/// Replaces the outputs of instances by those of the attempts with these tokens: those that one has
/// set while it ran stay, unless it says otherwise at its end.
pub async fn replace(tx: &Tx, produced: &[Produced]) -> Result<(), StoreError> {
    let place = |of: &Produced| (of.ti.run_pk, of.ti.task_index, of.ti.map_index);
    let (mut others, mut names, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for one in produced {
        let (run_pk, task, map) = place(one);
        others.push(values![run_pk, task, map, one.token]);
        for (name, value) in &one.outputs {
            names.push(values![run_pk, task, map, name]);
            sets.push(values![run_pk, task, map, name, value, one.token]);
        }
    }
    tx.execute_many(&XCOM_CLEAR_OTHERS, others).await?;
    tx.execute_many(&XCOM_UNSET, names).await?;
    tx.execute_many(&XCOM_INSERT, sets).await.map(drop)
}

const XCOM_UNSET: Stmt = Stmt::same(
    "xcom_unset",
    "DELETE FROM xcom WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND name = $4",
)
.batched(
    4,
    "DELETE FROM xcom x USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) \
        WITH ORDINALITY AS u(run_pk, task_index, map_index, name, ord) \
        WHERE x.run_pk = u.run_pk AND x.task_index = u.task_index AND x.map_index = u.map_index \
        AND x.name = u.name RETURNING u.ord",
);

/// Sets one output of an instance.
pub async fn set(
    tx: &Tx,
    run_pk: i64,
    token: Token,
    key: (u32, i32),
    output: &(String, serde_json::Value),
) -> Result<(), StoreError> {
    let (name, value) = output;
    tx.execute(&XCOM_UNSET, values![run_pk, key.0, key.1, name]).await?;
    let values = values![run_pk, key.0, key.1, name, value, token];
    tx.execute(&XCOM_INSERT, values).await.map(drop)
}

const XCOM_CLEAR_OTHERS: Stmt = Stmt::same(
    "xcom_clear_others",
    "DELETE FROM xcom WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND token <> $4",
)
.batched(
    3,
    "DELETE FROM xcom x USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) \
        WITH ORDINALITY AS u(run_pk, task_index, map_index, token, ord) \
        WHERE x.run_pk = u.run_pk AND x.task_index = u.task_index AND x.map_index = u.map_index \
        AND x.token <> u.token RETURNING u.ord",
);

/// Removes the outputs of instances: (task, map index).
pub async fn clear(tx: &Tx, run_pk: i64, keys: &[(u32, i32)]) -> Result<(), StoreError> {
    let sets = keys.iter().map(|(task, map)| values![run_pk, *task, *map]).collect();
    tx.execute_many(&XCOM_CLEAR, sets).await.map(drop)
}

const XCOM_OF_TASK: Stmt = Stmt::same(
    "xcom_of_task",
    "SELECT run_pk, task_index, map_index, name, value FROM xcom
     WHERE run_pk = $1 AND task_index = $2 ORDER BY name, map_index LIMIT 100000",
)
.batched(
    0,
    "SELECT u.ord, x.run_pk, x.task_index, x.map_index, x.name, x.value \
        FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(run_pk, task_index, ord) \
        JOIN xcom x ON x.run_pk = u.run_pk AND x.task_index = u.task_index \
        ORDER BY u.ord, x.name, x.map_index",
);
const XCOM_OF_RUN: Stmt = Stmt::same(
    "xcom_of_run",
    "SELECT run_pk, task_index, map_index, name, value FROM xcom
     WHERE run_pk = $1 ORDER BY task_index, name, map_index LIMIT 1000000",
);

/// The outputs of some tasks: (run, task).
pub async fn of_tasks(tx: &Tx, tasks: &[(i64, u32)]) -> Result<Vec<Xcom>, StoreError> {
    let sets = tasks.iter().map(|(run_pk, task)| values![*run_pk, *task]).collect();
    decode_all(tx.query_many(&XCOM_OF_TASK, sets).await?)
}

/// All outputs of a run, by task.
pub async fn of_run(tx: &Tx, run_pk: i64) -> Result<Vec<Xcom>, StoreError> {
    decode_all(tx.query(&XCOM_OF_RUN, values![run_pk]).await?)
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Xcom>, StoreError> {
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("xcom");
            Ok(Xcom {
                run_pk: c.int()?,
                task_index: c.number()?,
                map_index: c.number()?,
                name: c.text()?,
                value: c.json()?,
            })
        })
        .collect()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[XCOM_CLEAR, XCOM_UNSET, XCOM_CLEAR_OTHERS, XCOM_INSERT, XCOM_OF_TASK, XCOM_OF_RUN];
