//! Raw claim and complete on PostgreSQL: in batches by our driver, one by one by `pgbench`.

use crate::instant;
use anyhow::Context as _;
use std::path::Path;
use std::process::Command;
use tokio_postgres::{Client, NoTls};

const TABLE: &str = "
DROP TABLE IF EXISTS floor;
CREATE TABLE floor (id BIGINT PRIMARY KEY, state BIGINT NOT NULL, queue TEXT NOT NULL,
    priority BIGINT NOT NULL, attempt BIGINT NOT NULL, exit_code BIGINT, payload TEXT NOT NULL)
    WITH (fillfactor = 70);
CREATE INDEX floor_ready ON floor (queue, priority DESC, id) WHERE state = 0;";

const FILL: &str = "
INSERT INTO floor SELECT n, 0, 'default', 1, 0, NULL, $1::text FROM generate_series(1, $2::bigint) n";

const CLAIM: &str = "
UPDATE floor t SET state = 1, attempt = t.attempt + 1 FROM (
    SELECT id FROM floor WHERE state = 0 AND queue = $1
    ORDER BY priority DESC, id LIMIT $2::bigint FOR UPDATE SKIP LOCKED) s
WHERE t.id = s.id RETURNING t.id, t.attempt, t.payload";

const COMPLETE: &str = "
UPDATE floor t SET state = 2, exit_code = u.code
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (id, attempt, code)
WHERE t.id = u.id AND t.attempt = u.attempt AND t.state = 1";

/// The same for one row a transaction, as `pgbench` runs it.
const SINGLE: &str = "
UPDATE floor t SET state = 1, attempt = t.attempt + 1 FROM (
    SELECT id FROM floor WHERE state = 0 AND queue = 'default'
    ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) s
WHERE t.id = s.id RETURNING t.id AS id, t.attempt AS attempt \\gset
UPDATE floor SET state = 2, exit_code = 0 WHERE id = :id AND attempt = :attempt AND state = 1;
";

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn fill(url: &str, rows: i64) -> anyhow::Result<()> {
    let client = connect(url).await?;
    client.batch_execute(TABLE).await?;
    client.execute(FILL, &[&super::PAYLOAD, &rows]).await?;
    client.batch_execute("VACUUM ANALYZE floor").await?;
    Ok(client.batch_execute("CHECKPOINT").await?)
}

/// Rows claimed and completed a second, in batches, by so many connections.
pub async fn batched(url: &str, rows: i64, batch: i64, connections: usize) -> anyhow::Result<f64> {
    fill(url, rows).await?;
    let began = instant();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let url = url.to_owned();
        workers.spawn(async move { drain(&url, batch).await });
    }
    let mut done = 0;
    while let Some(worker) = workers.join_next().await {
        done += worker??;
    }
    anyhow::ensure!(done == rows, "{done} of {rows} rows were completed");
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

async fn drain(url: &str, batch: i64) -> anyhow::Result<i64> {
    let client = connect(url).await?;
    client.batch_execute("SET enable_bitmapscan = off").await?;
    let (claim, complete) = (client.prepare(CLAIM).await?, client.prepare(COMPLETE).await?);
    let mut done = 0;
    loop {
        let rows = client.query(&claim, &[&"default", &batch]).await?;
        if rows.is_empty() {
            return Ok(done);
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let attempts: Vec<i64> = rows.iter().map(|row| row.get(1)).collect();
        let codes = vec![0_i64; ids.len()];
        let count = client.execute(&complete, &[&ids, &attempts, &codes]).await?;
        done += i64::try_from(count)?;
    }
}

/// Rows claimed and completed a second, one by one in transactions of their own, by `pgbench`.
pub async fn single(url: &str, bin: &Path, clients: u32) -> anyhow::Result<f64> {
    const EACH: i64 = 1_000;
    fill(url, EACH * i64::from(clients)).await?;
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), SINGLE)?;
    let ran = Command::new(bin.join("pgbench"))
        .args(["-n", "-M", "prepared", "-c", &clients.to_string(), "-j", "2"])
        .args(["-t", &EACH.to_string(), "-f"])
        .arg(script.path())
        .arg(url)
        .output()
        .context("pgbench")?;
    let text = String::from_utf8_lossy(&ran.stdout);
    anyhow::ensure!(ran.status.success(), "pgbench: {}", String::from_utf8_lossy(&ran.stderr));
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("pgbench printed no tps")?.parse()?)
}
