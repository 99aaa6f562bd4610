//! The store's rows as the core's audit reads them: the one that the simulator and `fencepost doctor`
//! run.

use crate::state::{AttemptRow, State};
use crate::world::World;
use fencepost_core::audit::{
    AuditAttempt, AuditOutput, AuditPool, AuditRun, AuditTask, AuditTi, Snapshot,
};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, CountedAs, JobState, Outcome, RunState};
use fencepost_core::trigger_rule::UpstreamCounts;

const RUN: i64 = 1;

pub(crate) fn snapshot(world: &World, state: &State) -> Snapshot {
    let store = &state.store;
    let unfinished = store.tis.iter().filter(|ti| !ti.state.is_finished()).count();
    let is_over = unfinished == 0;
    let run = AuditRun {
        run: RUN,
        name: "r".into(),
        state: if is_over { RunState::Success } else { RunState::Running },
        unfinished: i64::try_from(unfinished).unwrap_or(i64::MAX),
    };
    let tis = store.tis.iter().zip(0_u32..).map(|(ti, task)| AuditTi {
        run: RUN,
        task,
        map_index: -1,
        name: format!("t{task}"),
        state: ti.state,
        token: ti.token,
        has_timer: false,
        forward_due: false,
        recheck: false,
        upstream: UpstreamCounts::default(),
        try_number: 1,
        max_tries: 1,
        attempts: u32::from(ti.attempts),
        infra_losses: u32::from(ti.infra_losses),
        clears: 0,
        logged: None,
    });
    let tasks = (0_u32..).take(store.tis.len()).map(|task| AuditTask {
        run: RUN,
        task,
        upstreams: Vec::new(),
        infra_retries: world.task.infra_retries,
    });
    let held = store.attempts.iter().filter(|row| row.holds).count();
    let pool = AuditPool {
        name: "p".into(),
        slots: world.pool,
        held: i64::try_from(held).unwrap_or(i64::MAX),
        shrunk: false,
    };
    Snapshot {
        runs: vec![run],
        tasks: tasks.collect(),
        tis: tis.collect(),
        attempts: store.attempts.iter().map(|row| attempt(state, row)).collect(),
        outputs: store.attempts.iter().filter_map(output).collect(),
        pools: vec![pool],
        highest_minted: Token::new(store.epoch, store.counter).ok(),
        ..Snapshot::default()
    }
}

fn attempt(state: &State, row: &AttemptRow) -> AuditAttempt {
    let owner = row.job.and_then(|job| state.store.job(job));
    let is_over = owner.is_some_and(|owner| {
        matches!(owner.state, JobState::Lost | JobState::Stopped) && !owner.pages
    });
    let number = state.store.attempts.iter().filter(|other| other.ti == row.ti);
    let number = number.filter(|other| other.token <= row.token).count();
    AuditAttempt {
        token: row.token,
        number: u32::try_from(number).unwrap_or(u32::MAX),
        run: RUN,
        task: u32::from(row.ti),
        map_index: -1,
        state: row.state,
        outcome: row.outcome,
        counted_as: row.infra.then_some(CountedAs::Infra),
        owned: row.job.is_some(),
        abandoned: is_over && !matches!(row.state, AttemptState::Ended | AttemptState::LostOpen),
        started: row.start_id.is_some(),
        holds: u32::from(row.holds),
    }
}

/// Each success has left something.
fn output(row: &AttemptRow) -> Option<AuditOutput> {
    (row.outcome == Some(Outcome::Success)).then(|| AuditOutput {
        run: RUN,
        task: u32::from(row.ti),
        map_index: -1,
        token: row.token,
    })
}
