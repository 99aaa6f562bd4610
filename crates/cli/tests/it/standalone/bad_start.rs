//! Starts that must be refused, each with what to do.

use super::world::World;
use crate::installation::Installation;

fn refused(world: &World, args: &[&str], code: i32, text: &str) {
    let output = world.run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(text), "`{text}` is not in: {said}");
    assert!(output.stdout.is_empty(), "stdout is for `ready` alone");
}

#[test]
fn a_second_standalone_on_a_home_is_refused_and_names_the_first() {
    let world = World::new();
    let node = world.start();
    let pid = format!("pid {}", node.child.id());
    refused(&world, &["standalone", "--listen", "127.0.0.1:0"], 5, &pid);
    node.stop();
}

#[test]
fn a_second_standalone_on_a_store_is_refused_from_another_home_too() {
    let world = World::new();
    let node = world.start();
    let mut other = World::new();
    let url = format!("sqlite:{}", world.home().join("fencepost.db").display());
    other.setting("store.url", &url);
    refused(&other, &["standalone", "--listen", "127.0.0.1:0"], 5, "another standalone uses");
    node.stop();
}

#[test]
fn a_taken_port_is_refused_with_a_mend() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&world, &["standalone", "--listen", &address], 5, "--listen 127.0.0.1:0");
}

#[test]
fn a_public_address_is_refused() {
    let world = World::new();
    refused(&world, &["standalone", "--listen", "0.0.0.0:0"], 2, "tls_cert");
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    let db = world.home().join("fencepost.db");
    std::fs::write(&db, "this is no database, however long it is".repeat(200)).unwrap();
    refused(&world, &["standalone", "--listen", "127.0.0.1:0"], 1, "cannot be used");
    assert!(std::fs::read_to_string(&db).unwrap().starts_with("this is no database"));
}

#[test]
fn settings_that_would_end_every_task_at_once_are_refused() {
    let mut world = World::new();
    world.setting("worker.orphan_ttl", "20s");
    refused(&world, &["standalone", "--listen", "127.0.0.1:0"], 2, "write orphan_ttl");
}

#[test]
fn the_token_file_is_the_owners_and_the_api_asks_for_it() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let node = world.start();
    for file in ["token", "fencepost.db", "fencepost.db-wal"] {
        let mode = std::fs::metadata(world.home().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(world.run(&["pools", "list"]).status.success());
    let wrong = world.command(&["pools", "list"]).env("FENCEPOST_TOKEN", "wrong").output().unwrap();
    assert_eq!(wrong.status.code(), Some(6));
    node.stop();
}
