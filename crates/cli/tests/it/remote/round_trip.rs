//! From a trigger to the end of a run, over HTTP.

use super::installation::{Installation, wait_for};
use crate::standalone::world::{assert_once, ledger_task};

fn ten_tasks(ledger: &std::path::Path, seconds: &str) -> String {
    let mut yaml = String::from("dag_id: ten\ntasks:\n");
    for n in 0..10 {
        yaml += &format!("  t{n}:\n");
        if n > 4 {
            yaml += &format!("    depends_on: [t{}]\n", n - 5);
        }
        yaml += &ledger_task(ledger, seconds);
    }
    yaml
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_carried_out_by_a_worker_that_knows_only_an_address() {
    let own = Installation::new().await;
    own.load("ten.yaml", &ten_tasks(&own.path("ledger"), "0.1")).await;
    let worker = own.worker("w-1");
    let run = own.trigger("ten").await;
    own.wait_run("ten", &run, "success").await;
    assert_once(&own.ledger(), 10);
    assert_eq!(worker.stop().await, Vec::<String>::new());
}

/// Killed in the middle and ended in order, under load, twice each: nothing is lost or run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_and_goes_loses_and_reruns_nothing() {
    let mut own = Installation::new().await;
    own.load("ten.yaml", &ten_tasks(&own.path("ledger"), "0.6")).await;
    let worker = own.worker("w-1");
    let run = own.trigger("ten").await;
    for round in 0..4 {
        let seen = own.ledger().len();
        wait_for("something to begin or end", async || {
            own.ledger().len() > seen || own.run_state("ten", &run).await == "success"
        })
        .await;
        if round % 2 == 0 {
            own.kill_server().await;
        } else {
            own.stop_server().await;
        }
        own.serve().await;
    }
    own.wait_run("ten", &run, "success").await;
    assert_once(&own.ledger(), 10);
    assert_eq!(worker.stop().await, Vec::<String>::new());
}

/// The worker restarts while its tasks run: its successor in the same home goes on with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_restarts_goes_on_with_what_runs() {
    let own = Installation::new().await;
    let task = ledger_task(&own.path("ledger"), "3");
    own.load("one.yaml", &format!("dag_id: one\ntasks:\n  t:\n{task}")).await;
    let worker = own.worker("w-1");
    let run = own.trigger("one").await;
    wait_for("the task to begin", async || own.ledger().len() == 1).await;
    assert_eq!(worker.stop().await.len(), 1);
    // With a count from an old copy of the home: the store has seen a higher one.
    std::fs::write(own.path("w-1").join("registrations"), "0\n").unwrap();
    let worker = own.worker("w-1");
    own.wait_run("one", &run, "success").await;
    assert_once(&own.ledger(), 1);
    worker.stop().await;
}
