//! `fencepost xcom`: outputs of tasks, from inside a task.

use super::own_attempt;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Subcommand;
use fencepost_api::execution::wire::{Call, XcomGet, XcomGot, XcomSet};
use serde_json::Value;

/// Inside a task: read and write outputs (XCom)
#[derive(Debug, Subcommand)]
pub(crate) enum Xcom {
    /// Print an output of a task of the same run: text as it is, the rest as JSON
    #[command(after_help = "\
Examples:
  fencepost xcom get rows --task extract
  fencepost xcom get path --task publish --map-index 2")]
    Get {
        /// The output's name
        key: String,
        /// Of which task [default: this one]
        #[arg(long, value_name = "TASK_ID")]
        task: Option<String>,
        /// Of which instance of a mapped task [default: all, as a list]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        map_index: Option<i32>,
    },
    /// Set an output of this task, at once; refused (exit 76) if the attempt is not current
    #[command(after_help = "\
Examples:
  fencepost xcom set path s3://bucket/file
  fencepost xcom set rows 128412 --json")]
    Set {
        /// The output's name
        key: String,
        /// Its value
        value: String,
        /// The value is JSON, not text
        #[arg(long)]
        json: bool,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Xcom) -> Outcome {
    match verb {
        Xcom::Get { key, task, map_index } => get(cx, XcomGet { task_id: task, map_index, key }),
        Xcom::Set { key, value, json } => {
            let value = if json {
                serde_json::from_str(&value)
                    .map_err(|error| CliError::usage(format!("the value is not JSON: {error}")))?
            } else {
                Value::String(value)
            };
            own_attempt::call::<Value>(cx, Call::XcomSet, &XcomSet { key, value })?;
            Ok(Exit::Done)
        }
    }
}

fn get(cx: &Cx, wanted: XcomGet) -> Outcome {
    let got: XcomGot = own_attempt::call(cx, Call::XcomGet, &wanted)?;
    let Some(value) = got.value else {
        let of = wanted.task_id.map(|task| format!(" of `{task}`")).unwrap_or_default();
        let message = format!("there is no output `{}`{of}", wanted.key);
        return Err(CliError::new(Exit::NotFound, message));
    };
    let text = match value {
        Value::String(text) => text,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => other.to_string(),
    };
    cx.out.print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}
