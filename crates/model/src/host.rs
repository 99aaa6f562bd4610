//! Machines: what lies in a home and what runs there, with or without a worker.

use crate::state::{End, Held, Job, Life, Phase, Shim, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::time::BootInstant;

impl State {
    /// The shim of an attempt's n-th start.
    pub(crate) fn start_of(&mut self, home: u8, (token, start): (Token, u8)) -> Option<&mut Shim> {
        let home = self.homes.get_mut(usize::from(home))?;
        home.shims.iter_mut().find(|shim| shim.token == token && shim.start == start)
    }

    pub(crate) fn phase_of(&self, home: u8, (token, start): (Token, u8)) -> Option<Phase> {
        let home = self.homes.get(usize::from(home))?;
        let is_it = |shim: &&Shim| shim.token == token && shim.start == start;
        home.shims.iter().find(is_it).map(|shim| shim.phase)
    }

    /// The newest start of an attempt in a home.
    pub(crate) fn newest(&self, home: u8, token: Token) -> Option<&Shim> {
        let home = self.homes.get(usize::from(home))?;
        home.shims.iter().filter(|shim| shim.token == token).max_by_key(|shim| shim.start)
    }

    /// Whether a process lives that may hold the lock of what it prepared.
    pub(crate) fn lives(&self, job: Job) -> bool {
        self.workers.iter().any(|worker| worker.job == job && worker.life != Life::Dead)
    }

    pub(crate) fn remove(&mut self, home: u8, (token, start): (Token, u8)) {
        let Some(home) = self.homes.get_mut(usize::from(home)) else { return };
        home.shims.retain(|shim| shim.token != token || shim.start != start);
    }
}

/// Makes the directory of a start, locked.
pub(crate) fn prepare(state: &mut State, home: u8, held: &Held, lease: (Job, Option<BootInstant>)) {
    let (by, deadline) = lease;
    if state.phase_of(home, (held.token, held.starts)).is_some() {
        return;
    }
    let shim = Shim {
        token: held.token,
        start: held.starts,
        ti: held.ti,
        phase: Phase::Prepared,
        deadline,
        generation: 0,
        by,
    };
    if let Some(home) = state.homes.get_mut(usize::from(home)) {
        home.shims.push(shim);
        home.shims.sort_by_key(|shim| (shim.token, shim.start));
    }
}

/// Forks the shim.
pub(crate) fn launch(world: &World, state: &mut State, home: u8, start: (Token, u8)) {
    if let Some(shim) = state.start_of(home, start).filter(|shim| shim.phase == Phase::Prepared) {
        shim.phase = Phase::Launched;
    }
    if !world.slow_shims {
        begin(state, home, start);
    }
}

/// The shim comes to the start of the task, unless its deadline has passed.
pub(crate) fn begin(state: &mut State, home: u8, start: (Token, u8)) {
    let now = crate::state::boot(state.now);
    let Some(shim) = state.start_of(home, start).filter(|shim| shim.phase == Phase::Launched)
    else {
        return;
    };
    if shim.deadline.is_some_and(|deadline| now >= deadline) {
        shim.phase = Phase::Ended(End::NeverRan);
        return;
    }
    shim.phase = Phase::Running;
    let (token, ti) = (shim.token, shim.ti);
    let begun = &state.witness.begun;
    if begun.iter().any(|(other, _)| *other == token) {
        state.witness.breaks("I5", || format!("{token} is executed twice"));
        return;
    }
    // One that the store has forgotten may have been there before: a sink refuses this one then.
    let is_newer = |other: Token| other > token && state.store.attempt(other).is_some();
    let newer = begun.iter().find(|(other, of)| *of == ti && is_newer(*other)).copied();
    if let Some((newer, _)) = newer {
        let what = || format!("{token} of t{ti} begins after {newer} has written to its sink");
        state.witness.breaks("I6", what);
    }
    state.witness.begun.push((token, ti));
    state.witness.begun.sort_unstable();
}

/// Ends what runs of a start.
pub(crate) fn end(state: &mut State, home: u8, start: (Token, u8), end: End) {
    if let Some(shim) = state.start_of(home, start).filter(|shim| shim.phase == Phase::Running) {
        shim.phase = Phase::Ended(end);
    }
}

/// What kills by itself at its deadline, whoever lives.
pub(crate) fn deadlines(state: &mut State) {
    let now = crate::state::boot(state.now);
    for shim in state.homes.iter_mut().flat_map(|home| home.shims.iter_mut()) {
        if shim.phase == Phase::Running && shim.deadline.is_some_and(|deadline| now >= deadline) {
            shim.phase = Phase::Ended(End::Fenced);
        }
    }
}

/// Whether a worker may touch a page that it has taken into its hands; without the guard it does,
/// whoever owns it now, and that is seen (I10).
pub(crate) fn may_touch(world: &World, state: &mut State, home: u8, held: &Held) -> bool {
    let start = (held.token, held.starts);
    let Some(own) = held.generation else { return false };
    let Some(shim) = state.start_of(home, start) else { return false };
    let is_owner = shim.generation == own;
    let runs = shim.phase == Phase::Running;
    if is_owner || world.guards.on(Guard::OwnerWord) {
        return is_owner;
    }
    if runs {
        let what =
            || format!("a worker of the past touches {}, which has another owner", held.token);
        state.witness.breaks("I10", what);
    }
    true
}
