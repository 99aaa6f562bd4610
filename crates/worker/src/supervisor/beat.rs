//! The worker's beat: leases are pushed, and the server says what is no longer ours.

use super::Shared;
use super::checkpoint::Seen;
use fencepost_api::execution::{Beat, StopOrder};
use std::sync::Arc;
use std::time::Duration;

/// With nothing running a beat is only a sign of life.
const IDLE_BEAT: Duration = Duration::from_mins(1);

pub(super) async fn run(shared: Arc<Shared>) {
    let mut seq = 0_i64;
    let mut since_beat = Duration::ZERO;
    let mut seen = Seen::default();
    let interval = shared.settings.heartbeat_interval;
    loop {
        super::pause(interval).await;
        since_beat += interval;
        push(&shared);
        let inventory = shared.active_tokens();
        if inventory.is_empty() && since_beat < IDLE_BEAT {
            continue;
        }
        seq += 1;
        since_beat = Duration::ZERO;
        seen.keep(&inventory);
        let checkpoints = checkpoints(&shared, &mut seen);
        let job_id = shared.who.job_id.clone();
        let beat = Beat { job_id, seq, loop_age_ms: 0, inventory, checkpoints };
        // A beat that fails is followed by the next one; deadlines are pushed by time alone here,
        // since in standalone mode the store lies under the same kernel and home lock.
        if let Ok(answer) = shared.api.beat(beat).await {
            disown(&shared, answer.disowned);
        }
    }
}

fn checkpoints(shared: &Shared, seen: &mut Seen) -> Vec<(String, String)> {
    let names: Vec<(String, String)> = shared
        .active()
        .iter()
        .filter(|(_, active)| active.running.is_some())
        .map(|(token, active)| (token.clone(), active.name.clone()))
        .collect();
    let look = |(token, name): (String, String)| {
        let content = seen.look(shared.host.as_ref(), &token, &name)?;
        Some((token, content))
    };
    names.into_iter().filter_map(look).collect()
}

/// Pushes every deadline of ours forward.
fn push(shared: &Shared) {
    let (deadline, now) = (shared.lease().deadline_ns, (shared.settings.now_ns)());
    for active in shared.active().values() {
        if let Some(running) = &active.running {
            // A refusal means that it has ended or has another owner: the watch sees it.
            let _ = running.push(deadline, now);
        }
    }
}

/// Ends what the store says is not ours. An attempt whose report is under way is left alone: its
/// end is known.
fn disown(shared: &Shared, tokens: Vec<String>) {
    for token in tokens {
        let runs = shared.active().get(&token).is_some_and(|active| active.running.is_some());
        if runs {
            let (reason, by) = ("superseded".into(), "server".into());
            shared.stop(&StopOrder { token, reason, by, kill_now: false });
        }
    }
}
