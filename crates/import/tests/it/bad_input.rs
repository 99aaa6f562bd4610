//! Whatever the bytes are: an answer, sound files, and no panic.

use super::{dags, source};
use fencepost_import::{CronOptions, Imported, NoteKind, Source, cron, systemd};
use proptest::prelude::*;

fn every(source: Source<'_>) -> Vec<Imported> {
    let options = CronOptions { zone: "UTC", form: None };
    let timer = Source { name: "a.timer", ..source };
    let service = Source { name: "a.service", ..source };
    vec![cron(&source, &options), systemd(&[timer, service], None, "UTC")]
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
    for text in [crontab, unit] {
        for end in 0..text.len() {
            for imported in every(source("x", &text[..end])) {
                dags(&imported);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_lines_are_answered(text in "([*0-9/,@a-zA-Z%{}$\"'\\\\=\\[\\] ~.:-]{0,40}\n){0,8}") {
        for imported in every(source("x", &text)) {
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
