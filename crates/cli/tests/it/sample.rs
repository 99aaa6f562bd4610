//! Wire values as a server would send them.

use fencepost_api::rest::{
    Attempt, Dag, DagDetail, DagTask, Event, Evidence, LogLine, LogPage, Param, Run, RunDot, Slot,
    TaskInstance,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) const RUN: &str = "manual__2026-09-22T05:10:00.000Z_abcd";

pub(crate) fn at(clock: &str) -> String {
    format!("2026-09-22T{clock}.000Z")
}

pub(crate) fn dag(dag_id: &str) -> Dag {
    let dot = |state: &str| RunDot {
        run_id: RUN.into(),
        state: state.into(),
        started_at: Some(at("05:10:01")),
        ended_at: None,
    };
    Dag {
        dag_id: dag_id.into(),
        description: "Load orders".into(),
        owner: "data".into(),
        tags: vec!["sales".into(), "critical".into()],
        is_paused: false,
        is_active: true,
        schedule: Some("0 5 * * *".into()),
        timezone: "Europe/Berlin".into(),
        version: 12,
        file: "sales.yaml".into(),
        next_due_at: Some("2026-09-23T03:00:00.000Z".into()),
        last_runs: vec![dot("running"), dot("failed"), dot("success")],
        has_import_error: false,
    }
}

pub(crate) fn detail(dag_id: &str) -> DagDetail {
    let task = |task_id: &str, depends_on: &[&str]| DagTask {
        task_id: task_id.into(),
        action: "run".into(),
        depends_on: depends_on.iter().map(|id| (*id).into()).collect(),
        trigger_rule: "all_success".into(),
        is_mapped: false,
        pool: "default_pool".into(),
        queue: "default".into(),
        retries: 3,
        infra_retries: 5,
    };
    DagDetail {
        dag: dag(dag_id),
        doc_md: String::new(),
        timetable: "trigger".into(),
        start_date: Some("2026-01-01T00:00:00.000Z".into()),
        end_date: None,
        catchup: "newest".into(),
        max_active_runs: 1,
        max_active_tasks: 8,
        dagrun_timeout_ms: None,
        fail_fast: false,
        params: vec![Param {
            name: "full_refresh".into(),
            default: json!(false),
            description: String::new(),
            schema: json!({"type": "boolean"}),
        }],
        tasks: vec![task("extract", &[]), task("load", &["extract"])],
        task_groups: Vec::new(),
        active_runs: 1,
    }
}

pub(crate) fn run_in(state: &str, counts: &[(&str, u32)]) -> Run {
    let finished = matches!(state, "success" | "failed" | "cancelled");
    Run {
        dag_id: "sales_daily".into(),
        run_id: RUN.into(),
        run_type: "manual".into(),
        state: state.into(),
        paused: false,
        logical_date: Some(at("05:10:00")),
        data_interval_start: None,
        data_interval_end: None,
        queued_at: at("05:10:00"),
        started_at: Some(at("05:10:01")),
        ended_at: finished.then(|| at("05:12:31")),
        version: 12,
        triggered_by: "anna".into(),
        reason: None,
        note: None,
        params: Map::new(),
        conf: Value::Null,
        task_counts: counts.iter().map(|(s, n)| ((*s).into(), *n)).collect::<BTreeMap<_, _>>(),
        last_event_seq: 7,
    }
}

pub(crate) fn task(task_id: &str, state: &str) -> TaskInstance {
    TaskInstance {
        dag_id: "sales_daily".into(),
        run_id: RUN.into(),
        task_id: task_id.into(),
        map_index: -1,
        map_label: None,
        state: state.into(),
        reason: None,
        try_number: 1,
        max_tries: 4,
        infra_used: 1,
        infra_retries: 5,
        attempt_count: 2,
        token: Some("3848290745427".into()),
        attempt_id: Some("0192".into()),
        worker: Some("w-3".into()),
        pool: "warehouse".into(),
        pool_slots: 2,
        queue: "default".into(),
        priority_weight: 10,
        trigger_rule: "all_success".into(),
        depends_on: vec!["extract".into()],
        since: Some(at("05:10:04")),
        started_at: Some(at("05:10:04")),
        ended_at: None,
        next_try_at: None,
    }
}

pub(crate) fn attempt(number: u32) -> Attempt {
    let lost = number == 1;
    Attempt {
        attempt_id: format!("01926f3e-0000-7000-8000-00000000000{number}"),
        dag_id: "sales_daily".into(),
        run_id: RUN.into(),
        task_id: "load".into(),
        map_index: -1,
        try_number: 1,
        attempt_number: number,
        token: (3_848_290_745_426_u64 + u64::from(number)).to_string(),
        why: if lost { "first" } else { "replaces" }.into(),
        replaces: (!lost).then_some(number - 1),
        state: if lost { "ended" } else { "running" }.into(),
        worker: Some("w-3".into()),
        host: Some("node-b".into()),
        containment: Some("pidns".into()),
        queued_at: at("05:10:00"),
        claimed_at: Some(at("05:10:01")),
        started_at: Some(at("05:10:02")),
        ended_at: lost.then(|| at("05:12:00")),
        outcome: lost.then(|| "lost".into()),
        reason: None,
        message: None,
        exit_code: None,
        signal: None,
        counted_as: lost.then(|| "infra".into()),
        evidence: lost.then(|| Evidence {
            kind: "expiry".into(),
            at: at("05:12:00"),
            job: Some("w-3".into()),
            last_heartbeat_at: Some(at("05:11:30")),
            lease_expires_at: Some(at("05:12:00")),
            declared_by: Some("s-2".into()),
            term: Some(17),
            detail: None,
        }),
        refused_writes: if lost { 3 } else { 0 },
        may_still_run: lost,
        lease_expires_at: None,
    }
}

pub(crate) fn event(seq: i64, task_id: Option<&str>, from: Option<&str>, to: &str) -> Event {
    Event {
        seq,
        at: at("05:10:02"),
        kind: if task_id.is_some() { "task_state" } else { "run_state" }.into(),
        dag_id: Some("sales_daily".into()),
        run_id: Some(RUN.into()),
        task_id: task_id.map(Into::into),
        map_index: task_id.map(|_| -1),
        token: None,
        actor: "scheduler".into(),
        from: from.map(Into::into),
        to: Some(to.into()),
        reason: None,
        evidence: None,
        detail: None,
    }
}

pub(crate) fn slot(day: u32) -> Slot {
    let date = |day: u32| format!("2026-09-{day:02}T03:00:00.000Z");
    Slot {
        due_at: date(day),
        logical_date: date(day),
        data_interval_start: date(day - 1),
        data_interval_end: date(day),
    }
}

pub(crate) fn log(texts: &[&str], cursor: &str, more: bool, ended: bool) -> LogPage {
    let line = |text: &&str| LogLine {
        at: at("05:10:03"),
        stream: "stdout".into(),
        text: (*text).into(),
        partial: false,
    };
    LogPage {
        lines: texts.iter().map(line).collect(),
        next_cursor: cursor.into(),
        more,
        ended,
        dropped_bytes: 0,
    }
}
