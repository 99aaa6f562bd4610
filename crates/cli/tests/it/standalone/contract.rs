//! What a task's process gets and gives: environment, files, exit codes (2-interfaces section 5).

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::collections::BTreeMap;

fn env_of(world: &World, name: &str) -> BTreeMap<String, String> {
    let pairs = world.lines(name).into_iter().filter_map(|line| {
        line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

#[test]
fn a_task_gets_its_variables_and_files_and_nothing_of_the_hosts() {
    let mut world = World::new();
    world.env.push(("SECRET_OF_THE_HOST".into(), "x".into()));
    let out = world.path("env");
    let yaml = format!(
        "params: {{who: world, list: [1, 2]}}\ncompat: airflow\nowner: joe\ntimezone: Europe/Berlin\nenv: {{GREETING: 'hi {{{{ ds }}}}'}}\ntasks:\n  \
         up:\n    run: |\n      printf 'text<<EOF\\none\\ntwo\\nEOF\\nrows=12\\n' >> \"$FENCEPOST_OUTPUT_FILE\"\n    outputs: {{rows: integer}}\n  \
         t:\n    depends_on: [up]\n    expand: {{region: [emea]}}\n    run: |\n      env > '{0}'\n      \
         cat \"$FENCEPOST_PARAMS_FILE\" > '{0}.params'\n      cat \"$FENCEPOST_INPUTS_FILE\" > '{0}.inputs'\n      \
         cat \"$FENCEPOST_LEASE_FILE\" > '{0}.lease'\n      test -d \"$FENCEPOST_WORK_DIR\" && test -d \"$FENCEPOST_TMP_DIR\" && test -d \"$FENCEPOST_STATE_DIR\"\n",
        out.display()
    );
    world.dag("contract", &yaml);
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "contract"]).is_object());
    world.must(&[
        "dags",
        "trigger",
        "contract",
        "--run-id",
        "r1",
        "--logical-date",
        "2026-03-01T23:30:00Z",
    ]);
    world.wait_state("contract", "success");
    let env = env_of(&world, "env");
    for (name, value) in [
        ("FENCEPOST_DAG_ID", "contract"),
        ("FENCEPOST_TASK_ID", "t"),
        ("FENCEPOST_RUN_ID", "r1"),
        ("FENCEPOST_MAP_INDEX", "0"),
        ("FENCEPOST_RUN_TYPE", "manual"),
        ("FENCEPOST_LOGICAL_DATE", "2026-03-01T23:30:00Z"),
        ("FENCEPOST_DS", "2026-03-02"),
        ("FENCEPOST_DS_NODASH", "20260302"),
        ("FENCEPOST_TRY_NUMBER", "1"),
        ("FENCEPOST_MAX_TRIES", "1"),
        ("FENCEPOST_ATTEMPT_NUMBER", "1"),
        ("FENCEPOST_PREV_OUTCOME", "first"),
        ("FENCEPOST_PARAM_WHO", "world"),
        ("FENCEPOST_MAP_REGION", "emea"),
        ("FENCEPOST_INPUT_UP_ROWS", "12"),
        ("GREETING", "hi 2026-03-02"),
        ("AIRFLOW_CTX_DAG_ID", "contract"),
        ("AIRFLOW_CTX_TASK_ID", "t"),
        ("AIRFLOW_CTX_DAG_RUN_ID", "r1"),
        ("AIRFLOW_CTX_TRY_NUMBER", "1"),
        ("AIRFLOW_CTX_DAG_OWNER", "joe"),
        ("AIRFLOW_CTX_LOGICAL_DATE", "2026-03-01T23:30:00+00:00"),
        ("AIRFLOW_CTX_EXECUTION_DATE", "2026-03-01T23:30:00+00:00"),
    ] {
        assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
    }
    for name in
        ["FENCEPOST_ATTEMPT_ID", "FENCEPOST_FENCING_TOKEN", "FENCEPOST_IDEMPOTENCY_KEY", "PATH"]
    {
        assert!(env.get(name).is_some_and(|value| !value.is_empty()), "{name}");
    }
    assert!(!env.contains_key("SECRET_OF_THE_HOST") && !env.contains_key("FENCEPOST_HOME"));
    assert_eq!(world.lines("env.params").join(""), r#"{"who":"world","list":[1,2]}"#);
    assert!(world.lines("env.inputs").join("").contains(r#""text":"one\ntwo""#));
    assert!(world.lines("env.lease").join("").starts_with("monotonic "));
    node.stop();
}

/// 0, 99, 75, 76, 100, 126, 127 and a signal, without retries.
#[test]
fn exit_codes_mean_what_the_table_says() {
    let world = World::new();
    let cases = [
        ("zero", "exit 0", "success", "exit", "none"),
        ("skip", "exit 99", "skipped", "exit", "none"),
        ("tempfail", "exit 75", "failed", "exit", "user"),
        ("fenced", "exit 76", "failed", "fence_conflict", "user"),
        ("defer", "exit 100", "failed", "no_defer_file", "user"),
        ("missing", "/does/not/exist", "failed", "could_not_exec", "user"),
        ("killed", "kill -KILL $$", "failed", "signal", "user"),
        (
            "asked",
            "echo '{\"status\":\"skip\"}' > $FENCEPOST_RESULT_FILE; exit 1",
            "skipped",
            "result_file",
            "none",
        ),
        ("outputs", "echo nonsense >> $FENCEPOST_OUTPUT_FILE", "failed", "outputs_invalid", "user"),
    ];
    let mut yaml = String::from("tasks:\n");
    for (name, script, ..) in cases {
        yaml.push_str(&format!("  {name}:\n    run: |\n      {script}\n"));
    }
    world.dag("codes", &yaml);
    let node = world.start();
    world.trigger("codes");
    world.wait_state("codes", "failed");
    for (name, _, outcome, reason, counted) in cases {
        let attempt = world.attempts("codes", name)[0].clone();
        let found = (&attempt["outcome"], &attempt["reason"], &attempt["counted_as"]);
        assert_eq!(
            found,
            (&outcome.into(), &reason.into(), &counted.into()),
            "{name}: {attempt:#}"
        );
    }
    let missing = world.attempts("codes", "missing")[0].clone();
    assert_eq!(missing["exit_code"], 127);
    world.assert_sound();
    node.stop();
}

/// A task asks for a person, who has it run again and then decides.
#[test]
fn a_task_that_asks_for_a_person_is_held_until_one_decides() {
    let world = World::new();
    world.dag("asks", "tasks:\n  t:\n    retries: 3\n    run: exit 77\n");
    let node = world.start();
    world.trigger("asks");
    for attempts in [1, 2] {
        world.wait_task("asks", "t", "held");
        let held = world.json(&["held", "list"]);
        assert_eq!(held[0]["reason"], "awaiting_person", "{held:#}");
        assert_eq!(held.as_array().map(Vec::len), Some(1));
        let all = world.attempts("asks", "t");
        assert_eq!(all.len(), attempts);
        let last = &all[attempts - 1];
        assert_eq!((&last["outcome"], &last["counted_as"]), (&"failed".into(), &"none".into()));
        let decision = if attempts == 1 { "rerun" } else { "success" };
        let line = ["held", "resolve", "asks", "@latest", "t", "--yes", "--as", decision];
        world.must(&line);
        wait_for("the decision to be seen", || world.json(&["held", "list"]) != held);
    }
    world.wait_state("asks", "success");
    world.assert_sound();
    node.stop();
}

#[test]
fn a_checkpoint_and_the_state_directory_reach_the_next_attempt() {
    let world = World::new();
    let out = world.path("out");
    let yaml = format!(
        "tasks:\n  t:\n    retries: 1\n    retry_delay: 1s\n    run: |\n      \
         cat \"$FENCEPOST_CHECKPOINT_IN\" \"$FENCEPOST_STATE_DIR/file\" >> '{0}' 2> /dev/null || true\n      \
         echo page=7 > \"$FENCEPOST_CHECKPOINT_OUT\"; echo kept > \"$FENCEPOST_STATE_DIR/file\"\n      \
         test \"$FENCEPOST_TRY_NUMBER\" = 2\n",
        out.display()
    );
    world.dag("resume", &yaml);
    let node = world.start();
    world.trigger("resume");
    world.wait_state("resume", "success");
    assert_eq!(world.lines("out"), ["page=7", "kept"]);
    node.stop();
}

/// NUL bytes, invalid UTF-8 and a line without an end: bounded, and the task's fate unaffected (I21,
/// I22).
#[test]
fn hostile_output_changes_nothing_but_the_log() {
    let mut world = World::new();
    world.setting("limits.log_bytes", "262144");
    world.dag(
        "hostile",
        "tasks:\n  t:\n    run: |\n      printf 'a\\0b\\377c\\n'; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last words\n",
    );
    let node = world.start();
    world.trigger("hostile");
    world.wait_state("hostile", "success");
    let tail = world.must(&["logs", "hostile", "@latest", "t", "--tail", "5"]);
    assert!(tail.contains("last words"), "{tail}");
    let token = world.attempts("hostile", "t")[0]["token"].as_str().unwrap().to_owned();
    let group = &token[..token.len() - 3];
    let dir = world.home().join("logs").join(group).join(&token);
    let size: u64 =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 600_000, "{size} bytes");
    node.stop();
}
