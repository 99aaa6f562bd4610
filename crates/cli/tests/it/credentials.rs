//! Which token goes where.

use crate::process::Call;
use crate::server::{Server, page};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// The credential that a call presents.
fn presented(prepare: impl FnOnce(Call) -> Call) -> Option<String> {
    let server = Server::start(|_| page(json!([])));
    let ran = prepare(Call::new("dags list").file("server", &server.address)).run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    server.requests()[0].header("authorization").map(Into::into)
}

fn home_token(call: Call, mode: u32) -> Call {
    let call = call.file("token", "from-home\n");
    let file = call.home().join("token");
    std::fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
    call
}

#[test]
fn the_homes_token_is_the_last_choice() {
    assert_eq!(presented(|call| call), None);
    assert_eq!(presented(|call| home_token(call, 0o600)).as_deref(), Some("Bearer from-home"));
    let given = presented(|call| home_token(call, 0o600).env("FENCEPOST_TOKEN", "given"));
    assert_eq!(given.as_deref(), Some("Bearer given"));
}

#[test]
fn a_token_that_others_can_read_is_refused_with_the_mend() {
    let server = Server::start(|_| page(json!([])));
    let ran = home_token(Call::new("dags list").file("server", &server.address), 0o640).run();
    assert_eq!(ran.code, 6);
    assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
    assert_eq!(server.lines(), [""; 0]);
}

#[test]
fn a_token_file_beats_the_environment() {
    let server = Server::start(|_| page(json!([])));
    let call = Call::new("dags list --token-file mine").file("mine", "mine\n");
    let call = call.env("FENCEPOST_TOKEN", "x").env("FENCEPOST_SERVER", &server.address);
    assert_eq!(call.run().code, 0);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer mine"));
    let ran = Call::new("dags list --token-file gone --server 127.0.0.1:1").run();
    assert_eq!(ran.code, 6);
}

#[test]
fn a_proxy_never_sees_a_call() {
    let server = Server::start(|_| page(json!([])));
    let call = Call::new("dags list").env("FENCEPOST_SERVER", &server.address);
    let call = call.env("http_proxy", "http://127.0.0.1:1").env("ALL_PROXY", "http://127.0.0.1:1");
    assert_eq!(call.run().code, 0);
}
