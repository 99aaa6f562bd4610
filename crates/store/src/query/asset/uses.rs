//! Which DAGs and tasks name an asset.

use crate::{Row, Stmt, StoreError, Tx, values};

/// A use of an asset by a DAG or one of its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub asset: String,
    /// `consumer`, `producer` or `inlet`.
    pub role: String,
    pub dag_id: String,
    /// Empty for a consumer.
    pub task_id: String,
}

const ASSET_USE_DROP: Stmt =
    Stmt::same("asset_use_drop", "DELETE FROM asset_use WHERE dag_id = $1");
const ASSET_USE_PUT: Stmt = Stmt::same(
    "asset_use_put",
    "INSERT INTO asset_use (asset, role, dag_id, task_id) VALUES ($1, $2, $3, $4)
     ON CONFLICT DO NOTHING",
);
const ASSET_UNQUEUE: Stmt = Stmt::same(
    "asset_unqueue",
    "DELETE FROM asset_queue WHERE dag_id = $1 AND run_pk IS NULL
        AND NOT EXISTS (SELECT 1 FROM asset_use u WHERE u.asset = asset_queue.asset
            AND u.role = 'consumer' AND u.dag_id = $1)",
);

/// Replaces what a DAG and its tasks name.
pub async fn replace(tx: &Tx, dag_id: &str, uses: &[Use]) -> Result<(), StoreError> {
    tx.execute(&ASSET_USE_DROP, values![dag_id]).await?;
    let sets = uses.iter().map(|u| values![&u.asset, &u.role, &u.dag_id, &u.task_id]).collect();
    tx.execute_many(&ASSET_USE_PUT, sets).await.map(drop)
}

/// Takes events out of a DAG's queue whose assets its schedule does not name; how many.
pub async fn unqueue(tx: &Tx, dag_id: &str) -> Result<u64, StoreError> {
    tx.execute(&ASSET_UNQUEUE, values![dag_id]).await
}

const ASSET_USES: Stmt = Stmt::same(
    "asset_uses",
    "SELECT u.asset, u.role, u.dag_id, u.task_id FROM asset_use u
        JOIN dag d ON d.dag_id = u.dag_id AND d.is_active = 1
     WHERE u.asset = $1 ORDER BY u.role, u.dag_id, u.task_id LIMIT $2",
);

/// Who names an asset, of the DAGs that are there.
pub async fn of_asset(tx: &Tx, asset: &str, limit: u32) -> Result<Vec<Use>, StoreError> {
    let rows = tx.query(&ASSET_USES, values![asset, limit]).await?;
    let decode = |row: Row| {
        let mut c = row.columns("asset_use");
        Ok(Use { asset: c.text()?, role: c.text()?, dag_id: c.text()?, task_id: c.text()? })
    };
    rows.into_iter().map(decode).collect()
}

const ASSET_CONSUMED: Stmt = Stmt::same(
    "asset_consumed",
    "SELECT asset FROM asset_use WHERE dag_id = $1 AND role = 'consumer' ORDER BY asset",
);

/// The assets that the schedule of a DAG names.
pub async fn consumed(tx: &Tx, dag_id: &str) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&ASSET_CONSUMED, values![dag_id]).await?;
    rows.into_iter().map(|row| row.columns("asset_use").text()).collect()
}

const ASSET_OUTLETS: Stmt = Stmt::same(
    "asset_outlets",
    "SELECT asset FROM asset_use WHERE dag_id = $1 AND role = 'producer' AND task_id = $2
     ORDER BY asset",
);

/// The assets that a task produces, by the newest version of its DAG.
pub async fn outlets(tx: &Tx, dag_id: &str, task_id: &str) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&ASSET_OUTLETS, values![dag_id, task_id]).await?;
    rows.into_iter().map(|row| row.columns("asset_use").text()).collect()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[ASSET_USE_DROP, ASSET_USE_PUT, ASSET_UNQUEUE, ASSET_USES, ASSET_CONSUMED, ASSET_OUTLETS];
