//! `ExecStart=` and its like.

use super::super::words::{Word, split};
use super::Reading;
use crate::script::refusal;

/// One command of a service.
#[derive(Debug)]
pub(super) struct Line {
    words: Vec<Word>,
    /// A failure is nothing.
    is_lenient: bool,
    key: &'static str,
}

/// The commands of a key, in their order.
pub(super) fn read(reading: &mut Reading<'_>, key: &'static str) -> Vec<Line> {
    let mut lines = Vec::new();
    for assignment in reading.unit.all("Service", key) {
        let what = format!("{key}={}", assignment.value);
        match line(reading, key, &assignment.value) {
            Ok(parts) => {
                reading.notes.converted(assignment.line, what, "a task's command");
                lines.extend(parts);
            }
            Err(why) => {
                // The task fails there: what comes after may need it.
                let words = ["/bin/sh", "-c", &refusal(&what)].map(Word::of);
                lines.push(Line { words: words.to_vec(), is_lenient: false, key });
                let todo = "write the command into the task, which fails there as it is";
                reading.notes.needs(assignment.line, what, why, todo);
            }
        }
    }
    lines
}

fn line(reading: &Reading<'_>, key: &'static str, value: &str) -> Result<Vec<Line>, String> {
    let mut rest = value;
    let (mut is_lenient, mut expands, mut has_argv0) = (false, true, false);
    while let Some(c) = rest.chars().next().filter(|c| "-@:+!|".contains(*c)) {
        match c {
            '-' => is_lenient = true,
            ':' => expands = false,
            '@' => has_argv0 = true,
            '|' => return Err("it asks for a login shell of the user".into()),
            _ => {
                return Err(format!(
                    "`{c}` asks for more privileges than the user of the unit has"
                ));
            }
        }
        rest = &rest[1..];
    }
    let text =
        reading.specifiers.expand(rest).map_err(|name| format!("only the machine knows {name}"))?;
    let words = split(&text, expands)?;
    let mut lines = Vec::new();
    for part in words.split(|word| word.plain().as_deref() == Some(";")) {
        let mut words = part.to_vec();
        if has_argv0 && words.len() > 1 {
            return Err("it gives the program another name (`@`)".into());
        }
        // `\;` is a word, and no end of a command.
        words.retain(|word| *word != Word::default());
        if !words.is_empty() {
            lines.push(Line { words, is_lenient, key });
        }
    }
    if lines.is_empty() { Err("it is empty".into()) } else { Ok(lines) }
}

impl Line {
    /// The words, if they need no shell.
    pub(super) fn argv(&self) -> Option<Vec<String>> {
        if self.is_lenient { None } else { self.words.iter().map(Word::plain).collect() }
    }

    /// A line of a script that ends at the first failure. `codes`: what else means success.
    pub(super) fn shell(&self, codes: &[u8]) -> String {
        let words: Vec<String> = self.words.iter().map(Word::shell).collect();
        let command = words.join(" ");
        if self.is_lenient {
            return format!("{command} || true\n");
        }
        match self.key {
            // 1 to 254 skip the unit, 255 fails it.
            "ExecCondition" => format!("{command} || {{ [ $? -eq 255 ] && exit 1; exit 99; }}\n"),
            "ExecStart" if !codes.is_empty() => {
                let codes: Vec<String> = codes.iter().map(u8::to_string).collect();
                let codes = codes.join("|");
                format!("{command} || {{ rc=$?; case $rc in {codes}) ;; *) exit $rc ;; esac; }}\n")
            }
            _ => format!("{command}\n"),
        }
    }
}
