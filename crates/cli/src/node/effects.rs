//! What the outbox asks for: to remove the logs of runs that were deleted.

use fencepost_engine::outbox::Perform;
use fencepost_worker::supervisor::remove_archived;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn perform(home: PathBuf) -> Perform {
    Arc::new(move |effect| match effect.kind.as_str() {
        "purge_logs" => {
            let tokens = effect.payload.as_array().into_iter().flatten();
            for token in tokens.filter_map(|token| token.as_str()) {
                remove_archived(&home, token).map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        other => Err(format!("this version cannot carry out `{other}`")),
    })
}

/// Where workers are elsewhere: what the store keeps of their logs went with the run.
pub(super) fn none() -> Perform {
    Arc::new(|effect| match effect.kind.as_str() {
        "purge_logs" => Ok(()),
        other => Err(format!("this version cannot carry out `{other}`")),
    })
}
