//! The short form: few faults of each kind on real processes, and what the command says of them.

use std::process::Command;

/// The promises of the table, each of which was kept.
const KEPT: [&str; 9] = [
    "tasks lost",
    "overlaps",
    "late writes accepted",
    "false deaths",
    "duplicate scheduled runs",
    "budget violations",
    "work run again for nothing",
    "processes left",
    "audit and bad records",
];

#[expect(clippy::unwrap_used, reason = "a test")]
fn torture(arguments: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_fencepost-torture")).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The figure behind a name in the table.
fn figure(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    line.split_whitespace().last()?.parse().ok()
}

#[test]
fn slow_a_minute_and_a_half_of_all_kinds_of_faults_breaks_no_promise() {
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_fencepost-torture"));
    let roles = own.with_file_name("fencepost");
    assert!(roles.exists(), "there is no {}: cargo build -p fencepost-cli", roles.display());
    let roles = roles.to_str().unwrap();
    let span = ["--seconds", "90", "--seed", "3", "--least", "4"];
    let (is_well, text) = torture(&[&["--binary", roles][..], &span].concat());
    assert!(is_well, "{text}");
    for promise in KEPT {
        assert_eq!(figure(&text, promise), Some(0), "{promise}: {text}");
    }
    assert!(figure(&text, "executions completed").is_some_and(|n| n > 50), "{text}");
    let evidence = ["exit_status", "expiry", "self_fence", "successor"];
    let losses: u64 = evidence.iter().filter_map(|kind| figure(&text, kind)).sum();
    assert!(losses > 0, "nothing had to be recovered: {text}");
    assert!(figure(&text, "promotion").is_some_and(|n| n > 0), "{text}");
}

#[test]
fn a_kind_that_does_not_exist_is_refused_before_anything_starts() {
    let (is_well, text) = torture(&["--nemesis", "flood", "--binary", "/bin/true"]);
    assert!(!is_well);
    assert!(text.contains("no kind `flood`"), "{text}");
}
