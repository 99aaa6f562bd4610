//! How a verb inside a task asks the server about its own attempt: by the variables that the worker
//! has set, and nothing else.

use crate::client::{agent, tls};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_api::execution::EXECUTION_VERSION;
use fencepost_api::execution::wire::{Call, VERSION_HEADER};
use fencepost_api::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// For a whole call.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a server that cannot be reached is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A call in the name of the attempt that this process is a part of. A server that is being started
/// again is waited for: its restart must fail no task.
pub(super) fn call<A: DeserializeOwned>(cx: &Cx, call: Call, body: &impl Serialize) -> Outcome<A> {
    let mut waited = Duration::ZERO;
    let mut pause = FIRST_PAUSE;
    loop {
        match once(cx, call, body) {
            Err(error) if error.exit == Exit::Unreachable && waited < PATIENCE => {
                sleep(pause);
                waited += pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a verb that waits for its server")]
fn sleep(pause: Duration) {
    std::thread::sleep(pause);
}

fn once<A: DeserializeOwned>(cx: &Cx, call: Call, body: &impl Serialize) -> Outcome<A> {
    let (url, token) = (variable(cx, "FENCEPOST_API_URL")?, variable(cx, "FENCEPOST_API_TOKEN")?);
    let ca = cx.env.get("FENCEPOST_API_CA").map(Path::new);
    let agent = agent(tls(url, ca)?);
    let unreachable = |error: ureq::Error| {
        CliError::new(Exit::Unreachable, format!("the server at {url} cannot be reached: {error}"))
    };
    let body = serde_json::to_vec(body).map_err(|e| CliError::usage(e.to_string()))?;
    let mut answer = agent
        .post(format!("{}{}", url.trim_end_matches('/'), call.path()))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header(VERSION_HEADER, EXECUTION_VERSION.to_string())
        .config()
        .timeout_global(Some(LIMIT))
        .build()
        .send(&body)
        .map_err(unreachable)?;
    let status = answer.status().as_u16();
    let bytes = answer.body_mut().with_config().limit(64 << 20).read_to_vec();
    let bytes = bytes.map_err(unreachable)?;
    if status < 400 {
        return serde_json::from_slice(&bytes)
            .map_err(|error| CliError::new(Exit::Unexpected, format!("{url}: {error}")));
    }
    let mut problem: Problem = serde_json::from_slice(&bytes).unwrap_or_default();
    problem.status = status;
    if problem.title.is_empty() {
        problem.title = format!("the server answered with status {status}");
    }
    let stale = problem.code == "stale-fencing-token";
    let mut error = CliError::from_problem(problem);
    if stale {
        error.exit = Exit::Fenced;
    }
    Err(error)
}

fn variable<'a>(cx: &'a Cx, name: &str) -> Outcome<&'a str> {
    cx.env.get(name).filter(|text| !text.is_empty()).ok_or_else(|| {
        CliError::usage(format!("{name} is not set: this verb is for the process of a task"))
    })
}
