//! Following runs.

use crate::process::{Call, fencepost};
use crate::sample::{RUN, event, run_in};
use crate::server::{Server, foreign, ok, page};
use fencepost_api::rest::Run;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server whose run goes through these states, one for each look at it; the last one stays.
fn server(states: Vec<Run>) -> Server {
    let looks = Arc::new(AtomicUsize::new(0));
    Server::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("POST", _) => ok(run_in("queued", &[])),
        (_, "/dags/sales_daily/runs") => page([run_in("running", &[])]),
        (_, "/events") if request.query.contains("after=0") => page([
            event(1, None, Some("queued"), "running"),
            event(2, Some("load"), Some("queued"), "running"),
        ]),
        (_, "/events") => page(json!([])),
        _ => {
            let look = looks.fetch_add(1, Ordering::SeqCst);
            ok(&states[look.min(states.len() - 1)])
        }
    })
}

#[test]
fn the_exit_code_says_how_the_run_ended() {
    for (run, code) in [
        (run_in("success", &[("success", 2)]), 0),
        (run_in("failed", &[("failed", 1)]), 3),
        (run_in("cancelled", &[]), 3),
        (run_in("running", &[("held", 1), ("none", 2)]), 9),
    ] {
        let server = server(vec![run_in("running", &[("running", 1)]), run.clone()]);
        let ran = fencepost(&server, "dags trigger sales_daily --wait -o name");
        assert_eq!(ran.code, code, "{}: {}", run.state, ran.stderr);
        assert_eq!(ran.stdout, format!("{RUN}\n"));
    }
}

#[test]
fn a_hold_beside_something_that_goes_on_is_waited_out() {
    let server = server(vec![
        run_in("running", &[("held", 1)]),
        run_in("running", &[("held", 1), ("running", 1)]),
        run_in("success", &[]),
    ]);
    assert_eq!(fencepost(&server, "runs watch sales_daily @latest").code, 0);
}

#[test]
fn time_runs_out_with_the_way_to_go_on() {
    let server = server(vec![run_in("running", &[("running", 1)])]);
    let ran = fencepost(&server, "runs watch sales_daily @latest --timeout 300ms");
    assert_eq!(ran.code, 8);
    assert!(ran.stderr.contains("go on:  fencepost runs watch"), "{}", ran.stderr);
}

#[test]
fn what_happens_is_a_line_each() {
    let server = server(vec![run_in("success", &[("success", 2)])]);
    let ran = fencepost(&server, "runs watch sales_daily @latest");
    insta::assert_snapshot!(ran.stdout, @"
    05:10:02  ▶ running          run
    05:10:02  ▶ running          load
    ");
    insta::assert_snapshot!(ran.stderr, @"✔ manual__2026-09-22T05:10:00.000Z_abcd success  2✔");
    let ran = fencepost(&server, "runs watch sales_daily @latest -o json");
    let first: serde_json::Value =
        serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 1);
}

#[test]
fn a_server_that_comes_back_elsewhere_is_found_again() {
    let second = server(vec![run_in("success", &[("success", 1)])]);
    let address = second.address.clone();
    let call = Call::new("runs watch sales_daily @latest");
    let file = call.home().join("server");
    // The first one is on its way down when it is asked for events; the second has its place.
    let first = Server::start(move |request| {
        if request.path.ends_with("/runs") {
            return page([run_in("running", &[])]);
        }
        std::fs::write(&file, &address).unwrap();
        foreign(502, "on its way down")
    });
    let ran = call.file("server", &first.address).run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("waiting for it"), "{}", ran.stderr);
    assert!(!second.lines().is_empty());
}

#[test]
fn an_interrupt_is_130() {
    let server = server(vec![run_in("running", &[("running", 1)])]);
    let call = Call::new("runs watch sales_daily @latest").env("FENCEPOST_SERVER", &server.address);
    let (mut child, _home) = call.spawn();
    server.wait_for(&format!("/runs/{RUN}"));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
