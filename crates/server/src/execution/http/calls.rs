//! Which call is answered by what.

use super::{Served, read};
use crate::execution::Execution;
use crate::execution::convert::answer;
use crate::rest::{Answer, Done, Failure};
use fencepost_api::execution::wire::{
    Call, Hello, Leave, Logs, Release, Reports, Starts, XcomGet, XcomGot, XcomSet,
};
use fencepost_api::execution::{
    EXECUTION_OLDEST, EXECUTION_VERSION, ExecutionApi, Register, Reply,
};
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_core::id::{AttemptId, Token};
use fencepost_core::outputs::OUTPUT_LIMIT;
use fencepost_engine::Cx;
use fencepost_engine::operations::attempt_calls::{self, Called, Wanted};
use serde::Serialize;
use serde_json::Value;

/// What the holder of a join token asks.
pub(super) async fn join(served: &Served, call: Call, join: &str, body: Value) -> Done {
    let execution = &served.execution;
    let keys = execution.credentials.keys(&execution.cx).await?;
    if call == Call::Hello {
        return Answer::ok(&Hello {
            installation_id: keys.installation_id().into(),
            version: served.version.clone(),
            newest: EXECUTION_VERSION,
            oldest: EXECUTION_OLDEST,
        });
    }
    let request: Register = read(body)?;
    let job_id = request.job_id.clone();
    let mut registered = execution.register(request).await?;
    registered.credential = Some(keys.for_job(&job_id, join));
    Answer::ok(&registered)
}

/// What a worker asks; it names itself, which was checked.
pub(super) async fn job(execution: &Execution, call: Call, body: Value) -> Done {
    match call {
        Call::TakeOver => done(execution.take_over(read(body)?)).await,
        Call::Poll => done(execution.poll(read(body)?)).await,
        Call::Start => {
            let Starts { job_id, starts } = read(body)?;
            done(execution.start(&job_id, starts)).await
        }
        Call::Report => {
            let Reports { job_id, reports } = read(body)?;
            done(execution.report(&job_id, reports)).await
        }
        Call::Beat => done(execution.beat(read(body)?)).await,
        Call::Release => {
            let Release { job_id, tokens } = read(body)?;
            done(execution.release(&job_id, tokens)).await
        }
        Call::Leave => {
            let Leave { job_id } = read(body)?;
            done(execution.leave(&job_id)).await
        }
        Call::Logs => {
            let Logs { job_id, pieces } = read(body)?;
            done(execution.logs(&job_id, pieces)).await
        }
        Call::Hello | Call::Register | Call::FenceCheck | Call::XcomGet | Call::XcomSet => {
            Err(misplaced(call))
        }
    }
}

/// What the process of a task asks.
pub(super) async fn attempt(cx: &Cx, call: Call, own: (AttemptId, Token), body: Value) -> Done {
    match call {
        Call::FenceCheck => {
            let checked = attempt_calls::check(cx, own.0, own.1).await?;
            Answer::ok(&answer(checked))
        }
        Call::XcomGet => {
            let XcomGet { task_id, map_index, key } = read(body)?;
            let wanted = Wanted { task_id, map_index, name: key };
            let value = current(attempt_calls::output(cx, own, &wanted).await?, own)?;
            Answer::ok(&XcomGot { value })
        }
        Call::XcomSet => {
            let XcomSet { key, value } = read(body)?;
            check_output(&key, &value)?;
            current(attempt_calls::set_output(cx, own, &(key, value)).await?, own)?;
            Answer::ok(&serde_json::json!({}))
        }
        Call::Hello
        | Call::Register
        | Call::TakeOver
        | Call::Poll
        | Call::Start
        | Call::Report
        | Call::Beat
        | Call::Release
        | Call::Leave
        | Call::Logs => Err(misplaced(call)),
    }
}

async fn done<T: Serialize>(reply: Reply<'_, T>) -> Done {
    Answer::ok(&reply.await?)
}

/// `Call::caller` has let it in here, so this is for a table that is ahead of this build.
fn misplaced(call: Call) -> Failure {
    Failure::new(ProblemCode::NoSuchRoute, format!("`{}` has no handler here", call.name()))
}

/// What was found, or the problem of an attempt that is not current.
fn current<T>(called: Called<T>, (id, token): (AttemptId, Token)) -> Result<T, Failure> {
    match called {
        Called::Done(value) => Ok(value),
        Called::Refused(why, text) => {
            let text = format!("{}: {text}", why.as_str());
            let mut stale = Problem::new(ProblemCode::StaleFencingToken, text);
            stale.presented_token = Some(token.as_i64().to_string());
            stale.attempt_id = Some(id.to_string());
            Err(stale.into())
        }
    }
}

/// The rules of the output file hold here too.
fn check_output(key: &str, value: &Value) -> Result<(), Failure> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if key.is_empty() || key.len() > 100 || !key.bytes().all(fits) {
        return Err(Failure::field("/key", "A-Z a-z 0-9 _ -, at most 100"));
    }
    if value.to_string().len() > OUTPUT_LIMIT {
        let text = format!("larger than {OUTPUT_LIMIT} bytes; write large data to a store");
        return Err(Failure::field("/value", text));
    }
    Ok(())
}
