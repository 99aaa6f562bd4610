//! What became of an attempt cannot be told: its page or its outcome cannot be read, or its shim died at
//! containment `group`. It is looked at again, and never guessed. It is said once, in the attempt's log,
//! with what a person can do. It holds nobody up for ever: it is let go once the store has closed it, or
//! once this worker's job is over and the next one looks at it anew.

use super::launch::blocking;
use super::{Shared, report};
use std::sync::Arc;

/// Looks before it is said: what is just being started, or has just ended, is known in a moment.
const LOOKS: u32 = 5;
/// From then on it is looked at this much less often.
const SELDOM: u32 = 5;

/// How often one attempt was looked at in vain.
#[derive(Debug, Default)]
pub(super) struct Doubt(u32);

impl Doubt {
    /// Waits for the next look; whether it was let go instead.
    pub(super) async fn is_over(
        &mut self,
        shared: &Arc<Shared>,
        (token, name): (&str, &str),
        why: &str,
    ) -> bool {
        let is_known = self.another(shared, name, why).await >= LOOKS;
        let is_closed = shared.active().get(token).is_some_and(|active| active.is_disowned);
        if is_known && is_closed {
            report::archive_later(shared, name.to_owned());
        }
        let is_over = is_known && (is_closed || shared.lease.is_over());
        if is_over {
            shared.give_back(token);
        }
        is_over
    }

    /// Likewise of one that is not ours: it takes a place from what is to run until it has been said.
    pub(super) async fn wait(&mut self, shared: &Arc<Shared>, name: &str, why: &str) -> bool {
        self.another(shared, name, why).await == LOOKS
    }

    async fn another(&mut self, shared: &Arc<Shared>, name: &str, why: &str) -> u32 {
        self.0 = self.0.saturating_add(1);
        if self.0 == LOOKS {
            tell(shared, name, why).await;
        }
        let pace = if self.0 <= LOOKS { 1 } else { SELDOM };
        super::pause(super::AFTER_TROUBLE * pace).await;
        self.0
    }
}

async fn tell(shared: &Arc<Shared>, name: &str, why: &str) {
    let token = name.split('-').next().unwrap_or(name);
    let text = format!(
        "it may still run, nothing here can tell: {why}. It is looked at again. If nothing of it runs: \
         fencepost attempts confirm-dead {token}"
    );
    let (inner, own) = (Arc::clone(shared), name.to_owned());
    let told = blocking(shared, move || {
        inner.host.remark(&own, &text);
        Ok(())
    });
    // What cannot be said is only not said.
    let _ = told.await;
    if shared.settings.ships_logs {
        shared.over().push(name.to_owned());
    }
}
