//! Whatever the bytes are: an answer, sound files, and no panic.

use super::{dags, source};
use fencepost_import::{CronOptions, Imported, NoteKind, Source, cron, dag_factory, dagu, systemd};
use proptest::prelude::*;

fn every(source: Source<'_>) -> Vec<Imported> {
    let options = CronOptions { zone: "UTC", form: None };
    let timer = Source { name: "a.timer", ..source };
    let service = Source { name: "a.service", ..source };
    vec![
        cron(&source, &options),
        systemd(&[timer, service], None, "UTC"),
        dag_factory(&source),
        dagu(&[source], "UTC"),
    ]
}

#[test]
fn what_is_no_text_is_said_with_its_line() {
    let large = "x".repeat((1 << 20) + 1);
    for (bytes, why) in [
        (&b"a=b\n\xff\xfe"[..], "this byte is not UTF-8"),
        (b"a\0b", "it has a NUL byte"),
        (large.as_bytes(), "the file is larger than 1 MiB"),
    ] {
        for imported in every(Source { name: "x", bytes }) {
            assert!(imported.files.is_empty());
            assert!(
                imported
                    .notes
                    .iter()
                    .any(|note| note.kind == NoteKind::Unreadable && note.why == why),
                "{:?}",
                imported.notes
            );
        }
    }
    let imported = &every(Source { name: "x", bytes: b"a=b\n\xff" })[0];
    assert_eq!(imported.notes[0].line, 2);
}

#[test]
fn truncated_files_are_answered() {
    let crontab = "SHELL=/bin/bash\n30 2 * * 1-5 /bin/a 'b%c\n@daily {{ x }}\n";
    let unit = "[Timer]\nOnCalendar=Mon..Fri *-*-01..07 9..17:30\nUnit=a.service\n[Service]\nExecStart=/bin/a 'b' \\\n  ${C}\nEnvironment=\"A=b\"\n";
    let factory = "d:\n  schedule: '@daily'\n  task_groups: {g: {dependencies: [a]}}\n  tasks:\n    a: {operator: BashOperator, bash_command: 'echo {{ ds }}', expand: {x: [1]}}\n    b: {operator: EmptyOperator, task_group_name: g}\n";
    let flow = "schedule: {start: '0 1 * * *'}\nparams: A=b\nsteps:\n  - {name: a, command: x, output: O, depends: [b], continueOn: {failure: true}}\n  - - echo $O\nhandlerOn: {exit: {command: y}}\n";
    for text in [crontab, unit, factory, flow] {
        for end in (0..text.len()).step_by(3) {
            for imported in every(source("x", &text[..end])) {
                dags(&imported);
            }
        }
    }
}

/// Pieces of workflows, of which some fit together.
const WORDS: [&str; 24] = [
    "d:\n",
    "  tasks:\n",
    "    a: {operator: BashOperator, bash_command: x}\n",
    "    b: {operator: EmptyOperator, dependencies: [a, c]}\n",
    "    c:\n",
    "      operator: ExternalTaskSensor\n",
    "      external_dag_id: '{{'\n",
    "  schedule: 0 1 * * *\n",
    "  default_args: {retries: -1}\n",
    "steps:\n",
    "- echo hi\n",
    "- {name: a, command: x}\n",
    "- {name: a, call: b, params: [1]}\n",
    "- [x, y]\n",
    "handlerOn: {exit: x}\n",
    "---\n",
    "env: [A=b, {C: $D}]\n",
    "params: {A: b}\n",
    "preconditions: x\n",
    "schedule: [1]\n",
    "type: graph\n",
    "  task_groups: {g: {parent_group_name: g}}\n",
    "retryPolicy: {limit: x}\n",
    "name: ü\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_lines_are_answered(text in "([*0-9/,@a-zA-Z%{}$\"'\\\\=\\[\\] ~.:-]{0,40}\n){0,8}") {
        for imported in every(source("x", &text)) {
            dags(&imported);
        }
    }

    #[test]
    fn any_yaml_of_known_words_is_answered(words in proptest::collection::vec(0..WORDS.len(), 0..30), cut in 0..400_usize) {
        let text: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
        let text = text.concat();
        let end = text.char_indices().map(|(at, _)| at).take(cut + 1).last().unwrap_or(0);
        for imported in every(source("x", &text[..end.max(text.len().min(cut))])) {
            dags(&imported);
        }
    }

    #[test]
    fn any_event_and_any_command_are_answered(event in "[*0-9/,.~: A-Za-z-]{0,20}", command in "[ -~]{0,30}") {
        let unit = format!("[Timer]\nOnCalendar={event}\nOnUnitActiveSec={event}\n[Service]\nExecStart={command}\nEnvironment={command}\nUser={command}\nWorkingDirectory={command}\nTimeoutStopSec={event}\n");
        for imported in every(source("x", &unit)) {
            dags(&imported);
        }
        let line = format!("@daily {command}\n");
        for imported in every(source("x", &line)) {
            dags(&imported);
        }
    }
}
