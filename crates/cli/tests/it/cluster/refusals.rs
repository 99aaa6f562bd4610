//! What must be refused, with a sentence that helps, and nothing changed.

use super::crowd::{now_ns, wait_until};
use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use std::process::Output;

fn refused(output: &Output, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

#[test]
fn a_role_refuses_a_store_that_it_cannot_use() {
    let cluster = Cluster::new();
    let sqlite = format!("sqlite:{}", cluster.path("x.db").display());
    for role in ["server", "scheduler"] {
        refused(&cluster.run(&[role, "--store", &sqlite]), &["SQLite", "postgres://"]);
    }
    let empty = fencepost_testing::Database::empty().unwrap();
    refused(
        &cluster.run(&["scheduler", "--store", empty.url()]),
        &["fencepost db migrate --store"],
    );
    cluster.database().sql("INSERT INTO schema_migration VALUES (9000, 'x', 0)").unwrap();
    refused(&cluster.run(&["scheduler", "--store", cluster.url()]), &["newer"]);
}

#[test]
fn a_worker_without_a_good_token_is_refused() {
    let cluster = Cluster::new();
    let _server = cluster.server();
    let with = |token: &str| {
        cluster.worker_command("w", &[]).env("FENCEPOST_WORKER_TOKEN", token).output().unwrap()
    };
    refused(&with("nonsense"), &["token"]);
    let viewer = cluster.must(&["tokens", "create", "--role", "viewer"]);
    refused(&with(viewer.trim()), &["worker"]);
    refused(&with(""), &["FENCEPOST_WORKER_TOKEN"]);
}

#[test]
fn two_living_workers_with_one_home_are_refused_and_take_over_ends_the_first() {
    let cluster = Cluster::new();
    let _server = cluster.server();
    let mut first = cluster.worker("w1");
    let pid = first.child.id().to_string();
    let second = cluster.worker_command("w1", &[]).output().unwrap();
    refused(&second, &[&pid, "--take-over"]);
    assert!(first.child.try_wait().unwrap().is_none(), "the first one lives");
    let taking = cluster.worker_command("w1", &["--take-over"]).spawn().unwrap();
    wait_for("the first one to be ended", || first.child.try_wait().unwrap().is_some());
    let mut taking = taking;
    taking.kill().unwrap();
    taking.wait().unwrap();
}

#[test]
fn a_revoked_token_ends_a_workers_calls() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let _server = cluster.server();
    let _worker = cluster.worker("w1");
    let tokens = cluster.json(&["tokens", "list"]);
    let of_worker = tokens.as_array().unwrap().iter().find(|row| row["role"] == "worker").unwrap();
    let heard = || cluster.json(&["workers", "list"])[0]["last_beat_at"].clone();
    let before = heard();
    wait_for("the worker to beat", || heard() != before);
    // What it said before is no answer to this.
    let said = cluster.stderr("w1").len();
    cluster.must(&["tokens", "revoke", of_worker["id"].as_str().unwrap(), "--yes"]);
    wait_for("the worker to say so", || cluster.stderr("w1")[said..].contains("token"));
    let last = heard();
    // It beats each second, and says the same trouble once.
    wait_until(now_ns() + 3_000_000_000);
    assert_eq!(heard(), last, "no beat of it counts any more");
}
