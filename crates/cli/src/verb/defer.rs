//! `fencepost defer`: a task leaves its worker until something has come.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Args;
use fencepost_core::wait::Waiting;
use serde_json::{Map, Value, json};

/// Inside a task: write what it waits for, and exit with 100; a new attempt of the same try resumes it
#[derive(Debug, Args)]
#[command(after_help = "\
The task must end with the exit code of this command (`exec` does that). When what it waits for has come it
is started again, and finds what came in the file $FENCEPOST_DEFER_EVENT_FILE.

Examples:
  [ -n \"${FENCEPOST_DEFER_EVENT_FILE:-}\" ] || exec fencepost defer --file /in/ready --timeout 3h
  exec fencepost defer --interval 10m --memo \"{\\\"job\\\": 4711}\"
  exec fencepost defer --wait \"{\\\"approval\\\": \\\"Ship it?\\\"}\"")]
pub(crate) struct Defer {
    /// Until an instant
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// So long
    #[arg(long, value_name = "DURATION")]
    interval: Option<String>,
    /// Until a path exists on the triggerer's machine
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Until an address answers with status 200
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// Until what is written like `wait` in a DAG file has come
    #[arg(long, value_name = "JSON")]
    wait: Option<String>,
    /// Give up after so long, over all deferrals of this try
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How often it is looked at [default: 60s]
    #[arg(long, value_name = "DURATION")]
    poke_interval: Option<String>,
    /// What the resumed attempt is to be told again
    #[arg(long, value_name = "JSON")]
    memo: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, args: Defer) -> Outcome {
    let Some(path) = cx.env.get("FENCEPOST_DEFER_FILE") else {
        let message = "only a task can defer: there is no $FENCEPOST_DEFER_FILE";
        return Err(CliError::usage(message));
    };
    let wait = wait(args)?;
    Waiting::check(&wait).map_err(|error| CliError::usage(error.to_string()))?;
    let text = json!({ "wait": wait }).to_string();
    std::fs::write(path, text)
        .map_err(|error| CliError::new(Exit::Unexpected, format!("{path}: {error}")))?;
    Ok(Exit::Deferred)
}

fn read(flag: &str, text: &str) -> Outcome<Value> {
    serde_json::from_str(text)
        .map_err(|error| CliError::usage(format!("{flag} is not JSON: {error}")))
}

fn wait(args: Defer) -> Outcome<Value> {
    let mut out = match &args.wait {
        None => Map::new(),
        Some(text) => {
            let given = read("--wait", text)?.as_object().cloned();
            given.ok_or_else(|| CliError::usage("--wait must be an object"))?
        }
    };
    let given = [
        ("until", args.until),
        ("interval", args.interval),
        ("file", args.file),
        ("http", args.http),
        ("timeout", args.timeout),
        ("poke_interval", args.poke_interval),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            out.insert(key.into(), json!(value));
        }
    }
    if let Some(context) = &args.memo {
        out.insert("context".into(), read("--memo", context)?);
    }
    Ok(Value::Object(out))
}
