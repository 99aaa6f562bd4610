//! Logs, read and followed.

use crate::process::{Ran, fencepost};
use crate::sample::{attempt, log, run_in, task};
use crate::server::{Reply, Request, Server, ok, page};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run of one task with two attempts whose logs have two pages each.
fn answer(request: &Request) -> Reply {
    let path = request.path.as_str();
    if path.ends_with("/log") {
        let number = path.trim_end_matches("/log").chars().last().unwrap();
        return ok(if request.query.contains("cursor=") {
            log(&[&format!("{number} second")], "end", false, true)
        } else {
            log(&[&format!("{number} first")], "c1", true, false)
        });
    }
    match path {
        "/dags/sales_daily/runs" => page([run_in("running", &[])]),
        path if path.ends_with("/attempts") => page([attempt(1), attempt(2)]),
        path if path.ends_with("/tasks") && request.query.contains("task_id=load") => {
            page([task("load", "success")])
        }
        path if path.ends_with("/tasks") => {
            page([task("extract", "success"), task("load", "success")])
        }
        path if path.ends_with("/tasks/load") => ok(task("load", "success")),
        _ => ok(run_in("success", &[])),
    }
}

fn run(line: &str) -> (Ran, Vec<String>) {
    let server = Server::start(answer);
    let ran = fencepost(&server, line);
    (ran, server.lines().into_iter().filter(|line| line.contains("/log")).collect())
}

#[test]
fn the_newest_attempt_to_its_end() {
    let (ran, calls) = run("logs sales_daily @latest load");
    assert_eq!(ran.stdout, "2 first\n2 second\n", "{}", ran.stderr);
    assert_eq!(calls.len(), 2);
}

#[test]
fn an_attempt_by_number_and_by_token() {
    for which in ["1", "7-1", "3848290697217"] {
        let (ran, _) = run(&format!("logs sales_daily @latest load --attempt {which}"));
        let wanted = attempt(1).token == which || which == "1";
        assert_eq!(ran.code, if wanted { 0 } else { 4 }, "{which}: {}", ran.stderr);
    }
    let shown = attempt(1).token.parse::<u64>().unwrap();
    let short = format!("{}-{}", shown >> 39, shown & ((1 << 39) - 1));
    let (ran, _) = run(&format!("logs sales_daily @latest load --attempt {short}"));
    assert_eq!(ran.stdout, "1 first\n1 second\n", "{}", ran.stderr);
}

#[test]
fn a_whole_run_has_labels() {
    let (ran, _) = run("logs sales_daily @latest");
    insta::assert_snapshot!(ran.stdout, @"
    extract │ 2 first
    extract │ 2 second
    load │ 2 first
    load │ 2 second
    ");
}

#[test]
fn filters_go_to_the_server_and_ago_is_its_time() {
    let (_, calls) = run("logs sales_daily @latest load --tail 5 --since 10m --grep a|b --late");
    assert_eq!(
        calls[0].split_once('?').unwrap().1,
        "tail=5&since=2026-09-22T05:03:16.000Z&grep=a%7Cb&late=true"
    );
    assert!(!calls[1].contains("tail="), "{}", calls[1]);
}

#[test]
fn json_is_an_array_and_lines_when_following() {
    let (ran, _) = run("logs sales_daily @latest load -o json");
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list[1]["text"], "2 second");
    let (ran, _) = run("logs sales_daily @latest load -f -o json");
    let line: serde_json::Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(line["text"], "2 second");
}

#[test]
fn following_goes_on_over_a_replacement() {
    let looks = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |request| {
        let path = request.path.as_str();
        // The first attempt is all there is until its log has been read to the end.
        let replaced = looks.load(Ordering::SeqCst) >= 2;
        if path.ends_with("/attempts") {
            let newest = if replaced { vec![attempt(1), attempt(2)] } else { vec![attempt(1)] };
            return page(newest);
        }
        if path.ends_with("/tasks") {
            let state = if looks.load(Ordering::SeqCst) >= 4 { "success" } else { "running" };
            let mut load = task("load", state);
            load.attempt_count = if replaced { 2 } else { 1 };
            return page([load]);
        }
        if path.ends_with("/log") {
            looks.fetch_add(1, Ordering::SeqCst);
        }
        if path.contains("/runs/") && !path.contains("/tasks") {
            return ok(run_in("running", &[]));
        }
        answer(request)
    });
    let ran = fencepost(&server, "logs sales_daily @latest load -f");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for text in ["1 first", "1 second", "2 first", "2 second"] {
        assert_eq!(ran.stdout.matches(text).count(), 1, "{text} in {}", ran.stdout);
    }
}

#[test]
fn following_an_attempt_that_never_was_ends_with_the_run() {
    let (ran, _) = run("logs sales_daily @latest load -f --attempt 9");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let (ran, _) = run("logs sales_daily @latest load -f --attempt 1");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1 first\n1 second\n"));
}
