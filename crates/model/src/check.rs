//! What must be true of every state.
//!
//! The books are audited by the core ([`crate::books`]); what only a witness can know is noted as it
//! happens ([`crate::state::Witness`]); the rest is looked at here: what runs, and where.

use crate::books;
use crate::state::{Broken, Phase, State};
use crate::world::World;
use fencepost_core::audit;

/// The first promise that a state breaks.
pub(crate) fn broken(world: &World, before: Option<&State>, state: &State) -> Option<Broken> {
    if let Some(broken) = &state.witness.broken {
        return Some(broken.clone());
    }
    runs(world, state).or_else(|| budgets(world, state)).or_else(|| {
        (before.map(|b| &b.store) != Some(&state.store)).then(|| audited(world, state))?
    })
}

/// No two executions of one instance (I5), no more than the pool has slots (I14).
fn runs(world: &World, state: &State) -> Option<Broken> {
    let mut running: Vec<u8> = Vec::new();
    for shim in state.homes.iter().flat_map(|home| &home.shims) {
        if shim.phase != Phase::Running {
            continue;
        }
        if running.contains(&shim.ti) {
            let what = format!("two executions of t{} run at once", shim.ti);
            return Some(Broken { invariant: "I5", what });
        }
        running.push(shim.ti);
    }
    let count = i64::try_from(running.len()).unwrap_or(i64::MAX);
    (count > world.pool).then(|| Broken {
        invariant: "I14",
        what: format!("{count} tasks run, the pool has {} slots", world.pool),
    })
}

/// Each execution beyond the first is of a loss that was charged (I8, I10). A store that lost its last
/// commits has lost such charges too.
fn budgets(world: &World, state: &State) -> Option<Broken> {
    if world.faults.failover > 0 {
        return None;
    }
    let of_workers = world.faults.of_workers();
    let mut tis = state.store.tis.iter().enumerate();
    if !of_workers && let Some((number, _)) = tis.clone().find(|(_, ti)| ti.infra_losses > 0) {
        let what = format!("t{number} was lost, though nothing befell a worker");
        return Some(Broken { invariant: "I10", what });
    }
    tis.find_map(|(number, ti)| {
        let begun = state.witness.begun.iter().filter(|(_, of)| usize::from(*of) == number).count();
        let allowed = 1 + usize::from(ti.infra_losses);
        (begun > allowed).then(|| Broken {
            invariant: "I8",
            what: format!(
                "t{number} was executed {begun} times, {} losses are charged",
                ti.infra_losses
            ),
        })
    })
}

fn audited(world: &World, state: &State) -> Option<Broken> {
    let found = audit::audit(&books::snapshot(world, state)).into_iter().next()?;
    let what = format!("{}: {}", found.subject, found.what);
    Some(Broken { invariant: found.invariant, what })
}
