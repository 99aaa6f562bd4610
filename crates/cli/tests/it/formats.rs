//! Data for programs.

use crate::process::fencepost;
use crate::sample::{dag, run_in};
use crate::server::{Server, ok, page};
use serde_json::{Value, json};

#[test]
fn json_is_the_whole_list_over_all_pages() {
    let server = Server::start(|request| {
        let next = if request.query.contains("cursor=c1") { Value::Null } else { json!("c1") };
        ok(json!({"items": [dag("a")], "next_cursor": next, "total": 2}))
    });
    let ran = fencepost(&server, "dags list -o json");
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    let ran = fencepost(&server, "dags list -o json --limit 1");
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(server.lines()[2], "GET /dags?limit=1");
}

#[test]
fn a_list_that_leads_round_and_round_ends() {
    let server = Server::start(|_| ok(json!({"items": [], "next_cursor": "again"})));
    assert_eq!(fencepost(&server, "dags list -o json").stdout, "[]\n");
    let server = Server::start(|_| ok(json!({"items": [dag("a")], "next_cursor": "again"})));
    assert_eq!(fencepost(&server, "dags list -o name").stdout, "a\na\n");
}

#[test]
fn fields_of_a_newer_server_pass_through() {
    let server = Server::start(|_| {
        let mut item = serde_json::to_value(dag("a")).unwrap();
        item["new_field"] = json!({"x": 1});
        page([item])
    });
    let json: Value =
        serde_json::from_str(&fencepost(&server, "dags list -o json").stdout).unwrap();
    assert_eq!(json[0]["new_field"]["x"], 1);
    assert!(fencepost(&server, "dags list -o yaml").stdout.contains("  new_field:\n    x: 1\n"));
    assert_eq!(fencepost(&server, "dags list -o name").stdout, "a\n");
    assert_eq!(fencepost(&server, "dags list").code, 0);
    assert_eq!(fencepost(&server, "dags list -o sarif").code, 2);
}

#[test]
fn an_empty_list_is_an_empty_array_and_no_header() {
    let server = Server::start(|_| page(json!([])));
    assert_eq!(fencepost(&server, "dags list -o json").stdout, "[]\n");
    let ran = fencepost(&server, "dags list");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "nothing to show\n"));
    assert_eq!(fencepost(&server, "dags list -q").stderr, "");
}

#[test]
fn show_is_an_object() {
    let server = Server::start(|request| match request.path.as_str() {
        "/dags/d/runs" => page([run_in("success", &[])]),
        _ => ok(run_in("success", &[])),
    });
    let ran = fencepost(&server, "runs show d @latest -o json");
    let run: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(run["state"], "success");
    assert_eq!(run["logical_date"], "2026-09-22T05:10:00.000Z");
    assert_eq!(run["paused"], false);
}

#[test]
fn filters_reach_the_server() {
    let server = Server::start(|_| page(json!([])));
    for (line, want) in [
        (
            "runs list d --state failed,running --from 2026-09-01",
            "GET /dags/d/runs?limit=1000&state=failed%2Crunning&from=2026-09-01T00:00:00.000Z",
        ),
        ("runs list --type manual", "GET /runs?limit=1000&run_type=manual"),
        (
            "dags list --tag x --active --all",
            "GET /dags?limit=1000&tag=x&is_paused=false&inactive=true",
        ),
        (
            "ps --dag d",
            "GET /attempts?limit=1000&state=claimed%2Crunning%2Cstopping%2Clost_open&dag_id=d",
        ),
    ] {
        assert_eq!(fencepost(&server, line).code, 0, "{line}");
        assert_eq!(server.lines().pop().unwrap(), want);
    }
}
