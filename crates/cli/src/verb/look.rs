//! Questions that the store answers as well as a server does: asked of the server, and of the store itself
//! where one is named, or where no server answers and the configuration names one.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::store::{self, Address};
use fencepost_core::time::Timestamp;
use serde_json::Value;

/// An answer, and the time by the clock of whoever gave it.
pub(super) type Told = (Value, Timestamp);

/// Asks. `here` looks into the store.
pub(super) fn ask<F: Future<Output = Outcome<Value>>>(
    cx: &Cx,
    url: Option<&String>,
    there: impl FnOnce(&Client) -> Outcome<Value>,
    here: impl FnOnce(fencepost_engine::Cx) -> F,
) -> Outcome<Told> {
    if url.is_some() {
        return look(&Address::find(cx, url)?, here);
    }
    let answer = cx.client().and_then(|client| Ok((there(&client)?, client.now())));
    let away = match answer {
        Err(error) if error.exit == Exit::Unreachable => error,
        answer => return answer,
    };
    // No store is there, or somebody lives who has it: that no server answers is what there is to say.
    let Ok(told) = Address::find(cx, None).and_then(|address| look(&address, here)) else {
        return Err(away);
    };
    cx.out.remark("no server answers: read from the store itself");
    Ok(told)
}

fn look<F: Future<Output = Outcome<Value>>>(
    address: &Address,
    here: impl FnOnce(fencepost_engine::Cx) -> F,
) -> Outcome<Told> {
    store::wait_for(async {
        let (opened, _lock) = store::open(address).await?;
        let engine = store::engine(opened);
        let now = engine.store.clock().now();
        Ok((here(engine).await?, now))
    })
}

/// A failure of the engine as this command's.
pub(super) fn failed(error: &impl ToString) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}
