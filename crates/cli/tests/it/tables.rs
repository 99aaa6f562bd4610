//! What people see.

use crate::process::{Call, fencepost};
use crate::sample::{RUN, at, attempt, dag, detail, event, run_in, slot, task};
use crate::server::{Server, ok, page};
use fencepost_api::rest::{Diagnostic, Doctor, ImportError, Pool, Token, Violation};
use serde_json::json;

/// A server with one run of one DAG.
fn server() -> Server {
    Server::start(|request| match request.path.as_str() {
        "/dags" => page([dag("sales_daily")]),
        "/dags/sales_daily" => ok(detail("sales_daily")),
        "/dags/sales_daily/next" => page([slot(23), slot(24)]),
        "/dags/sales_daily/runs" => page([run_in("running", &[("success", 1), ("running", 1)])]),
        path if path.ends_with("/tasks") => {
            page([task("extract", "success"), task("load", "running")])
        }
        path if path.ends_with("/tasks/load") => ok(task("load", "held")),
        path if path.ends_with("/attempts") => page([attempt(1), attempt(2)]),
        path if path.starts_with("/attempts/") => ok(attempt(1)),
        "/events" => page([
            event(1, None, Some("queued"), "running"),
            event(2, Some("load"), None, "queued"),
        ]),
        "/pools" => page([Pool {
            name: "warehouse".into(),
            slots: 8,
            description: "connections".into(),
            used_slots: 8,
            waiting: 3,
        }]),
        "/tokens" => page([Token {
            id: "t1".into(),
            name: Some("ci".into()),
            role: "operator".into(),
            created_at: at("04:00:00"),
            expires_at: None,
            last_used_at: Some(at("05:13:00")),
            revoked_at: None,
        }]),
        "/import-errors" => page([ImportError {
            file: "dags/sales.yaml".into(),
            dag_id: None,
            at: at("05:00:00"),
            diagnostics: vec![Diagnostic {
                line: 41,
                column: 5,
                severity: "error".into(),
                code: "unknown-key".into(),
                message: "unknown key `need`".into(),
                hint: Some("did you mean `depends_on`?".into()),
            }],
        }]),
        "/doctor" => ok(Doctor {
            at: at("05:13:00"),
            runs_checked: 12,
            attempts_checked: 90,
            violations: vec![Violation {
                invariant: "I24".into(),
                sentence: "no ghost".into(),
                subject: format!("sales_daily/{RUN}/load"),
                detail: "queued, and no job owns it".into(),
            }],
            remarks: vec![],
        }),
        _ => ok(json!({})),
    })
}

fn out(line: &str) -> String {
    fencepost(&server(), line).stdout
}

#[test]
fn dags() {
    insta::assert_snapshot!(out("dags list"), @"
    DAG          STATE   SCHEDULE   NEXT RUN   LAST RUNS  TAGS            PROBLEM
    sales_daily  active  0 5 * * *  in 21h46m  ✔✘▶        sales,critical  –
    ");
    insta::assert_snapshot!(out("dags list -o wide"), @"
    DAG          STATE   SCHEDULE   NEXT RUN   LAST RUNS  TAGS            PROBLEM  OWNER  TIMEZONE       VERSION  FILE
    sales_daily  active  0 5 * * *  in 21h46m  ✔✘▶        sales,critical  –        data   Europe/Berlin  v12      sales.yaml
    ");
    insta::assert_snapshot!(out("dags show sales_daily"), @"
    DAG:           sales_daily
    State:         active
    Description:   Load orders
    Owner:         data
    Tags:          sales, critical
    Schedule:      0 5 * * *
    Timezone:      Europe/Berlin
    Catchup:       newest
    Start date:    2026-01-01 00:00:00
    End date:      –
    Next run:      2026-09-23 03:00:00
    Active runs:   1 of 1
    Active tasks:  at most 8
    Version:       v12
    File:          sales.yaml
    Problem:       –
    Param:         full_refresh = false
    Task:          extract (run)
    Task:          load (run)  after extract
    Run:           manual__2026-09-22T05:10:00.000Z_abcd  3m15s
    Run:           manual__2026-09-22T05:10:00.000Z_abcd  3m15s
    Run:           manual__2026-09-22T05:10:00.000Z_abcd  3m15s
    ");
    insta::assert_snapshot!(out("dags next sales_daily"), @"
    DUE (UTC)            LOGICAL DATE         DATA INTERVAL                               IN
    2026-09-23 03:00:00  2026-09-23 03:00:00  2026-09-22 03:00:00 .. 2026-09-23 03:00:00  21h46m
    2026-09-24 03:00:00  2026-09-24 03:00:00  2026-09-23 03:00:00 .. 2026-09-24 03:00:00  1d21h
    ");
    let ran = fencepost(&server(), "dags graph sales_daily");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stdout, @r#"
    digraph "sales_daily" {
      rankdir=LR; node [shape=box]
      "extract"
      "load"
      "extract" -> "load"
    }
    "#);
    insta::assert_snapshot!(out("dags graph sales_daily --format mermaid"), @r#"
    flowchart LR
      t0["extract"]
      t1["load"]
      t0 --> t1
    "#);
}

#[test]
fn import_errors_look_as_validate_says_them() {
    let ran = fencepost(&server(), "dags errors");
    insta::assert_snapshot!(ran.stdout, @"dags/sales.yaml:41:5  error  unknown key `need`  did you mean `depends_on`?  [unknown-key]");
    assert_eq!(ran.code, 2);
}

#[test]
fn runs() {
    insta::assert_snapshot!(out("runs list sales_daily"), @"
    DAG          RUN                                    STATE    TASKS  STARTED  DURATION
    sales_daily  manual__2026-09-22T05:10:00.000Z_abcd  running  1✔ 1▶  3m15s    3m15s
    ");
    insta::assert_snapshot!(out("runs list sales_daily -o wide"), @"
    DAG          RUN                                    STATE    TASKS  STARTED  DURATION  TYPE    LOGICAL DATE         VERSION  BY    NOTE
    sales_daily  manual__2026-09-22T05:10:00.000Z_abcd  running  1✔ 1▶  3m15s    3m15s     manual  2026-09-22 05:10:00  v12      anna  –
    ");
}

#[test]
fn tasks() {
    insta::assert_snapshot!(out("tasks list sales_daily @latest"), @"
    TASK     STATE    TRY  ATTEMPTS  STARTED   DURATION  REASON
    extract  success  1/4  2         05:10:04  3m12s     –
    load     running  1/4  2         05:10:04  3m12s     –
    ");
    insta::assert_snapshot!(out("tasks show sales_daily @latest load"), @"
    Task:           load
    DAG:            sales_daily
    Run:            manual__2026-09-22T05:10:00.000Z_abcd
    State:          held
    Reason:         –
    Since:          05:10:04
    Try:            1 of 4
    Infra retries:  1 of 5 used
    Attempts:       2
    Token:          7-48211
    Worker:         w-3
    Started:        2026-09-22 05:10:04
    Ended:          –
    Duration:       3m12s
    After:          extract
    Trigger rule:   all_success
    Pool:           warehouse (2 slots)
    Queue:          default
    Priority:       10
    ");
}

#[test]
fn attempts() {
    let ran = fencepost(&server(), "tasks attempts sales_daily @latest load");
    insta::assert_snapshot!(ran.stdout, @"
    TRY  ATTEMPT  TOKEN    WHY         WORKER      STARTED   ENDED     OUTCOME  EXIT  COUNTED
    1    1        7-48211  first       w-3@node-b  05:10:02  05:12:00  lost     ?     infra
    1    2        7-48212  replaces 1  w-3@node-b  05:10:02  –         running  –     –
    ");
    insta::assert_snapshot!(ran.stderr, @"⛔ 3 late writes of attempt 1 were refused:  fencepost attempts events 01926f3e-0000-7000-8000-000000000001");
    insta::assert_snapshot!(out("attempts show 7-1"), @"
    Attempt:      01926f3e-0000-7000-8000-000000000001
    Token:        7-48211
    DAG:          sales_daily
    Run:          manual__2026-09-22T05:10:00.000Z_abcd
    Task:         load
    Number:       1 (try 1)
    Why:          first
    State:        ended
    Outcome:      lost
    Exit:         ?
    Message:      –
    Counted as:   infra
    Worker:       w-3@node-b
    Containment:  pidns
    Queued:       2026-09-22 05:10:00
    Claimed:      2026-09-22 05:10:01
    Started:      2026-09-22 05:10:02
    Ended:        2026-09-22 05:12:00
    Duration:     1m58s
    Lease until:  –
    Refused:      3 late writes: fencepost attempts events
    Warning:      its processes may still be running
    Evidence:     expiry at 2026-09-22 05:12:00 by s-2, term 17
      job:        w-3
      last beat:  2026-09-22 05:11:30
      lease end:  2026-09-22 05:12:00
    ");
    insta::assert_snapshot!(out("ps"), @"
    DAG          RUN                                    TASK  STATE    TRY  TOKEN    WORKER      RUNNING
    sales_daily  manual__2026-09-22T05:10:00.000Z_abcd  load  ended    1    7-48211  w-3@node-b  1m58s
    sales_daily  manual__2026-09-22T05:10:00.000Z_abcd  load  running  1    7-48212  w-3@node-b  3m14s
    ");
}

#[test]
fn attempts_of_a_mapped_task_are_told_apart() {
    let server = Server::start(|request| {
        if request.path.ends_with("/runs") {
            return page([run_in("running", &[])]);
        }
        let of = |index: i32, number: u32| {
            let mut attempt = attempt(number);
            attempt.map_index = index;
            attempt
        };
        page([of(0, 1), of(1, 2)])
    });
    let ran = fencepost(&server, "tasks attempts sales_daily @latest load");
    insta::assert_snapshot!(ran.stdout, @"
    TASK     TRY  ATTEMPT  TOKEN    WHY         WORKER      STARTED   ENDED     OUTCOME  EXIT  COUNTED
    load[0]  1    1        7-48211  first       w-3@node-b  05:10:02  05:12:00  lost     ?     infra
    load[1]  1    2        7-48212  replaces 1  w-3@node-b  05:10:02  –         running  –     –
    ");
}

#[test]
fn events_and_the_rest() {
    insta::assert_snapshot!(out("events sales_daily @latest"), @"
    AT        KIND        TASK  TOKEN  CHANGE            REASON  ACTOR
    05:10:02  run_state   –     –      queued → running  –       scheduler
    05:10:02  task_state  load  –      queued            –       scheduler
    ");
    insta::assert_snapshot!(out("pools list"), @"
    POOL       USED  SLOTS  WAITING  DESCRIPTION
    warehouse  8     8      3        connections
    ");
    insta::assert_snapshot!(out("tokens list"), @"
    ID  NAME  ROLE      STATE  CREATED              EXPIRES  LAST USED
    t1  ci    operator  valid  2026-09-22 04:00:00  never    16s
    ");
    let ran = fencepost(&server(), "doctor");
    insta::assert_snapshot!(ran.stdout, @"
    12 runs, 90 attempts checked
    ✘ I24  no ghost  sales_daily/manual__2026-09-22T05:10:00.000Z_abcd/load
          queued, and no job owns it
    1 violation
    ");
    assert_eq!(ran.code, 1);
}

#[test]
fn colours_and_icons_come_together() {
    let call = |env: &[(&str, &str)]| {
        let server = server();
        let call =
            Call::new("tasks list sales_daily @latest").env("FENCEPOST_SERVER", &server.address);
        env.iter().fold(call, |call, (name, value)| call.env(name, value)).run().stdout
    };
    let lively = call(&[("CLICOLOR_FORCE", "1")]);
    assert!(lively.contains("\u{1b}[38;5;36m✔ success\u{1b}[0m"), "{lively}");
    assert!(!call(&[]).contains('\u{1b}'));
    assert!(!call(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}
