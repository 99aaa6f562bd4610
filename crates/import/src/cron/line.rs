//! One line of a crontab.

use super::CronForm;
use crate::script;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Nothing,
    Comment(&'a str),
    Setting(String, String),
    Job(Job<'a>),
    Wrong(String),
}

/// A command and when it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job<'a> {
    pub(super) when: When<'a>,
    /// Empty in a user's crontab.
    pub(super) user: &'a str,
    pub(super) command: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum When<'a> {
    Fields([&'a str; 5]),
    /// `@daily` and the like, as schedules have them, or an expression that stands for one.
    Name(&'a str),
    Boot,
}

/// Reads one line.
pub(super) fn read(line: &str, form: CronForm) -> Line<'_> {
    let line = line.trim_start_matches([' ', '\t']).trim_end_matches(['\r', '\n']);
    if line.trim().is_empty() {
        return Line::Nothing;
    }
    if let Some(comment) = line.strip_prefix('#') {
        return Line::Comment(comment.trim_matches(['#', ' ', '\t', '-', '=']));
    }
    if let Some((name, value)) = setting(line) {
        return Line::Setting(name, value);
    }
    let (when, rest) = match when(line) {
        Ok(found) => found,
        Err(why) => return Line::Wrong(why),
    };
    let (user, command) = match form {
        CronForm::User => ("", rest),
        CronForm::System => word(rest),
    };
    let command = without_flags(command);
    if command.is_empty() {
        return Line::Wrong("there is no command".into());
    }
    Line::Job(Job { when, user, command })
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    match text.split_once([' ', '\t']) {
        Some((word, rest)) => (word, rest.trim_start_matches([' ', '\t'])),
        None => (text, ""),
    }
}

/// `NAME = value`; the value in quotes, if it has blanks at its ends. Nothing is expanded in it.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let is_one_word = !name.is_empty() && !name.contains([' ', '\t']);
    is_one_word.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

fn when(line: &str) -> Result<(When<'_>, &str), String> {
    if line.starts_with('@') {
        let (name, rest) = word(line);
        return match name.to_ascii_lowercase().as_str() {
            "@reboot" => Ok((When::Boot, rest)),
            "@every_minute" => Ok((When::Name("* * * * *"), rest)),
            "@every_second" => Ok((When::Name("* * * * * *"), rest)),
            known if fencepost_core::schedule::Cron::names().any(|name| name == known) => {
                Ok((When::Name(name), rest))
            }
            _ => Err(format!("cron has no `{name}`")),
        };
    }
    // A dash before the minute keeps the start out of syslog, in some crons.
    let mut rest = line.strip_prefix('-').unwrap_or(line);
    let mut fields = [""; 5];
    for field in &mut fields {
        (*field, rest) = word(rest);
        if field.is_empty() {
            return Err("it is neither a setting nor five fields and a command".into());
        }
    }
    Ok((When::Fields(fields), rest))
}

/// Without the flags before a command that only say what cron mails and logs.
fn without_flags(command: &str) -> &str {
    let mut command = command;
    while let ("-n" | "-q", rest) = word(command) {
        command = rest;
    }
    command
}

impl Job<'_> {
    /// The command as a script: in the user's home, what follows the first `%` on its standard input.
    pub(super) fn script(&self) -> String {
        let mut parts = vec![String::new()];
        let mut chars = self.command.chars().peekable();
        while let Some(c) = chars.next() {
            let last = parts.len() - 1;
            match c {
                '\\' if chars.peek() == Some(&'%') => {
                    chars.next();
                    parts[last].push('%');
                }
                '%' => parts.push(String::new()),
                other => parts[last].push(other),
            }
        }
        let command = parts.remove(0);
        if parts.is_empty() {
            return format!("cd || exit\n{command}\n");
        }
        let input = parts.join("\n");
        let end = script::delimiter(&input);
        format!("cd || exit\n{{ {command}\n}} <<'{end}'\n{input}\n{end}\n")
    }
}

/// Words before a program that are not what a line is about.
const WRAPPERS: [&str; 26] = [
    "bash", "cd", "chronic", "chrt", "command", "cronic", "env", "eval", "exec", "flock", "ionice",
    "nice", "nohup", "perl", "php", "python", "python3", "ruby", "setsid", "sh", "sleep", "sudo",
    "test", "time", "timeout", "[",
];

/// The name of what a command runs: its first word that is a program of its own.
pub(super) fn program(command: &str) -> &str {
    let base_of = |word: &'_ str| word.rfind('/').map_or(0, |slash| slash + 1);
    let mut skips_operand = false;
    for word in command.split([' ', '\t', ';', '&', '|', '(', ')', '{', '}', '"', '\'']) {
        if word.is_empty() || word.starts_with('-') {
            continue;
        }
        let base = &word[base_of(word)..];
        let is_operand = std::mem::take(&mut skips_operand);
        let is_name = base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if base == "run-parts" {
            // What it runs is a folder: that says more.
            let folder = command.split_whitespace().rfind(|word| word.starts_with('/'));
            return folder
                .map_or(base, |folder| folder[base_of(folder)..].trim_end_matches([')', ';']));
        }
        if WRAPPERS.contains(&base) {
            skips_operand = ["cd", "flock", "timeout", "sleep", "test", "["].contains(&base);
        } else if is_name
            && !is_operand
            && !word.contains('=')
            && !word.starts_with(['$', '<', '>'])
        {
            return base.split('.').next().unwrap_or(base);
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(line: &str) -> Job<'_> {
        match read(line, CronForm::User) {
            Line::Job(job) => job,
            Line::Nothing | Line::Comment(_) | Line::Setting(..) | Line::Wrong(_) => {
                panic!("{line}")
            }
        }
    }

    #[test]
    fn percent_signs_are_ends_of_lines_on_standard_input() {
        assert_eq!(job("0 5 * * * date +\\%F").script(), "cd || exit\ndate +%F\n");
        assert_eq!(
            job("0 5 * * * mail -s hi joe%Joe,%%where?\\%").script(),
            "cd || exit\n{ mail -s hi joe\n} <<'STDIN'\nJoe,\n\nwhere?%\nSTDIN\n"
        );
        assert_eq!(job("@daily cat%").script(), "cd || exit\n{ cat\n} <<'STDIN'\n\nSTDIN\n");
    }

    #[test]
    fn settings_are_no_commands_and_commands_no_settings() {
        let set = |name: &str, value: &str| Line::Setting(name.into(), value.into());
        assert_eq!(read("A = b c ", CronForm::User), set("A", "b c"));
        assert_eq!(read("A=\" b \"", CronForm::User), set("A", " b "));
        assert_eq!(read("A=", CronForm::User), set("A", ""));
        assert_eq!(job("* * * * * A=b c").command, "A=b c");
        assert_eq!(job("@hourly A=b c").command, "A=b c");
        assert_eq!(job("-*/5 1 2 3 4 x").when, When::Fields(["*/5", "1", "2", "3", "4"]));
        assert_eq!(job("1 1 1 1 1 -n -q x -n").command, "x -n");
        assert!(matches!(read("1 1 1 1", CronForm::User), Line::Wrong(_)));
        assert!(matches!(read("1 1 1 1 1", CronForm::User), Line::Wrong(_)));
        assert!(matches!(read("1 1 1 1 1 root", CronForm::System), Line::Wrong(_)));
        assert!(matches!(read("@sometimes x", CronForm::User), Line::Wrong(_)));
    }

    #[test]
    fn names_are_those_of_programs() {
        for (command, name) in [
            ("/usr/local/bin/backup.sh --full", "backup"),
            ("cd /srv/app && ./bin/sync.py -v", "sync"),
            (
                "test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )",
                "cron.daily",
            ),
            ("/usr/bin/flock -n /tmp/x.lock /opt/report", "report"),
            ("nice -n 19 python3 /srv/etl/load.py", "load"),
            ("A=b /bin/x", "x"),
            (">/dev/null", ""),
        ] {
            assert_eq!(program(command), name, "{command}");
        }
    }
}
