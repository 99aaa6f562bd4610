//! A store that has seen much: finished runs with their instances and attempts, written by SQL.

use crate::stores::Place;
use anyhow::Context as _;

/// Instances of a finished run.
const RUN: usize = 10_000;

const RUNS: &str = "
WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < @RUNS@)
INSERT INTO run (dag_id, run_id, version_pk, run_type, state, run_after, conf, params, triggered_by,
    made, created_at, started_at, ended_at, reason)
SELECT dag_id, 'history_' || i, version_pk, 'manual', 'success', 1, '{}', '{}', 'bench', 1, 1, 1, 1,
    'done' FROM n, dag WHERE dag_id = '@DAG@' ORDER BY i";

const INSTANCES: &str = "
WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < @ALL@)
INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, token, max_tries,
    attempts, pool, pool_slots, priority, up_total, reason, scheduled_at, ended_at)
SELECT run_pk + i / @RUN@, i % @RUN@, -1, 't' || i % @RUN@, dag_id, 'success', i + 1, 1, 1,
    'default_pool', 1, 1, 0, 'exit', 1, 1 FROM n, run WHERE run_id = 'history_0'";

const ATTEMPTS: &str = "
WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < @ALL@)
INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id, try_number,
    attempt_number, state, outcome, why, prev_outcome, queue, priority, queued_until, queued_at,
    ended_at, reason, exit_code)
SELECT i + 1, 'history-' || i, run_pk + i / @RUN@, i % @RUN@, -1, dag_id, 1, 1, 'ended', 'success',
    'first', 'first', 'default', 1, 1, 1, 1, 'exit', 0 FROM n, run WHERE run_id = 'history_0'";

/// Fills a store with finished instances of a DAG that it knows, each with its attempt.
pub async fn fill(place: &Place, dag_id: &str, finished: usize) -> anyhow::Result<()> {
    let runs = finished.div_ceil(RUN);
    let text = |text: &str| {
        text.replace("@RUNS@", &runs.to_string())
            .replace("@RUN@", &RUN.to_string())
            .replace("@ALL@", &(runs * RUN).to_string())
            .replace("@DAG@", dag_id)
    };
    let texts = [text(RUNS), text(INSTANCES), text(ATTEMPTS)].join(";\n");
    match place {
        Place::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path)?;
            connection.execute_batch(&format!("BEGIN;\n{texts};\nCOMMIT"))?;
        }
        Place::Postgres(url) => {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
            let serving = tokio::spawn(connection);
            // As autovacuum does after a while; here it would come in the middle.
            client.batch_execute(&format!("BEGIN;\n{texts};\nCOMMIT")).await?;
            client.batch_execute("VACUUM ANALYZE").await?;
            drop(client);
            serving.await?.context("the connection that filled the store")?;
        }
    }
    Ok(())
}
