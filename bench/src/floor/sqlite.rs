//! Raw claim and complete on SQLite: one connection, durable commits, a transaction a batch.

use crate::instant;
use rusqlite::{Connection, params};
use std::path::Path;

const TABLE: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE floor (id INTEGER PRIMARY KEY, state BIGINT NOT NULL, queue TEXT NOT NULL,
    priority BIGINT NOT NULL, attempt BIGINT NOT NULL, exit_code BIGINT, payload TEXT NOT NULL);
CREATE INDEX floor_ready ON floor (queue, priority DESC, id) WHERE state = 0;";

const FILL: &str = "
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
INSERT INTO floor SELECT n, 0, 'default', 1, 0, NULL, ?1 FROM n";

const CLAIM: &str = "
UPDATE floor SET state = 1, attempt = attempt + 1 WHERE state = 0 AND id IN (
    SELECT id FROM floor WHERE state = 0 AND queue = ?1 ORDER BY priority DESC, id LIMIT ?2)
RETURNING id, attempt, payload";

const COMPLETE: &str =
    "UPDATE floor SET state = 2, exit_code = 0 WHERE id = ?1 AND attempt = ?2 AND state = 1";

/// Rows claimed and completed a second.
pub fn batched(folder: &Path, rows: i64, batch: i64) -> anyhow::Result<f64> {
    let mut connection = Connection::open(folder.join("floor.db"))?;
    connection.execute_batch(TABLE)?;
    connection.execute(FILL, params![super::PAYLOAD, rows])?;
    let began = instant();
    let mut done = 0;
    loop {
        let claimed = claim(&mut connection, batch)?;
        if claimed.is_empty() {
            break;
        }
        let tx = connection.transaction()?;
        {
            let mut complete = tx.prepare_cached(COMPLETE)?;
            for (id, attempt) in &claimed {
                done += complete.execute(params![id, attempt])?;
            }
        }
        tx.commit()?;
    }
    anyhow::ensure!(i64::try_from(done)? == rows, "{done} of {rows} rows were completed");
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

fn claim(connection: &mut Connection, batch: i64) -> anyhow::Result<Vec<(i64, i64)>> {
    let tx = connection.transaction()?;
    let claimed = {
        let mut claim = tx.prepare_cached(CLAIM)?;
        let rows =
            claim.query_map(params!["default", batch], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()?
    };
    tx.commit()?;
    Ok(claimed)
}
