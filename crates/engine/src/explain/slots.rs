//! Runs that wait for their backfill, and slots that were missed.

use super::Gates;
use crate::error::EngineError;
use fencepost_core::schedule::SlotPolicy;
use fencepost_core::state::BackfillState;
use fencepost_store::Tx;
use fencepost_store::query::backfill;
use fencepost_store::query::run::Run;

/// Why a slot was given up.
pub(super) fn missed(run: &Run, why: &str, gates: &mut Gates) {
    let late =
        run.ended_at.map_or_else(String::new, |at| at.since(run.run_after).in_secs().to_string());
    let (code, text) = match why {
        SlotPolicy::LATE => {
            ("start_deadline_passed", format!("slot was {late} late; recorded as missed"))
        }
        SlotPolicy::SUPERSEDED => (
            "slot_superseded",
            "a newer slot was due already, and `catchup: false` runs the newest only".into(),
        ),
        other => {
            let overlap = other.trim_start_matches("overlap_");
            let text = format!("max_active_runs were active: `overlap: {overlap}` let it go");
            ("overlap", text)
        }
    };
    gates.add(code, false, text);
    let day = run.logical_date.map_or_else(String::new, |date| date.to_string());
    let range = format!("--from-date {day} --to-date {day}");
    let next = format!("run it all the same:  fencepost backfill create {} {range}", run.dag_id);
    gates.hold(Vec::new(), Some(next));
}

/// What a queued run of a backfill waits for.
pub(super) async fn of_backfill(tx: &Tx, run: &Run, gates: &mut Gates) -> Result<(), EngineError> {
    let Some(key) = run.backfill_pk else { return Ok(()) };
    let Some(of) = backfill::get(tx, key).await? else { return Ok(()) };
    let is_on = !of.paused && of.state == BackfillState::Running;
    let word = if of.paused { "paused" } else { of.state.as_str() };
    if gates.add("backfill_paused", is_on, format!("backfill {key} is {word}")) {
        let resume = of.paused.then(|| format!("fencepost backfill resume {key}"));
        gates.hold(Vec::new(), resume);
    }
    let text = format!("{} of {} runs of backfill {key} active", of.running, of.max_active_runs);
    if gates.add("backfill_full", of.running < of.max_active_runs, text) {
        let next = "wait; its limit is fixed when it is made (--max-active-runs)";
        gates.hold(Vec::new(), Some(next.into()));
    }
    Ok(())
}
