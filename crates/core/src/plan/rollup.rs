//! The end of a run, from the ends of its leaves.

use crate::lifecycle::RunEvent;
use crate::state::{StopReason, TiState};

/// How a run ends once none of its instances is left: a cancel wins, then a failed leaf, as in
/// Airflow. `leaves` are the states of the instances of tasks without downstreams.
pub fn run_end(stop: Option<StopReason>, leaves: &[TiState]) -> (RunEvent, &'static str) {
    match stop {
        Some(StopReason::Cancel | StopReason::Kill) => (RunEvent::Cancel, "cancel"),
        Some(StopReason::DagrunTimeout) => (RunEvent::Fail, "dagrun_timeout"),
        Some(StopReason::FailFast) => (RunEvent::Fail, "fail_fast"),
        Some(StopReason::Clear | StopReason::Mark) | None => {
            let failed = |s: &TiState| matches!(s, TiState::Failed | TiState::UpstreamFailed);
            if leaves.iter().any(failed) {
                (RunEvent::Fail, "task_failed")
            } else {
                (RunEvent::Succeed, "done")
            }
        }
    }
}
