use fencepost_api::rest::{Attempt, DryRun, Event, Evidence, Page, Run, TaskInstance, TriggerRun};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads a form, writes it again, and compares.
fn check<T: Serialize + DeserializeOwned>(form: &Value) {
    let read: T = serde_json::from_value(form.clone()).unwrap();
    assert_eq!(&serde_json::to_value(read).unwrap(), form);
}

#[test]
fn an_attempt_has_the_documented_fields() {
    let evidence = json!({
        "kind": "expiry", "at": "2026-09-22T05:15:03.112Z", "job": "w-3",
        "last_heartbeat_at": "2026-09-22T05:14:31.020Z",
        "lease_expires_at": "2026-09-22T05:15:01.020Z",
        "declared_by": "s-2", "term": 17, "detail": null,
    });
    check::<Evidence>(&evidence);
    check::<Attempt>(&json!({
        "attempt_id": "01926f3e-0000-7000-8000-000000000001", "dag_id": "d", "run_id": "r",
        "task_id": "t", "map_index": -1, "try_number": 1, "attempt_number": 2,
        "token": "3848290745427", "why": "replaces", "replaces": 1, "state": "ended",
        "worker": "w-3", "host": "node-b", "containment": "pidns",
        "queued_at": "2026-09-22T05:10:01.000Z", "claimed_at": null, "started_at": null,
        "ended_at": null, "outcome": "lost", "reason": null, "message": null, "exit_code": null, "signal": null,
        "counted_as": "infra", "evidence": evidence, "refused_writes": 3, "may_still_run": true,
        "lease_expires_at": null,
    }));
}

#[test]
fn runs_task_instances_and_events_have_the_documented_fields() {
    check::<Run>(&json!({
        "dag_id": "d", "run_id": "r", "run_type": "scheduled", "state": "missed", "paused": false,
        "logical_date": null, "data_interval_start": null, "data_interval_end": null,
        "queued_at": "2026-09-22T05:10:00.000Z", "started_at": null, "ended_at": null,
        "version": 12, "triggered_by": "scheduler", "reason": null, "note": null,
        "params": {"b": 1, "a": 2}, "conf": null, "task_counts": {"none": 3}, "last_event_seq": 9,
    }));
    check::<TaskInstance>(&json!({
        "dag_id": "d", "run_id": "r", "task_id": "t", "map_index": 3, "map_label": "emea",
        "state": "up_for_retry", "reason": "exit", "try_number": 2, "max_tries": 4,
        "infra_used": 0, "infra_retries": 5, "attempt_count": 1, "token": null,
        "attempt_id": null, "worker": null, "pool": "default_pool", "pool_slots": 1,
        "queue": "default", "priority_weight": 1, "trigger_rule": "all_success",
        "depends_on": [], "since": null, "started_at": null, "ended_at": null,
        "next_try_at": "2026-09-22T05:31:10.000Z",
    }));
    check::<Event>(&json!({
        "seq": 1, "at": "2026-09-22T05:10:00.000Z", "kind": "write_refused", "dag_id": "d",
        "run_id": "r", "task_id": "t", "map_index": -1, "token": "3848290745427",
        "actor": "server", "from": null, "to": null, "reason": "superseded", "evidence": null,
        "detail": {"presented": "success"},
    }));
}

#[test]
fn what_a_newer_peer_adds_is_ignored_and_what_an_older_leaves_out_is_a_default() {
    let trigger: TriggerRun = serde_json::from_value(json!({"conf": {"a": 1}, "new": 1})).unwrap();
    assert_eq!((trigger.run_id, &trigger.conf["a"]), (None, &json!(1)));
    let dry: DryRun = serde_json::from_value(json!({})).unwrap();
    assert!(!dry.dry_run);
    let page: Page<u8> =
        serde_json::from_value(json!({"items": [1], "next_cursor": null})).unwrap();
    assert_eq!(serde_json::to_value(page).unwrap(), json!({"items": [1], "next_cursor": null}));
}
