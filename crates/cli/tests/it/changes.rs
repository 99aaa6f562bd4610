//! Verbs that change something.

use crate::process::{Call, Ran, fencepost};
use crate::sample::{RUN, attempt, detail, run_in, task};
use crate::server::{Request, Server, nothing, ok, page, problem};
use fencepost_api::problem::ProblemCode as P;
use fencepost_api::rest::{Change, ChangePlan, PauseEffect, Pool, TaskInstance, TokenCreated};
use serde_json::{Value, json};

fn change(task_id: &str, from: &str, to: Option<&str>) -> Change {
    Change {
        run_id: RUN.into(),
        task_id: task_id.into(),
        map_index: -1,
        from: from.into(),
        to: to.map(Into::into),
        new_key: from == "success" && to.is_some(),
        reason: to.is_none().then(|| "skipped, marked success by anna".into()),
    }
}

fn plan(request: &Request) -> ChangePlan {
    ChangePlan {
        dag_id: "sales_daily".into(),
        run_id: RUN.into(),
        dry_run: request.query.contains("dry_run=true"),
        version: 12,
        latest_version: 13,
        changes: vec![
            change("load", "failed", Some("none")),
            change("dbt", "success", Some("none")),
            change("charge", "success", None),
        ],
    }
}

fn server() -> Server {
    Server::start(|request| {
        let pool = Pool {
            name: "p".into(),
            slots: 4,
            description: String::new(),
            used_slots: 0,
            waiting: 0,
        };
        match (request.method.as_str(), request.path.as_str()) {
            (_, "/dags/sales_daily/runs") if request.method == "GET" => {
                page([run_in("running", &[("running", 2), ("none", 1)])])
            }
            ("POST", path) if path.ends_with(":clear") || path.ends_with(":mark") => {
                ok(plan(request))
            }
            ("POST", path) if path.contains("/runs/") => ok(run_in("cancelled", &[])),
            ("POST", path) if path.ends_with("/runs") => match request.body["run_id"].as_str() {
                Some("there") => problem(P::RunExists, "run `there` exists"),
                _ => ok(run_in("queued", &[])),
            },
            ("PATCH", "/dags/sales_daily") => ok(PauseEffect {
                dag_id: "sales_daily".into(),
                is_paused: request.body["is_paused"] == true,
                unchanged: false,
                due_runs: 1,
                first_logical_date: Some("2026-09-22T03:00:00.000Z".into()),
                last_logical_date: Some("2026-09-22T03:00:00.000Z".into()),
            }),
            ("GET", path) if path == "/held" || path.ends_with("/tasks") => {
                let held = TaskInstance {
                    reason: Some("awaiting_person".into()),
                    attempt_id: Some(attempt(1).attempt_id),
                    ..task("charge", "held")
                };
                page([held])
            }
            ("POST", path) if path.starts_with("/held/") => ok(attempt(1)),
            ("DELETE", _) => nothing(),
            (_, path) if path.starts_with("/attempts/") => ok(attempt(1)),
            (_, "/pools/p") => ok(pool),
            (_, path) if path.starts_with("/pools/") => problem(P::NoSuchPool, "no such pool"),
            ("POST", "/tokens") => ok(TokenCreated {
                id: "t1".into(),
                token: "secret".into(),
                role: "admin".into(),
                name: None,
                expires_at: None,
            }),
            ("GET", "/dags/sales_daily") => ok(detail("sales_daily")),
            _ => ok(run_in("running", &[("running", 2)])),
        }
    })
}

/// Runs it; the requests that change something.
fn writes(line: &str) -> (Ran, Vec<Request>) {
    let server = server();
    let ran = fencepost(&server, line);
    let writes = server.requests().into_iter().filter(|r| r.method != "GET").collect();
    (ran, writes)
}

#[test]
fn clear_previews_then_changes() {
    let (ran, writes) =
        writes("tasks clear sales_daily @latest load --downstream --new-keys --reason x");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let queries: Vec<&str> = writes.iter().map(|w| w.query.as_str()).collect();
    assert_eq!(queries, ["dry_run=true", "dry_run=false"]);
    assert_eq!(writes[1].body["tasks"], json!(["load"]));
    assert_eq!(
        (&writes[1].body["downstream"], &writes[1].body["new_keys"]),
        (&json!(true), &json!(true))
    );
    insta::assert_snapshot!(ran.stderr, @"
    clear 2 task instances of sales_daily manual__2026-09-22T05:10:00.000Z_abcd (the run's own v12; the newest is v13; old attempts and logs are kept)
      load: failed → none
      dbt: success → none  new idempotency key
      charge: success is kept  (skipped, marked success by anna)
    done
    ");
}

/// As data it is what the verb is about; for people a sentence.
#[test]
fn a_dry_run_says_as_data_what_it_is_about() {
    for (line, key, value) in [
        ("runs cancel sales_daily @latest", "dag_id", json!("sales_daily")),
        ("runs pause sales_daily @latest", "state", json!("running")),
        ("runs delete sales_daily @latest", "dag_id", json!("sales_daily")),
        ("runs note sales_daily @latest text", "note", json!("text")),
        ("pools set new 3", "slots", json!(3)),
        ("pools delete p", "name", json!("p")),
        ("tokens create --role admin", "role", json!("admin")),
        ("tokens revoke t1", "id", json!("t1")),
    ] {
        let (ran, sent) = writes(&format!("{line} --dry-run -o json"));
        assert_eq!((ran.code, sent.len()), (0, 0), "{line}: {}", ran.stderr);
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(said[key], value, "{line}: {said:#}");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let (ran, sent) = writes("tasks clear sales_daily @latest load --dry-run");
    assert_eq!(sent.iter().filter(|w| w.query != "dry_run=true").count(), 0);
    insta::assert_snapshot!(ran.stdout, @"
    TASK    NOW      THEN  KEY   REASON
    load    failed   none  kept  –
    dbt     success  none  new   –
    charge  success  kept  –     skipped, marked success by anna
    ");
    for line in [
        "tasks mark sales_daily @latest load --as success --dry-run -o json",
        "runs clear sales_daily @latest --only-failed --dry-run",
        "runs cancel sales_daily @latest --dry-run",
        "runs delete sales_daily @latest --dry-run",
        "dags unpause sales_daily --dry-run",
        "dags trigger sales_daily -p full_refresh=true --dry-run",
        "attempts kill 7-1 --dry-run",
        "pools set new 3 --dry-run",
        "pools delete p --dry-run",
        "tokens revoke t1 --dry-run",
        "tokens create --role admin --dry-run",
        "runs note sales_daily @latest text --dry-run",
        "runs pause sales_daily @latest --dry-run",
        "dags pause sales_daily --dry-run",
    ] {
        let (ran, sent) = writes(line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        assert!(sent.iter().all(|w| w.query == "dry_run=true"), "{line}: {sent:?}");
        assert_ne!(ran.stdout, "", "{line}");
    }
}

#[test]
fn trigger_prints_the_id_and_sends_typed_params() {
    let (ran, sent) = writes(
        "dags trigger sales_daily -p full_refresh=true --logical-date none --conf {\"a\":1} -o name",
    );
    assert_eq!(ran.stdout, format!("{RUN}\n"));
    let body = &sent[0].body;
    assert_eq!(body["params"], json!({"full_refresh": true}));
    assert_eq!((&body["logical_date"], &body["conf"]), (&json!("none"), &json!({"a": 1})));
    assert_eq!(sent[0].header("idempotency-key").map(str::len), Some(32));
    let (ran, sent) = writes("dags trigger sales_daily -p full_refersh=true");
    assert_eq!((ran.code, sent.len()), (2, 0));
    assert!(ran.stderr.contains("did you mean `full_refresh`?"), "{}", ran.stderr);
    let (ran, _) = writes("dags trigger sales_daily -p full_refresh=maybe");
    assert!(ran.code == 2 && ran.stderr.contains("must be boolean"), "{}", ran.stderr);
}

#[test]
fn an_existing_run_is_a_conflict_unless_it_may_be_there() {
    let (ran, _) = writes("dags trigger sales_daily --run-id there");
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("--if-not-exists"), "{}", ran.stderr);
    let (ran, _) = writes("dags trigger sales_daily --run-id there --if-not-exists -o name");
    assert_eq!((ran.code, ran.stdout), (0, format!("{RUN}\n")));
}

#[test]
fn stopping_needs_no_terminal_and_keeps_the_reason() {
    for (line, path) in [
        (
            "runs cancel sales_daily @latest --reason bad",
            format!("/dags/sales_daily/runs/{RUN}:cancel"),
        ),
        (
            "runs kill sales_daily @latest --reason bad --yes",
            format!("/dags/sales_daily/runs/{RUN}:kill"),
        ),
        (
            "runs pause sales_daily @latest --reason bad",
            format!("/dags/sales_daily/runs/{RUN}:pause"),
        ),
        (
            "attempts confirm-dead 7-1 --reason bad",
            format!("/attempts/{}:confirm-dead", attempt(1).attempt_id),
        ),
    ] {
        let (ran, sent) = writes(line);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!((&sent[0].path, &sent[0].body["reason"]), (&path, &json!("bad")));
    }
}

#[test]
fn what_is_held_is_decided_by_the_attempt_that_was_seen() {
    let line = "held resolve sales_daily @latest charge --as success --reason paid";
    let (ran, sent) = writes(&format!("{line} --yes"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(sent[0].path, format!("/held/{}:resolve", attempt(1).attempt_id));
    let body = json!({"as": "success", "confirm_dead": false, "reason": "paid"});
    assert_eq!(sent[0].body, body);
    let (ran, sent) = writes(&format!("{line} --dry-run"));
    assert_eq!((ran.code, sent.len()), (0, 0));
    assert!(ran.stderr.contains("charge of sales_daily"), "{}", ran.stderr);
    let (ran, _) = writes("held resolve sales_daily @latest charge --as perhaps --yes");
    assert_eq!(ran.code, 2);
    let (ran, _) = writes("held list -o json");
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(listed[0]["reason"], "awaiting_person");
}

#[test]
fn unpause_says_what_starts() {
    let (ran, sent) = writes("dags unpause sales_daily");
    assert_eq!(sent.len(), 2);
    assert_eq!(
        ran.stderr,
        "sales_daily is active, and one run starts at once: 2026-09-22T03:00:00.000Z\n"
    );
}

#[test]
fn a_new_token_stands_alone_on_stdout() {
    let (ran, sent) = writes("tokens create --role admin --name ci --expires 90d");
    assert_eq!(ran.stdout, "secret\n");
    assert_eq!(sent[0].body, json!({"role": "admin", "name": "ci", "expires_in_secs": 7_776_000}));
    let (ran, _) = writes("tokens create --role admin -o json");
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["token"], "secret");
}

#[test]
fn a_run_id_from_a_user_cannot_leave_its_place_in_the_address() {
    let server = server();
    let call =
        Call::of(&["dags", "show", "../tokens?x#y"]).env("FENCEPOST_SERVER", &server.address);
    call.run();
    assert_eq!(server.lines()[0], "GET /dags/..%2Ftokens%3Fx%23y");
}
