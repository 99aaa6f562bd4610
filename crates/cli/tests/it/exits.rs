//! How the process ends, and what it says then.

use crate::process::{Call, fencepost};
use crate::sample::{dag, run_in, task};
use crate::server::{Server, foreign, ok, page, problem, with_status};
use fencepost_api::problem::ProblemCode as P;
use fencepost_api::rest::{Health, HealthComponent};
use serde_json::json;

#[test]
fn problems_become_exit_codes() {
    for (code, exit) in [
        (P::ValidationFailed, 2),
        (P::NoSuchRoute, 4),
        (P::NoSuchRun, 4),
        (P::AlreadyTerminal, 5),
        (P::StaleFencingToken, 5),
        (P::Unauthenticated, 6),
        (P::Forbidden, 6),
        (P::Unavailable, 7),
        (P::Internal, 1),
    ] {
        let server = Server::start(move |_| problem(code, "a sentence about it"));
        let ran = fencepost(&server, "attempts show 7-1");
        assert_eq!(ran.code, exit, "{code:?}");
        assert!(ran.stderr.starts_with("error: a sentence about it\n"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn what_is_missing_has_a_near_name() {
    let server = Server::start(|request| match request.path.as_str() {
        "/dags" => page([dag("sales_daily"), dag("billing")]),
        "/dags/sales_daily/runs" => page([run_in("running", &[])]),
        path if path.ends_with("/tasks") => page([task("extract", "success")]),
        path if path.contains("/tasks/") => problem(P::NoSuchTask, "no task `extrct`"),
        _ => problem(P::NoSuchDag, "there is no such DAG"),
    });
    let ran = fencepost(&server, "dags show sales_dialy");
    assert_eq!(ran.code, 4);
    insta::assert_snapshot!(ran.stderr, @"
    error: there is no such DAG
      did you mean `sales_daily`?
    ");
    let ran = fencepost(&server, "runs list warehouse");
    insta::assert_snapshot!(ran.stderr, @"
    error: there is no such DAG
      see  fencepost dags list
    ");
    let ran = fencepost(&server, "tasks show sales_daily @latest extrct");
    insta::assert_snapshot!(ran.stderr, @"
    error: no task `extrct`
      did you mean `extract`?
    ");
}

#[test]
fn runs_are_found_by_beginnings_and_latest() {
    let named = |run_id: &str| {
        let mut run = run_in("running", &[]);
        run.run_id = run_id.into();
        run
    };
    let server = Server::start(move |request| match request.query.as_str() {
        _ if request.path.ends_with("/runs/a") => problem(P::NoSuchRun, "no"),
        _ if request.path.contains("/runs/") => ok(named(request.path.rsplit('/').next().unwrap())),
        query if query.contains("run_id_prefix=ab") => page([named("abc"), named("ab")]),
        query if query.contains("run_id_prefix=a") => page([named("abc"), named("abd")]),
        query if query.contains("run_id_prefix=x") => page([named("xyz")]),
        query if query.contains("run_id_prefix=") => page(json!([])),
        _ => page([named("newest")]),
    });
    for (text, code, words) in [
        ("ab", 0, "ab\n"),
        ("x", 0, "xyz\n"),
        ("@latest", 0, "newest\n"),
        ("a", 2, "several runs of `d` begin with `a`"),
        ("q", 4, "`d` has no run `q`"),
    ] {
        let ran = fencepost(&server, &format!("runs show d {text} -o name"));
        assert_eq!(ran.code, code, "{text}: {}", ran.stderr);
        assert!(ran.stdout == words || ran.stderr.contains(words), "{text}: {ran:?}");
    }
}

#[test]
fn without_a_server_the_way_to_one_is_shown() {
    let ran = Call::new("dags list").run();
    assert_eq!(ran.code, 7);
    assert!(
        ran.stderr.contains("no server runs here") && ran.stderr.contains("fencepost standalone")
    );
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = Call::new("dags list").file("server", &format!("http://{gone}\n")).run();
    assert_eq!(ran.code, 7);
    assert!(ran.stderr.contains("cannot be reached"), "{}", ran.stderr);
    assert!(ran.stderr.contains("/server\n"), "{}", ran.stderr);
}

#[test]
fn something_else_behind_the_address_is_named_so() {
    let server = Server::start(|_| foreign(200, "<html>"));
    let ran = fencepost(&server, "dags list");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not a fencepost server"), "{}", ran.stderr);
    let server = Server::start(|_| foreign(404, "<html>"));
    assert_eq!(fencepost(&server, "dags list").code, 4);
    let server = Server::start(|_| ok(json!({"items": [{"dag_id": 3}], "next_cursor": null})));
    let ran = fencepost(&server, "dags list");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not understood"), "{}", ran.stderr);
}

#[test]
fn usage_errors_are_two_and_help_is_none() {
    for (line, code) in
        [("dags", 2), ("dags lst", 2), ("--help", 0), ("dags trigger --help", 0), ("-V", 0)]
    {
        let ran = Call::new(line).run();
        assert_eq!(ran.code, code, "{line}");
        assert_eq!(ran.stdout.is_empty(), code != 0, "{line}");
    }
}

#[test]
fn health_judges_status_role_and_age() {
    let body = |status: &str| Health {
        status: status.into(),
        version: "0.1.0".into(),
        components: vec![HealthComponent {
            role: "scheduler".into(),
            name: "s-1".into(),
            status: "ok".into(),
            last_turn_at: None,
            age_ms: Some(12_000),
            detail: None,
        }],
    };
    let well = Server::start(move |_| ok(body("ok")));
    let ill = Server::start(move |_| with_status(503, body("down")));
    for (server, line, code) in [
        (&well, "health", 0),
        (&well, "health --role scheduler --max-age 30s", 0),
        (&well, "health --role scheduler --max-age 10s", 1),
        (&well, "health --role triggerer", 4),
        (&ill, "health", 1),
    ] {
        let ran = fencepost(server, line);
        assert_eq!(ran.code, code, "{line}: {}", ran.stderr);
    }
    insta::assert_snapshot!(fencepost(&well, "health").stdout, @"
    ROLE       NAME  STATUS  LAST TURN  DETAIL
    scheduler  s-1   ok      12.0s      –
    ");
}
