//! Plans of the hot statements on tables that were filled and never analysed: the planner knows nothing
//! of them, and must neither read nor sort all of what waits (or all of the history).

use crate::place::PostgresDatabase;
use fencepost_store::query::all_statements;
use tokio_postgres::{Client, NoTls};

const ROWS: u32 = 40_000;

/// A hot statement, the values to explain it with, and the index that it is to use.
const HOT: [(&str, &str, &str); 24] = [
    ("attempt_claim", "'j', 'w', 'h', 1, 'default', 100, 1", "attempt_queued"),
    ("attempt_claim_ramp", "'j', 'w', 'h', 1, 'default', 100, 1, 'p'", "attempt_queued"),
    ("attempt_any_queued", "'default'", "attempt_queued"),
    ("ramp_next", "''", "attempt_queued"),
    ("ti_candidates", "'d', 'p', 9, 0, 0, -9, 128", "ti_scheduled"),
    ("ti_next_pair", "'', ''", "ti_scheduled"),
    ("ti_forward_due", "0, 0, 0, 1000", "ti_forward"),
    ("ti_recheck", "2, 0, 0, 0, 128", "ti_recheck"),
    ("ti_retry_due", "5, 128", "ti_retry"),
    ("attempt_unstarted", "5, 100", "attempt_unstarted"),
    ("dag_due", "5, 50", "dag_due"),
    ("vitals_open", "", "attempt_open"),
    ("vitals_held", "", "ti_held"),
    ("vitals_figures", "", "attempt_may_run"),
    ("vitals_runs", "", "run_active"),
    ("retention_dags", "'', 9, 9, 9, 50", "run_ended"),
    ("retention_runs", "'d', 9, 0, 0, 50", "run_ended"),
    ("retention_runs", "'d', 9, 0, 0, 50", "run_of_dag"),
    ("retention_jobs", "9, 0, '', 50", "attempt_of_job"),
    ("retention_job_drop", "'j', 9", "attempt_of_job"),
    ("retention_events", "9, 50", "event_of_run"),
    ("retention_event_rows", "9, 50", "event_of_run"),
    ("retention_attempt_rows", "9, 50", "attempt_of_ti"),
    ("retention_ti_rows", "9, 50", "task_instance_pkey"),
];

async fn filled(place: &PostgresDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let fill = format!(
        "ALTER TABLE task_instance SET (autovacuum_enabled = off);
         ALTER TABLE attempt SET (autovacuum_enabled = off);
         INSERT INTO job (job_id, kind, state, name, host, pid, pid_start, boot_id, machine_id,
            home_id, version, queues, slots, renew_seq, renewed_at, started_at)
         VALUES ('j', 'worker', 'running', 'w', 'h', 1, 1, 'b', 'm', 'o', '0', 'default', 8, 0, 1, 1);
         INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id, try_number,
            attempt_number, state, why, prev_outcome, queue, priority, queued_until, queued_at)
         SELECT n, n::text, n, 0, -1, 'd', 1, 1, CASE WHEN n % 4 = 0 THEN 'queued' ELSE 'ended' END,
            'first', 'first', 'default', n % 7, 1, 1 FROM generate_series(1, {ROWS}) n;
         INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, max_tries,
            pool, pool_slots, priority, up_total, forward_due)
         SELECT n, 0, -1, 't', 'd', CASE WHEN n % 4 = 0 THEN 'scheduled' ELSE 'success' END, 1, 'p',
            1, n % 7, 0, CASE WHEN n % 9 = 0 THEN 1 ELSE 0 END FROM generate_series(1, {ROWS}) n"
    );
    client.batch_execute(&fill).await.unwrap();
    // As the driver sets it on its connections.
    client.batch_execute("SET enable_bitmapscan = off; SET jit = off").await.unwrap();
    client
}

async fn plan(client: &Client, name: &str, values: &str) -> String {
    let stmt = all_statements().into_iter().find(|stmt| stmt.name == name).unwrap();
    let values = if values.is_empty() { String::new() } else { format!("({values})") };
    let text = format!(
        "PREPARE hot AS {}{}; SET plan_cache_mode = force_generic_plan; EXPLAIN EXECUTE hot{values}",
        stmt.postgres, stmt.lock
    );
    let told = client.simple_query(&text).await.unwrap();
    client.batch_execute("DEALLOCATE hot").await.unwrap();
    let lines = told.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        tokio_postgres::SimpleQueryMessage::CommandComplete(_)
        | tokio_postgres::SimpleQueryMessage::RowDescription(_)
        | _ => None,
    });
    lines.collect::<Vec<String>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hot_statements_use_their_indexes_also_on_tables_that_were_never_analysed() {
    let place = PostgresDatabase::new();
    let client = filled(&place).await;
    for (name, values, index) in HOT {
        let plan = plan(&client, name, values).await;
        assert!(plan.contains(index), "{name}:\n{plan}");
        for walk in ["Seq Scan on task_instance", "Seq Scan on attempt", "Seq Scan on event"] {
            assert!(!plan.contains(walk), "{name}:\n{plan}");
        }
    }
}
