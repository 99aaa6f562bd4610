//! Plans: the hot statements use the indexes that were made for them, and nothing walks a table
//! that grows with the history.
//!
//! SQLite plans by statistics only after ANALYZE. The plans must be right on an empty store, on one
//! that was loaded and never analyzed, and on one that somebody analyzed.

use super::cost::load_history;
use crate::place::{Place, SqliteFile};
use fencepost_store::query::all_statements;
use rusqlite::Connection;

/// The golden list: a statement, and what its plan must contain.
const GOLDEN: &str = "
    attempt_claim        COVERING INDEX attempt_queued (ramp=? AND queue=?)
    attempt_claim_ramp   COVERING INDEX attempt_queued (ramp=? AND queue=?)
    attempt_any_queued   COVERING INDEX attempt_queued (ramp=? AND queue=?)
    attempt_unclaimed    INDEX attempt_queued (ramp=?)
    ramp_next            COVERING INDEX attempt_queued (ramp>?)
    ramp_waiting         COVERING INDEX attempt_queued (ramp=? AND queue=?)
    attempt_unstarted    INDEX attempt_unstarted (claimed_at<?)
    attempt_open         INDEX attempt_open (job_id=? AND token>?)
    attempt_left         INDEX attempt_open (job_id=? AND token>?)
    lease_departed       INDEX job_pages
    lease_renew          (job_id=?)
    lease_declare        (job_id=?)
    attempt_in_hand      INDEX hold_run (run_pk=?)
    attempt_start        (token=?)
    attempt_end          (token=?)
    attempt_of_ti        INDEX attempt_of_ti (run_pk=? AND task_index=? AND map_index=?)
    ti_forward_due       INDEX ti_forward
    ti_recheck           INDEX ti_recheck (recheck>? AND recheck<?)
    ti_retry_due         INDEX ti_retry (retry_at<?)
    ti_next_retry        INDEX ti_retry
    ti_next_pair         INDEX ti_scheduled ((dag_id,pool)>(?,?))
    ti_candidates        INDEX ti_scheduled (dag_id=? AND pool=? AND priority<?)
    ti_change            (run_pk=? AND task_index=? AND map_index=?)
    ti_set_counts        (run_pk=? AND task_index=? AND map_index=?)
    ti_move              (run_pk=? AND task_index=?
    ti_head              (run_pk=? AND task_index=?)
    run_startable_dags   INDEX run_queued (state=? AND dag_id=?)
    run_startable_dags   INDEX run_active (state=? AND dag_id=?)
    run_queued           INDEX run_queued (state=? AND dag_id=?
    run_slots_before     INDEX run_queued (state=? AND dag_id=? AND run_after<?)
    run_slot_edges       INDEX run_queued (state=? AND dag_id=?)
    run_oldest_slot      INDEX run_active (state=? AND dag_id=?)
    run_count            INDEX run_queued (state=? AND dag_id=?)
    run_active           INDEX run_active (state=? AND dag_id=?)
    run_overdue          INDEX run_deadline
    run_next_deadline    INDEX run_deadline
    run_previous         INDEX run_by_date (dag_id=? AND logical_date>? AND logical_date<?)
    run_dated_before     INDEX run_by_date (dag_id=? AND logical_date<?)
    run_dated_after      INDEX run_by_date (dag_id=? AND logical_date>?)
    run_list             INDEX run_of_dag (dag_id=? AND run_after<?)
    dag_due              INDEX dag_due
    dag_next_due         INDEX dag_due
    outbox_due           INDEX outbox_due (due_at<?)
    outbox_next          INDEX outbox_due
    hold_free            (token=?)
    vitals_queued        INDEX attempt_queued
    vitals_open          INDEX attempt_open
    vitals_scheduled     INDEX ti_scheduled
    vitals_held          INDEX ti_held
    vitals_figures       INDEX attempt_may_run
    retention_dags       COVERING INDEX run_ended (dag_id=? AND ended_at>?)
    retention_runs       INDEX run_ended (dag_id=? AND ended_at>? AND ended_at<?)
    retention_runs       INDEX run_of_dag (dag_id=? AND run_after>?)
    retention_runs       INDEX run_by_date (dag_id=? AND logical_date>?)
    retention_runs       INDEX attempt_of_ti (run_pk=?)
    retention_runs       INDEX hold_run (run_pk=?)
    retention_jobs       INDEX job_ended (
    retention_jobs       INDEX attempt_of_job (job_id=?)
    retention_jobs       INDEX job_succeeded (succeeded_by=?)
    retention_job_drop   INDEX attempt_of_job (job_id=?)
    retention_incidents  INDEX attempt_of_job (job_id=?)
    retention_incidents  INDEX attempt_incident (incident=?)
    retention_log_rows   INDEX attempt_of_ti (run_pk=?)
    retention_event_rows INDEX event_of_run (run_pk=?)
    retention_events     INDEX event_of_run (run_pk=?)
    retention_xcom_rows  (run_pk=?)
    retention_ti_rows    (run_pk=?)
    attempt_of_incident  INDEX attempt_incident (incident=? AND token>?)
    incident_ripe        INDEX incident_open
    incident_page_open   INDEX incident_open
    asset_waiting        INDEX asset_queue_waiting (dag_id=? AND asset=?)
    asset_queued         INDEX asset_queue_waiting (dag_id=? AND asset=?)
    asset_take           INDEX asset_queue_waiting (dag_id=? AND asset=? AND event_pk<?)
    asset_of_run         INDEX asset_queue_of_run (run_pk=?)
    asset_since          INDEX asset_event_since (asset=? AND at>?)
    asset_consumed       INDEX asset_use_of_dag (dag_id=? AND role=?)
    asset_outlets        INDEX asset_use_of_dag (dag_id=? AND role=?)
    asset_fan_out        COVERING INDEX
    tokens_mint          (one=?)";

/// Tables that grow with the history.
const GROWING: [&str; 6] = ["task_instance", "attempt", "run", "event", "xcom", "outbox"];
/// Partial indexes that hold only what is under way: walking one is no walk of its table.
const SMALL: [&str; 10] = [
    "ti_forward",
    "ti_scheduled",
    "attempt_queued",
    "attempt_open",
    "attempt_unstarted",
    "outbox_due",
    "ti_held",
    "run_queued",
    "run_active",
    "attempt_may_run",
];
/// Statements that may walk a table, and why.
const ALLOWED: [(&str, &str); 1] = [("vitals_effects", "the outbox has nothing that is done")];

/// The lines of a statement's plan.
fn plan(connection: &Connection, text: &str) -> Vec<String> {
    let text = format!("EXPLAIN QUERY PLAN {}", text.replace('$', "?"));
    let mut prepared = connection.prepare(&text).unwrap();
    let values = vec![1; prepared.parameter_count()];
    let rows = prepared.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Whether a line walks a growing table: `SCAN t`, with or without the alias or an index; or makes
/// an index for this one statement, which walks it too.
fn walks(line: &str, text: &str) -> bool {
    if line.contains("AUTOMATIC") {
        return true;
    }
    let Some(rest) = line.strip_prefix("SCAN ") else { return false };
    let alias = rest.split(' ').next().unwrap_or_default();
    let of_growing = GROWING.iter().any(|table| {
        alias == *table
            || text.contains(&format!("FROM {table} {alias} "))
            || text.contains(&format!("JOIN {table} {alias} "))
    });
    of_growing && !SMALL.iter().any(|index| rest.ends_with(&format!("INDEX {index}")))
}

fn check(connection: &Connection, what: &str) {
    let statements = all_statements();
    for line in GOLDEN.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, expected) = line.split_once(' ').unwrap();
        let stmt = statements.iter().find(|stmt| stmt.name == name);
        let stmt = stmt.unwrap_or_else(|| panic!("there is no statement {name}"));
        let plan = plan(connection, stmt.text).join("\n");
        assert!(plan.contains(expected.trim()), "{what}: {name} goes by\n{plan}\nnot {expected}");
    }
    for stmt in &statements {
        let walking: Vec<String> =
            plan(connection, stmt.text).into_iter().filter(|line| walks(line, stmt.text)).collect();
        let is_allowed = ALLOWED.iter().any(|(name, _)| *name == stmt.name);
        assert!(walking.is_empty() || is_allowed, "{what}: {} walks: {walking:?}", stmt.name);
    }
}

#[test]
fn hot_statements_go_by_their_indexes() {
    let file = SqliteFile::new();
    let _store = file.open();
    let connection = file.beside();
    check(&connection, "empty");
    load_history(&connection, 4_000);
    check(&connection, "loaded, not analyzed");
    connection.execute_batch("ANALYZE").unwrap();
    check(&file.beside(), "loaded and analyzed");
}

#[test]
fn a_walk_is_seen() {
    let file = SqliteFile::new();
    let _store = file.open();
    let connection = file.beside();
    let seen = |text: &str| plan(&connection, text).iter().any(|line| walks(line, text));
    assert!(seen("SELECT token FROM attempt WHERE worker = $1"));
    assert!(seen("SELECT t.state FROM task_instance t WHERE t.task_id = $1"));
    assert!(seen("SELECT r.state FROM dag d JOIN run r ON r.version_pk = d.version_pk "));
    assert!(seen("SELECT COUNT(*) FROM event"));
    assert!(!seen("SELECT state FROM attempt WHERE token = $1"));
    assert!(!seen("SELECT run_pk FROM task_instance WHERE forward_due = 1 ORDER BY run_pk"));
}
