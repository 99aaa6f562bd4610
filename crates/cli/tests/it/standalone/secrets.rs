//! Secrets, connections and variables of tasks: given to the process, and shown nowhere.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::path::Path;

const TOKEN: &str = "token-0123456789";
const KEY: &str = "a-signing-key-of-0123";
const URI: &str = "postgres://ann:pass%20word@db.example:5432/sales";

/// Whether a file below a folder has that text.
fn is_written(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            return is_written(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(text.len()).any(|piece| piece == text.as_bytes());
        assert!(!found, "{} has {text}", path.display());
        found
    })
}

/// Private files of attempts in this machine's memory: those of this home have its attempts' ids.
fn private_of(attempt: &str) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    let base = format!("/dev/shm/fencepost-{uid}");
    let entries = std::fs::read_dir(base).into_iter().flatten().filter_map(Result::ok);
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(attempt))
}

/// `examples/secrets`, as its README says.
#[test]
fn the_example_is_given_what_it_needs_and_shows_nothing_of_it() {
    let world = World::new();
    let key = world.path("signing.key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/secrets/dags");
    let text = std::fs::read_to_string(example.join("report.yaml")).unwrap();
    let text = text.replace("/tmp/fencepost-example/signing.key", key.to_str().unwrap());
    std::fs::write(world.path("dags").join("report.yaml"), text).unwrap();
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "report"]).is_object());
    // Without its token a task does not run, and says what is missing; nothing is tried again.
    world.trigger("report");
    world.wait_state("report", "failed");
    let attempts = world.attempts("report", "fetch");
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    let why = world.must(&["attempts", "show", attempts[0]["token"].as_str().unwrap()]);
    assert!(why.contains("there is no secret `report_token`"), "{why}");

    let from = world.path("token");
    std::fs::write(&from, TOKEN).unwrap();
    world.must(&["secrets", "set", "report_token", "--file", from.to_str().unwrap()]);
    std::fs::remove_file(&from).unwrap();
    world.must(&["connections", "set", "warehouse", URI]);
    world.must(&["dags", "trigger", "report", "--run-id", "second", "--wait"]);
    let fetch = world.must(&["logs", "report", "second", "fetch"]);
    for line in ["region=emea with token ***", "\n***\n", "signed with ***"] {
        assert!(fetch.contains(line), "{line} is not in {fetch}");
    }
    let store = world.must(&["logs", "report", "second", "store"]);
    let host = "psql ***, host db.example";
    assert!(store.contains(host) && store.contains("mode 600"), "{store}");
    assert!(store.contains(r#""password":"***""#), "{store}");
    let rendered = world.must(&["tasks", "render", "report", "second", "store"]);
    assert!(rendered.contains("db.example"), "{rendered}");
    let attempt = world.json(&["tasks", "attempts", "report", "second", "store"]);
    world.wait_quiet();
    assert!(!private_of(attempt[0]["attempt_id"].as_str().unwrap()));
    std::fs::remove_file(&key).unwrap();
    for secret in [TOKEN, KEY, "pass%20word", "pass word"] {
        is_written(&world.path("."), secret);
    }
    world.assert_sound();
    node.stop();
}

#[test]
fn where_a_secret_comes_from_may_be_away_for_a_while() {
    let mut world = World::new();
    world.env.push(("OUR_SECRET".into(), "from-the-worker".into()));
    let vault = world.path("vault");
    world.dag(
        "away",
        &format!(
            "tasks:\n  named:\n    secrets: {{OURS: 'env:OUR_SECRET', THEIRS: 'exec:cat {}'}}\n    \
             retries: 1\n    retry_delay: 0s\n    run: |\n      test \"$OURS\" = from-the-worker\n      \
             test \"$THEIRS\" = opened\n",
            vault.display()
        ),
    );
    let node = world.start();
    world.trigger("away");
    wait_for("the first try", || world.attempts("away", "named").len() > 1);
    std::fs::write(&vault, "opened\n").unwrap();
    let first = world.attempts("away", "named").remove(0);
    assert_eq!((&first["outcome"], &first["exit_code"]), (&"failed".into(), &75.into()));
    let why = world.must(&["attempts", "show", first["token"].as_str().unwrap()]);
    assert!(why.contains("secret `THEIRS`: its command ends with exit status: 1"), "{why}");
    wait_for("an end", || ["success", "failed"].contains(&world.run_state("away").as_str()));
    world.must(&["tasks", "clear", "away", "@latest", "named", "--yes"]);
    world.wait_state("away", "success");
    world.assert_sound();
    node.stop();
}

/// Raw, by lines, in two writes, encoded, in an exception.
const LEAKS: &str = "
import base64, json, os, sys, time, urllib.parse
s = os.environ['IT']
print('raw', s)
print('lines', *s.splitlines(), sep=' ')
for piece in (s[:5], s[5:]):
    sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.3)
print()
print('address', urllib.parse.quote(s), urllib.parse.quote(s, safe=''), urllib.parse.quote_plus(s))
print('json', json.dumps(s), json.dumps(s, ensure_ascii=False))
print('base64', base64.b64encode(s.encode()).decode(), base64.urlsafe_b64encode(s.encode()).decode())
raise RuntimeError(s)
";

#[test]
fn a_secret_is_hidden_in_every_form_that_a_log_gets_it_in() {
    let world = World::new();
    std::fs::write(world.path("leaks.py"), LEAKS).unwrap();
    let script = world.path("leaks.py");
    world.dag(
        "leaks",
        &format!(
            "tasks:\n  t:\n    secrets: {{IT: 'store:it'}}\n    command: [python3, -u, '{}']\n",
            script.display()
        ),
    );
    let node = world.start();
    let from = world.path("it");
    std::fs::write(&from, "s3cr=t/ \u{c5}\nline2").unwrap();
    world.must(&["secrets", "set", "it", "--file", from.to_str().unwrap()]);
    std::fs::remove_file(&from).unwrap();
    world.trigger("leaks");
    world.wait_state("leaks", "failed");
    let log = world.must(&["logs", "leaks", "@latest", "t"]);
    for part in ["s3cr", "line2", "czNj", "bGluZTI", "%C3%85", "u00c5"] {
        assert!(!log.contains(part), "{part} is in {log}");
    }
    for line in ["raw ***", "address *** *** ***", "json", "base64 *** ***", "RuntimeError: ***"] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
    world.assert_sound();
    node.stop();
}

#[test]
fn what_templates_make_of_a_secret_lies_on_no_disk_either() {
    let world = World::new();
    world.dag(
        "pasted",
        "env: {PW: '{{ conn.w.password }}', LINE: 'x={{ var.value.api_key }}'}\ntasks:\n  script:\n    \
         run: |\n      here=\"$(dirname \"$FENCEPOST_LEASE_FILE\")\"\n      \
         test ${#PW} = 11 && test ${#LINE} = 16\n      \
         test {{ var.value.api_key | sh }} = \"${LINE#x=}\"\n      \
         if grep -r -e \"$PW\" -e \"${LINE#x=}\" \"$here\"; then exit 1; fi\n  \
         words:\n    command: [sh, -c, 'test \"$0\" = \"$PW\" && echo same', '{{ conn.w.password }}']\n",
    );
    let node = world.start();
    world.must(&["connections", "set", "w", "postgres://ann:pass%20word%201@db.example/sales"]);
    world.must(&["variables", "set", "api_key", "key-0123456789"]);
    world.trigger("pasted");
    world.wait_state("pasted", "success");
    assert!(world.must(&["logs", "pasted", "@latest", "words"]).contains("same"));
    world.wait_quiet();
    for secret in ["pass word 1", "key-0123456789"] {
        is_written(&world.home(), secret);
    }
    world.assert_sound();
    node.stop();
}
