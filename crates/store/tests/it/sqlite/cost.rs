//! Cost: what a pass asks for every time costs the same beside a long history.
//!
//! Counted without a clock, in steps of SQLite's virtual machine: the same statements on the same
//! work, once alone and once beside many finished instances.

use crate::place::{Place, SqliteFile};
use fencepost_store::query::all_statements;
use rusqlite::{Connection, StatementStatus};

/// Instances per finished run.
const WIDTH: u32 = 20;

/// Finished runs of the DAG `d` with their instances, attempts and events: `count` instances, by
/// SQL, as one transaction.
pub(super) fn load_history(connection: &Connection, count: u32) {
    let runs = count / WIDTH;
    let text = format!(
        "BEGIN;
         INSERT OR IGNORE INTO job (job_id, kind, state, name, host, pid, pid_start, boot_id,
             machine_id, home_id, version, queues, slots, lease_ttl, renew_seq, renewed_at,
             started_at, ended_at, succeeded_by, detached) VALUES ('old', 'worker', 'stopped', 'w', 'h', 1, 1, 'b', 'm',
             'home', '0', 'default', 8, NULL, 0, 1, 1, 2, NULL, 0);
         CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (
             SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {runs}) SELECT i FROM n;
         CREATE TEMP TABLE t AS SELECT i FROM n WHERE i <= {WIDTH};
         INSERT INTO run (dag_id, run_id, version_pk, run_type, state, logical_date, run_after,
             conf, params, triggered_by, created_at, made, started_at, ended_at)
         SELECT 'd', 'old' || i, 1, 'scheduled', 'success', i, i, '{{}}', '{{}}', 's', i, 1, i, i
         FROM n;
         INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, token,
             max_tries, pool, pool_slots, priority, up_total, ended_at)
         SELECT r.run_pk, t.i, -1, 't' || t.i, 'd', 'success', 549755813888 + r.run_pk * 100 + t.i,
             1, 'p', 1, 1, 0, 1
         FROM run r JOIN t WHERE r.run_id LIKE 'old%';
         INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id, try_number,
             attempt_number, state, outcome, why, prev_outcome, queue, priority, queued_until,
             job_id, queued_at, claimed_at, started_at, ended_at)
         SELECT token, 'a' || token, run_pk, task_index, -1, 'd', 1, 1, 'ended', 'success',
             'first', 'first', 'default', 1, 0, 'old', 1, 1, 1, 1
         FROM task_instance WHERE token > 0;
         INSERT INTO event (at, kind, dag_id, run_pk, task_id, map_index, token, actor, to_state)
         SELECT 1, 'ti_state', 'd', run_pk, task_id, -1, token, 'w', 'success'
         FROM task_instance WHERE token > 0;
         DROP TABLE n; DROP TABLE t;
         COMMIT;"
    );
    connection.execute_batch(&text).unwrap();
}

/// The work that is under way: a running run with a few instances in each state, a queued run.
fn load_work(connection: &Connection) {
    connection
        .execute_batch(
            "BEGIN;
             INSERT INTO installation (one, installation_id, epoch, counter, created_at)
                VALUES (1, 'i', 1, 1000000, 1);
             INSERT INTO job (job_id, kind, state, name, host, pid, pid_start, boot_id, machine_id,
                 home_id, version, queues, slots, lease_ttl, renew_seq, renewed_at, started_at,
                 ended_at, succeeded_by, detached) VALUES ('w', 'worker', 'running', 'w', 'h', 1, 1, 'b', 'm', 'home',
                 '0', 'default', 8, NULL, 0, 1, 1, NULL, NULL, 0);
             INSERT INTO pool VALUES ('p', 128, '', 0);
             INSERT INTO dag VALUES ('d', 1, 1, 0, 1, 'd.yaml', 'o', '[]', '', '@daily', 16, 16,
                 NULL, 5, 1, 1, NULL, 0);
             INSERT INTO run (run_pk, dag_id, run_id, version_pk, run_type, state, logical_date,
                 run_after, conf, params, triggered_by, created_at, deadline_at) VALUES
                 (1000001, 'd', 'now', 1, 'manual', 'running', 1000001, 1000001, '{}', '{}', 'p', 1, 5),
                 (1000002, 'd', 'next', 1, 'manual', 'queued', 1000002, 1000002, '{}', '{}', 'p', 1, NULL);
             CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (
                 SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 79) SELECT i FROM n;
             INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state,
                 token, max_tries, pool, pool_slots, priority, up_total, forward_due, recheck,
                 retry_at)
             SELECT 1000001, i, -1, 't' || i, 'd',
                 CASE i % 4 WHEN 0 THEN 'scheduled' WHEN 1 THEN 'success' WHEN 2 THEN 'none'
                            ELSE 'up_for_retry' END,
                 0, 1, 'p', 1, 1, 0, i % 4 = 1, i % 4 = 2, CASE i % 4 WHEN 3 THEN 5 END FROM n;
             INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id,
                 try_number, attempt_number, state, why, prev_outcome, queue, priority,
                 queued_until, job_id, queued_at, claimed_at)
             SELECT 550755813888 + i, 'n' || i, 1000001, 100 + i, -1, 'd', 1, 1,
                 CASE i % 2 WHEN 0 THEN 'queued' ELSE 'claimed' END, 'first', 'first', 'default',
                 1, 5, CASE i % 2 WHEN 1 THEN 'w' END, 1, 1 FROM n;
             INSERT INTO hold SELECT token, 'p', 1, 'd', 1000001, task_index FROM attempt
             WHERE state IN ('queued', 'claimed');
             INSERT INTO outbox (kind, payload, state, created_at, due_at)
             SELECT 'k', 'null', 'due', 1, 5 FROM n;
             DROP TABLE n;
             COMMIT;",
        )
        .unwrap();
}

/// What the passes, the claim and the reports ask for, with values that find the work above.
const ASKED: &[(&str, &[&str])] = &[
    ("attempt_claim", &["w", "w", "h", "9", "default", "8", "1"]),
    ("attempt_any_queued", &["default"]),
    ("attempt_unclaimed", &["10", "200"]),
    ("attempt_unstarted", &["10", "200"]),
    ("attempt_active", &["0", "500"]),
    ("attempt_in_hands", &["''", "0", "500"]),
    ("attempt_open", &["w", "0", "500"]),
    ("attempt_in_hand", &["1000001"]),
    ("attempt_of_ti", &["1000001", "105", "-1"]),
    ("ti_forward_due", &["0", "0", "-9", "2000"]),
    ("ti_recheck", &["2", "0", "0", "0", "1000"]),
    ("ti_retry_due", &["10", "500"]),
    ("ti_next_retry", &[]),
    ("ti_next_pair", &["", ""]),
    ("ti_candidates", &["d", "p", "9", "0", "0", "-9", "256"]),
    ("ti_head", &["1000001", "6"]),
    ("ti_states", &["1000001"]),
    ("ti_move", &["1000001", "2", "scheduled", "r", "0", "9", "9"]),
    ("run_startable_dags", &["", "50"]),
    ("run_queued", &["d", "0", "0", "16"]),
    ("run_count", &["d"]),
    ("run_active", &["d", "16"]),
    ("run_overdue", &["10", "200"]),
    ("run_next_deadline", &[]),
    ("run_previous", &["d", "1000001", "1"]),
    ("dag_due", &["10", "50"]),
    ("dag_next_due", &[]),
    ("look", &[]),
    ("hold_of_dags", &[]),
    ("hold_active", &[]),
    ("pool_list", &[]),
    ("outbox_due", &["10", "100"]),
    ("outbox_next", &[]),
    ("tokens_mint", &["8"]),
];

/// Steps of the virtual machine, and rows that were found.
fn steps(connection: &Connection, text: &str, values: &[&str]) -> (i32, usize) {
    let mut prepared = connection.prepare(&text.replace('$', "?")).unwrap();
    let bound = values.iter().map(|text| -> rusqlite::types::Value {
        text.parse().map_or_else(|_| (*text).to_owned().into(), |n: i64| n.into())
    });
    assert_eq!(prepared.parameter_count(), values.len(), "{text}");
    let mut rows = prepared.query(rusqlite::params_from_iter(bound)).unwrap();
    let mut found = 0;
    while rows.next().unwrap().is_some() {
        found += 1;
    }
    drop(rows);
    (prepared.get_status(StatementStatus::VmStep), found)
}

fn measure(history: u32) -> Vec<(i32, usize)> {
    let file = SqliteFile::new();
    let _store = file.open();
    let connection = file.beside();
    if history > 0 {
        load_history(&connection, history);
    }
    load_work(&connection);
    connection.execute_batch("BEGIN").unwrap();
    let statements = all_statements();
    ASKED
        .iter()
        .map(|(name, values)| {
            let stmt = statements.iter().find(|stmt| stmt.name == *name);
            let stmt = stmt.unwrap_or_else(|| panic!("there is no statement {name}"));
            steps(&connection, stmt.text, values)
        })
        .collect()
}

fn check_flat(history: u32) {
    let (alone, beside) = (measure(0), measure(history));
    for (((name, _), alone), beside) in ASKED.iter().zip(alone).zip(beside) {
        let ratio = f64::from(beside.0) / f64::from(alone.0);
        // A few steps more are noise on a statement of a few steps.
        let is_flat = ratio < 1.5 || beside.0 - alone.0 < 60;
        assert!(is_flat, "{name}: {alone:?} steps and rows alone, {beside:?} beside {history}");
        assert!(alone.0 > 0);
    }
}

#[test]
fn what_every_pass_asks_is_flat_beside_20_000_finished_instances() {
    check_flat(20_000);
}

#[test]
#[ignore = "long: loads 200,000 instances"]
fn slow_what_every_pass_asks_is_flat_beside_200_000_finished_instances() {
    check_flat(200_000);
}

#[test]
fn a_cost_that_grows_is_seen() {
    let file = SqliteFile::new();
    let _store = file.open();
    let connection = file.beside();
    let text = "SELECT COUNT(*) FROM attempt WHERE worker = 'x'";
    let (alone, _) = steps(&connection, text, &[]);
    load_history(&connection, 2_000);
    let (beside, _) = steps(&connection, text, &[]);
    assert!(beside > alone * 100, "{alone} {beside}");
}
