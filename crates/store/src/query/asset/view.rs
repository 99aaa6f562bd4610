//! Assets and their events as people list them.

use super::{AssetEvent, columns, decode_all};
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

/// An asset in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    pub name: String,
    /// Tasks that write it, of the DAGs that are there.
    pub producers: i64,
    /// DAGs that run by it.
    pub consumers: i64,
    pub last_event_at: Option<Timestamp>,
}

macro_rules! assets {
    ($which:literal) => {
        concat!(
            "SELECT u.asset,
                CAST(SUM(CASE WHEN u.role = 'producer' AND d.is_active = 1 THEN 1 ELSE 0 END) AS BIGINT),
                CAST(SUM(CASE WHEN u.role = 'consumer' AND d.is_active = 1 THEN 1 ELSE 0 END) AS BIGINT),
                (SELECT e.at FROM asset_event e WHERE e.asset = u.asset
                    ORDER BY e.event_pk DESC LIMIT 1)
             FROM asset_use u JOIN dag d ON d.dag_id = u.dag_id WHERE u.asset ",
            $which,
            " GROUP BY u.asset ORDER BY u.asset LIMIT $2"
        )
    };
}

const ASSET_PAGE: Stmt = Stmt::same("asset_page", assets!("> $1"));
const ASSET_GET: Stmt = Stmt::same("asset_get", assets!("= $1"));

fn decode(row: Row) -> Result<Asset, StoreError> {
    let mut c = row.columns("asset_use");
    Ok(Asset {
        name: c.text()?,
        producers: c.int()?,
        consumers: c.int()?,
        last_event_at: c.opt_time()?,
    })
}

/// Assets that some DAG names, after a name.
pub async fn page(tx: &Tx, after: &str, limit: u32) -> Result<Vec<Asset>, StoreError> {
    tx.query(&ASSET_PAGE, values![after, limit]).await?.into_iter().map(decode).collect()
}

/// The asset of that name, if some DAG names it.
pub async fn get(tx: &Tx, name: &str) -> Result<Option<Asset>, StoreError> {
    tx.query_opt(&ASSET_GET, values![name, 1_i64]).await?.map(decode).transpose()
}

const ASSET_EVENT_PAGE: Stmt = Stmt::same(
    "asset_event_page",
    concat!(
        "SELECT ",
        columns!(),
        " FROM asset_event e WHERE e.event_pk < $1 ORDER BY e.event_pk DESC LIMIT $2"
    ),
);
const ASSET_EVENT_PAGE_OF: Stmt = Stmt::same(
    "asset_event_page_of",
    concat!(
        "SELECT ",
        columns!(),
        " FROM asset_event e WHERE e.asset = $3 AND e.event_pk < $1
          ORDER BY e.event_pk DESC LIMIT $2"
    ),
);

/// Events before a key, the newest first; of one asset, or of all.
pub async fn events(
    tx: &Tx,
    asset: Option<&str>,
    before: i64,
    limit: u32,
) -> Result<Vec<AssetEvent>, StoreError> {
    decode_all(match asset {
        Some(asset) => tx.query(&ASSET_EVENT_PAGE_OF, values![before, limit, asset]).await?,
        None => tx.query(&ASSET_EVENT_PAGE, values![before, limit]).await?,
    })
}

const ASSET_EVENT_TAKERS: Stmt = Stmt::same(
    "asset_event_takers",
    "SELECT q.event_pk, q.dag_id, COALESCE(r.run_id, '') FROM asset_queue q
        LEFT JOIN run r ON r.run_pk = q.run_pk
     WHERE q.event_pk = $1 ORDER BY q.dag_id",
);

/// For whom events were queued: (event, DAG, the run that took it, or an empty text).
pub async fn takers(tx: &Tx, events: &[i64]) -> Result<Vec<(i64, String, String)>, StoreError> {
    let sets = events.iter().map(|key| values![*key]).collect();
    let decode = |row: Row| {
        let mut c = row.columns("asset_queue");
        Ok((c.int()?, c.text()?, c.text()?))
    };
    tx.query_many(&ASSET_EVENT_TAKERS, sets).await?.into_iter().map(decode).collect()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[ASSET_PAGE, ASSET_GET, ASSET_EVENT_PAGE, ASSET_EVENT_PAGE_OF, ASSET_EVENT_TAKERS];
