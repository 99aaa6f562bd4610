//! Verbs that need no server.

use crate::process::Call;

#[test]
fn version_and_completion_need_nothing() {
    let ran = Call::new("version").env("FENCEPOST_SERVER", "http://127.0.0.1:1").run();
    assert_eq!((ran.code, ran.stdout), (0, format!("fencepost {}\n", env!("CARGO_PKG_VERSION"))));
    for (shell, word) in
        [("bash", "complete"), ("zsh", "#compdef fencepost"), ("fish", "complete -c")]
    {
        let ran = Call::new(&format!("completion {shell}")).run();
        assert!(ran.code == 0 && ran.stdout.contains(word), "{shell}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let (mut child, _home) = Call::new("completion zsh").spawn();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn init_writes_a_project_and_never_over_a_file() {
    let call = Call::new("init .");
    let home = call.home().to_owned();
    std::fs::write(home.join(".gitignore"), "mine").unwrap();
    let (ran, _home) = call.run_and_keep();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(home.join(".gitignore")).unwrap(), "mine");
    assert!(home.join("dags/hello.yaml").exists() && home.join("fencepost.toml").exists());
    assert!(ran.stderr.contains("kept  ./.gitignore"), "{}", ran.stderr);
}

#[test]
fn config_shows_origins_and_lints() {
    let call = Call::new("config list").file("fencepost.toml", "[worker]\nslots = 4\n");
    let ran = call.env("FENCEPOST__SERVER__LISTEN", "127.0.0.1:9").run();
    let line =
        |key: &str| ran.stdout.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("worker.slots").contains("fencepost.toml:2:9"), "{}", ran.stdout);
    assert!(line("server.listen").contains("FENCEPOST__SERVER__LISTEN"));
    assert!(line("worker.lease_ttl").contains("default"));
    let ran = Call::new("config lint").env("FENCEPOST__WORKER__KILL_GRACE", "5m").run();
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stdout, @r#"
    worker.self_fence 4m + worker.kill_grace 5m + worker.margin 15s is more than worker.lease_ttl 5m
        write  worker.kill_grace = "45s" or less, or worker.lease_ttl = "9m15s"
    "#);
    let ran = Call::new("config list").file("fencepost.toml", "[worker]\nslot = 4\n").run();
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(":2:1: unknown key `worker.slot`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `worker.slots`?"), "{}", ran.stderr);
    let ran = Call::new("config explain worker.lease_ttl").run();
    insta::assert_snapshot!(ran.stdout, @"
    worker.lease_ttl: a worker that is silent this long is lost
      value    300s  (from default)
      default  300s
      is       a duration (30s, 5m, 1h30m)
      variable FENCEPOST__WORKER__LEASE_TTL
    ");
    assert_eq!(Call::new("config get worker.slots -o json").run().code, 0);
    assert_eq!(Call::new("config get worker.slot").run().code, 4);
}
