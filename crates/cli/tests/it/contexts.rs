//! Servers by name.

use crate::process::{Call, Ran};
use crate::server::{Server, page};
use serde_json::json;
use std::path::Path;

fn at(home: &Path, line: &str) -> Ran {
    let home = home.to_str().unwrap();
    Call::of(&[line.split_whitespace().collect(), vec!["--home", home]].concat()).run()
}

#[test]
fn the_context_in_use_gives_address_and_token() {
    let server = Server::start(|_| page(json!([])));
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("secret");
    std::fs::write(&token, "of-the-context\n").unwrap();
    let add = format!("context add a --server {} --token-file {}", server.address, token.display());
    assert_eq!(at(home.path(), &add).code, 0);
    assert_eq!(at(home.path(), "context add b --server 127.0.0.1:1").code, 0);
    assert_eq!(at(home.path(), "dags list").code, 0);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer of-the-context"));
    assert_eq!(at(home.path(), "dags list --context b").code, 7);
    // A token of one server is not shown to another.
    assert_eq!(at(home.path(), &format!("dags list --server {}", server.address)).code, 0);
    assert_eq!(server.requests()[1].header("authorization"), None);
    assert_eq!(at(home.path(), "context use b").code, 0);
    assert_eq!(at(home.path(), "dags list").code, 7);
    let listed = at(home.path(), "context list -o json").stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[1]["current"], json!(true), "{listed}");
}

#[test]
fn a_name_that_is_not_there_is_answered_with_the_nearest() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(at(home.path(), "context add prod --server 127.0.0.1:1").code, 0);
    let ran = at(home.path(), "context use prd");
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("did you mean `prod`?"), "{}", ran.stderr);
    let ran = at(home.path(), "dags list --context prd");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
}

#[test]
fn what_could_not_be_used_is_not_kept() {
    let home = tempfile::tempdir().unwrap();
    for line in [
        "context add x --server ftp://x",
        "context add x --server 127.0.0.1:1 --token-file gone",
        "context add a/b --server 127.0.0.1:1",
        "context add x",
    ] {
        assert_ne!(at(home.path(), line).code, 0, "{line}");
    }
    assert!(!home.path().join("contexts.toml").exists());
}
