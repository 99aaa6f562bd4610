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
        write  worker.kill_grace = "45s" or less, or worker.lease_ttl = "33m20s" or more
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

const SIX_MISTAKES: &str = "\
schedule: \"61 5 * * *\"
retires: 3
tasks:
  extract:
    run: echo
    retries: -1
  load:
    run: echo
    depends_on: [extrct]
    trigger_rule: all_sucess
    pool_slots: many
";

#[test]
fn validate_tells_all_mistakes_with_their_places() {
    let ran = Call::new("validate dag.yaml").file("dag.yaml", SIX_MISTAKES).run();
    assert_eq!(ran.code, 2);
    let places: Vec<&str> = ran.stdout.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "dag.yaml:1:11",
            "dag.yaml:2:1",
            "dag.yaml:6:14",
            "dag.yaml:9:18",
            "dag.yaml:10:19",
            "dag.yaml:11:17"
        ],
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("did you mean `extract`?"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "1 file, 0 DAGs, 6 errors, 0 warnings\n");
    let ran = Call::new("validate dag.yaml -o json").file("dag.yaml", SIX_MISTAKES).run();
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((list.as_array().map(Vec::len), &list[1]["line"]), (Some(6), &2.into()));
    let ran = Call::new("validate dag.yaml -o github").file("dag.yaml", SIX_MISTAKES).run();
    assert!(ran.stdout.starts_with("::error file=dag.yaml,line=1,"), "{}", ran.stdout);
    let ran = Call::new("validate dag.yaml -o sarif").file("dag.yaml", SIX_MISTAKES).run();
    let sarif: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(6));
}

#[test]
fn validate_walks_folders_and_knows_twins() {
    const GOOD: &str = "dag_id: same\ntasks:\n  a:\n    run: echo\n";
    let call = Call::new("validate . gone.yaml");
    let ran = call.file("a.yaml", GOOD).file("b.yml", GOOD).file(".hidden.yaml", "x").run();
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stdout, @"
    ./b.yml:1:1    error  the dag id `same` is taken by ./a.yaml                        [duplicate-dag-id]
    gone.yaml:1:1  error  the file cannot be read: No such file or directory (os error 2)  [unreadable]
    ");
    let ran = Call::new("validate a.yaml").file("a.yaml", GOOD).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(ran.stderr, "1 file, 1 DAG, 0 errors, 0 warnings\n");
    let ran = Call::new("validate a.yaml -o name").file("a.yaml", GOOD).run();
    assert_eq!(ran.stdout, "same\n");
}

#[test]
fn warnings_count_when_strict() {
    const WARNED: &str = "params: {x: a}\ntasks:\n  a:\n    run: echo {{ params.x }}\n";
    for (line, code) in [("validate a.yaml", 0), ("validate a.yaml --strict", 2)] {
        let ran = Call::new(line).file("a.yaml", WARNED).run();
        assert_eq!(ran.code, code, "{}", ran.stdout);
        assert!(ran.stdout.contains("[script-injection]"), "{}", ran.stdout);
    }
}

#[test]
fn init_writes_what_validates_without_a_word() {
    let (_, home) = Call::new("init .").run_and_keep();
    let dags = home.path().join("dags");
    let ran = Call::of(&["validate", "--strict", dags.to_str().unwrap()]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    let file = home.path().join("fencepost.toml");
    let ran = Call::of(&["config", "lint", "--config", file.to_str().unwrap()]).run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_schedule_is_previewed_over_the_change_of_the_clocks() {
    let preview = |rest: &[&str]| {
        let ran = Call::of(&[&["schedule", "preview"], rest].concat()).run();
        (ran.code, ran.stdout + &ran.stderr)
    };
    let berlin =
        ["30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28", "--to", "2026-03-31"];
    assert_eq!(
        preview(&berlin),
        (
            0,
            "2026-03-28T01:30:00.000Z\n2026-03-29T01:00:00.000Z\n2026-03-30T00:30:00.000Z\n".into()
        )
    );
    let (code, text) = preview(&["15m", "--from", "2026-01-01", "-n", "2", "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &list[1]["due_at"]), (0, &"2026-01-01T00:15:00.000Z".into()));
    for wrong in
        [&["61 * * * *"][..], &["@daily", "--tz", "Mars/Base"], &["@daily", "--from", "soon"]]
    {
        assert_eq!(preview(wrong).0, 2, "{wrong:?}");
    }
}

#[test]
fn the_shim_is_reached_before_any_argument_is_parsed() {
    let ran = Call::new("shim /nowhere/at/all").run();
    assert!(!ran.stderr.contains("unrecognized subcommand"), "{}", ran.stderr);
    assert_ne!(ran.code, 0);
    assert_eq!(Call::new("shim").run().code, 2);
}

/// Every row of the table in `docs/schedules.md`, by the shipped command.
#[test]
fn the_preview_prints_the_instants_of_the_page_about_schedules() {
    let page = include_str!("../../../../docs/schedules.md");
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.ends_with("Z |"));
    let mut read = 0;
    for line in rows {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [cron, zone, from, to, instants] = cells.as_slice() else { panic!("{line}") };
        let cron = cron.trim_matches('`');
        let call = ["schedule", "preview", cron, "--tz", zone, "--from", from, "--to", to];
        let ran = Call::of(&call).run();
        let found = ran.stdout.trim_end().replace(":00.000Z", "Z").replace('\n', " ");
        assert_eq!((ran.code, found.as_str()), (0, *instants), "{line}");
        read += 1;
    }
    assert!(read >= 20, "{read} rows were read");
}
