//! The orderly end of a worker: what runs is waited for, and then left to its shims; where these end with
//! the worker it is ended in time, reported and released.

use super::{Shared, pause};
use crate::outcome::Reason;
use std::sync::Arc;
use std::time::Duration;

/// What the last reports and logs take.
const REPORTING: Duration = Duration::from_secs(2);

/// What is still running when the time for it is over.
pub(super) async fn drain(shared: &Arc<Shared>) -> Vec<String> {
    let Some(whole) = shared.settings.stop_timeout else {
        return wait(shared, shared.settings.drain_timeout).await;
    };
    let Stages { free, grace } = stages(whole, shared.settings.kill_grace);
    if wait(shared, free).await.is_empty() {
        return Vec::new();
    }
    shared.end_all_for(Reason::Drain, false);
    if wait(shared, grace).await.is_empty() {
        return Vec::new();
    }
    shared.end_all_for(Reason::Drain, true);
    wait(shared, whole.saturating_sub(free).saturating_sub(grace)).await
}

/// The time of an end: first what runs may come to its own end, then it gets SIGTERM.
#[derive(Debug, PartialEq, Eq)]
struct Stages {
    free: Duration,
    grace: Duration,
}

fn stages(whole: Duration, kill_grace: Duration) -> Stages {
    let reporting = REPORTING.min(whole / 4);
    let grace = kill_grace.min(whole / 2);
    Stages { free: whole.saturating_sub(reporting).saturating_sub(grace), grace }
}

async fn wait(shared: &Arc<Shared>, most: Duration) -> Vec<String> {
    let over = pause(most);
    tokio::pin!(over);
    loop {
        let left = shared.active_tokens();
        if left.is_empty() {
            return left;
        }
        tokio::select! {
            biased;
            () = &mut over => return left,
            () = shared.lease.over() => return left,
            () = shared.changed.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigterm_comes_early_enough_for_the_kill_and_the_report() {
        let secs = Duration::from_secs;
        assert_eq!(stages(secs(25), secs(10)), Stages { free: secs(13), grace: secs(10) });
        // A long grace gets half of the time.
        assert_eq!(stages(secs(24), secs(30)), Stages { free: secs(10), grace: secs(12) });
        assert_eq!(stages(secs(4), secs(30)), Stages { free: secs(1), grace: secs(2) });
        assert_eq!(stages(Duration::ZERO, secs(30)).free, Duration::ZERO);
    }
}
