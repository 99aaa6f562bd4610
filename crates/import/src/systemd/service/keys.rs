//! The keys of a service that are no commands: what each becomes, or why it becomes nothing.

use super::super::unit::{Assignment, flag};
use super::super::words::split;
use super::{Reading, duration};
use crate::dag::Draft;
use crate::names::is_variable;
use crate::script;
use serde_json::{Map, Value, json};

/// Reads them into the DAG and into what all tasks share.
pub(super) fn read(
    reading: &mut Reading<'_>,
    kind: &str,
    draft: &mut Draft,
    shared: &mut Map<String, Value>,
) {
    environment(reading, draft);
    let is_oneshot = kind == "oneshot";
    let limit = if is_oneshot { "TimeoutStartSec" } else { "RuntimeMaxSec" };
    for name in ["TimeoutSec", limit] {
        if let Some((line, span)) =
            duration(reading, name).filter(|_| is_oneshot || name != "TimeoutSec")
        {
            reading.notes.converted(line, format!("{name}={span}"), "execution_timeout");
            shared.insert("execution_timeout".into(), json!(span));
        }
    }
    for name in ["TimeoutSec", "TimeoutStopSec"] {
        if let Some((line, span)) = duration(reading, name) {
            reading.notes.converted(line, format!("{name}={span}"), "kill_grace");
            shared.insert("kill_grace".into(), json!(span));
        }
    }
    restart(reading, shared);
    for assignment in &reading.unit.assignments {
        if assignment.section == "Service" && !assignment.value.is_empty() {
            other(reading, assignment, kind, shared);
        }
    }
}

fn environment(reading: &mut Reading<'_>, draft: &mut Draft) {
    let mut env = Map::new();
    for assignment in reading.unit.all("Service", "Environment") {
        let what = format!("Environment={}", assignment.value);
        let expanded = reading
            .specifiers
            .expand(&assignment.value)
            .map_err(|name| format!("only the machine knows {name}"));
        let words = match expanded.and_then(|text| split(&text, false)) {
            Ok(words) => words,
            Err(why) => {
                reading.notes.needs(assignment.line, what, why, "write it under `env`");
                continue;
            }
        };
        for word in words.iter().filter_map(|word| word.plain()) {
            match word.split_once('=') {
                Some((name, value)) if is_variable(name) && !name.starts_with("FENCEPOST_") => {
                    env.insert(name.to_owned(), json!(script::literal_value(value)));
                }
                _ => reading.notes.needs(
                    assignment.line,
                    &word,
                    "it is no NAME=value that a task can have",
                    "write it under `env`",
                ),
            }
        }
        reading.notes.converted(assignment.line, what, "env");
    }
    draft.set_some("env", env);
}

/// systemd starts again for ever, unless that comes too often; a task has a number of tries.
fn restart(reading: &mut Reading<'_>, shared: &mut Map<String, Value>) {
    let Some(policy) = reading.unit.last("Service", "Restart") else { return };
    let (line, what) = (policy.line, format!("Restart={}", policy.value));
    match policy.value.as_str() {
        "no" => reading.notes.ignored(line, what, "a task has no retries unless it says so"),
        "on-failure" => {
            let burst = ["Unit", "Service"].iter().find_map(|section| {
                reading
                    .unit
                    .last(section, "StartLimitBurst")
                    .and_then(|a| a.value.parse::<u32>().ok())
            });
            let retries = burst.unwrap_or(5).saturating_sub(1);
            shared.insert("retries".into(), json!(retries));
            let delay = duration(reading, "RestartSec")
                .map_or_else(|| "100ms".to_owned(), |(_, span)| span);
            shared.insert("retry_delay".into(), json!(delay));
            reading.notes.converted(
                line,
                what,
                format!("retries: {retries}, from the limit of starts"),
            );
        }
        _ => {
            let why = "a task is tried again when it fails, and only then";
            reading.notes.needs(line, what, why, "set `retries`, or leave the service to systemd");
        }
    }
}

/// What is about the unit in systemd and nothing else.
const NOTHING: [&str; 18] = [
    "RemainAfterExit",
    "GuessMainPID",
    "SyslogIdentifier",
    "SyslogFacility",
    "SyslogLevel",
    "SyslogLevelPrefix",
    "LogLevelMax",
    "LogRateLimitIntervalSec",
    "LogRateLimitBurst",
    "StandardOutput",
    "StandardError",
    "TTYPath",
    "NotifyAccess",
    "WatchdogSec",
    "RestartPreventExitStatus",
    "TimeoutAbortSec",
    "TimeoutStartFailureMode",
    "TimeoutStopFailureMode",
];
const READ: [&str; 18] = [
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecCondition",
    "ExecStop",
    "ExecStopPost",
    "Environment",
    "EnvironmentFile",
    "SuccessExitStatus",
    "Restart",
    "RestartSec",
    "StartLimitBurst",
    "StartLimitIntervalSec",
    "TimeoutStopSec",
    "TimeoutSec",
    "RuntimeMaxSec",
    "TimeoutStartSec",
    "ExecReload",
];

/// Why a key means nothing here, if it does.
fn is_nothing(name: &str, value: &str, kind: &str, is_retried: bool) -> Option<&'static str> {
    Some(match name {
        "KillSignal" if value == "SIGTERM" || value == "15" => "it is what we send too",
        "KillMode" if value == "control-group" => "the whole tree of a task is ended",
        "PrivateTmp" if flag(value) == Some(true) => {
            "each attempt has a directory of its own, $FENCEPOST_TMP_DIR"
        }
        "ExecReload" => "a task is not reloaded",
        "TimeoutStartSec" if kind != "oneshot" => "a task has no phase of starting",
        "RuntimeMaxSec" if kind == "oneshot" => "systemd ignores it for oneshot too",
        "RestartSec" | "StartLimitBurst" | "StartLimitIntervalSec" if !is_retried => {
            "nothing is started again"
        }
        "StandardOutput" | "StandardError" if is_file(value) => return None,
        name if NOTHING.contains(&name) => "it is about the unit in systemd",
        name if !READ.contains(&name) && flag(value) == Some(false) => "it asks for nothing",
        _ => return None,
    })
}

/// Whether output goes elsewhere than to a log.
fn is_file(value: &str) -> bool {
    ["file:", "append:", "truncate:", "fd:", "socket"].iter().any(|form| value.starts_with(form))
}

fn other(
    reading: &mut Reading<'_>,
    assignment: &Assignment,
    kind: &str,
    shared: &mut Map<String, Value>,
) {
    let (line, value) = (assignment.line, assignment.value.as_str());
    let name = assignment.name.as_str();
    let what = format!("{name}={value}");
    if let Some(why) = is_nothing(name, value, kind, shared.contains_key("retries")) {
        reading.notes.ignored(line, what, why);
        return;
    }
    let (why, todo): (&str, String) = match name {
        "Type" if ["oneshot", "simple", "exec", "idle"].contains(&kind) => {
            reading.notes.converted(line, what, "a task ends when its process ends");
            return;
        }
        "User" => return user(reading, line, value, shared),
        "WorkingDirectory" => return working_dir(reading, line, value, shared),
        name if READ.contains(&name) => return,
        "Type" => (
            "the task ends when its process ends, and what that leaves behind is ended with it",
            "let the program stay in the foreground, or leave it to systemd".into(),
        ),
        "StandardOutput" | "StandardError" => (
            "output goes to the log of the attempt",
            "redirect it in the script as well, if somebody reads the file".into(),
        ),
        "Nice" => (
            "a task has no priority of its own on the machine",
            format!("begin the command with nice -n {value}"),
        ),
        _ => (
            "it is not taken over: limits, sandboxing and the like are systemd's",
            "begin the command with systemd-run --pipe --wait -p KEY=VALUE, or do without".into(),
        ),
    };
    reading.notes.needs(line, what, why, todo);
}

fn user(reading: &mut Reading<'_>, line: u32, value: &str, shared: &mut Map<String, Value>) {
    let what = format!("User={value}");
    match reading.specifiers.expand(value) {
        Ok(user) => {
            reading.notes.converted(line, what, "run_as_user");
            shared.insert("run_as_user".into(), json!(user));
        }
        Err(name) => {
            let why = format!("only the machine knows {name}");
            reading.notes.needs(line, what, why, "write `run_as_user`");
        }
    }
}

fn working_dir(reading: &mut Reading<'_>, line: u32, value: &str, shared: &mut Map<String, Value>) {
    let what = format!("WorkingDirectory={value}");
    match reading.specifiers.expand(value.trim_start_matches('-')) {
        Ok(path) if path.starts_with('/') => {
            reading.notes.converted(line, what, "working_dir");
            shared.insert("working_dir".into(), json!(script::literal_value(&path)));
        }
        Ok(_) => reading.notes.needs(
            line,
            what,
            "it is the home of a user",
            "write the path as `working_dir`",
        ),
        Err(name) => reading.notes.needs(
            line,
            what,
            format!("only the machine knows {name}"),
            "write the path as `working_dir`",
        ),
    }
}
