//! `wait:` tasks: queued like any, and in the same transaction deferred (I16). Their attempt ends where it
//! is made, and a trigger waits under its token.

use crate::error::EngineError;
use crate::operations::stop;
use crate::triggerer::{Asleep, trigger};
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, Rejected, TiEvent, attempt_next, ti_next};
use fencepost_core::state::{AttemptState, CountedAs, Outcome};
use fencepost_core::wait::{How, Waiting, end};
use fencepost_store::query::attempt::{self, AttemptEnd};
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::trigger::{self as rows, Trigger};
use fencepost_store::{StoreError, StoreErrorKind, Tx};

/// What a page of dispatches puts to sleep.
#[derive(Debug, Default)]
pub(super) struct Waits {
    triggers: Vec<Trigger>,
    ends: Vec<AttemptEnd>,
}

fn illegal(_: Rejected) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "dispatch", "a wait cannot begin here")
}

impl Waits {
    /// An instance that was just queued goes to sleep; a wait that cannot be read fails it.
    pub(super) fn defer(
        &mut self,
        tx: &Tx,
        ti: &mut Ti,
        token: Token,
        wait: Result<Waiting, String>,
    ) -> Result<(), EngineError> {
        attempt_next(AttemptState::Queued, AttemptEvent::End(Outcome::Deferred))
            .map_err(illegal)?;
        ti.state = ti_next(ti.state, TiEvent::Defer).map_err(illegal)?;
        ti.prev_outcome = "deferred".into();
        ti.requeues = 0;
        ti.started_at = Some(tx.now());
        let message = match wait {
            Ok(waiting) => {
                ti.reason = Some("deferred".into());
                let of = Asleep { ti, token, since: tx.now(), resumes: false };
                self.triggers.push(trigger(&of, &waiting, tx.now()));
                waiting.wait.describe()
            }
            Err(why) => {
                let how = How::Unusable(why.clone());
                ti.state = ti_next(ti.state, end(&how, false, false)).map_err(illegal)?;
                stop::finish(ti, how.reason(), tx.now());
                why
            }
        };
        self.ends.push(AttemptEnd {
            token,
            from: AttemptState::Queued,
            outcome: Outcome::Deferred,
            reason: ti.reason.clone().unwrap_or_default(),
            message: Some(message),
            exit_code: None,
            signal: None,
            counted_as: CountedAs::None,
            evidence: None,
            report_digest: None,
            containment: None,
        });
        Ok(())
    }

    /// After the attempts were made.
    pub(super) async fn write(self, tx: &Tx) -> Result<(), EngineError> {
        attempt::end(tx, &self.ends).await?;
        rows::insert(tx, &self.triggers).await?;
        Ok(())
    }
}
