//! The one way by which an instance's state changes: compare and set on (state, token).

use super::Ti;
use crate::query::trigger;
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;
use fencepost_core::state::TiState;

pub(super) const TI_CHANGE: Stmt = Stmt::same(
    "ti_change",
    "UPDATE task_instance SET state = $6, token = $7, try_number = $8, max_tries = $9,
        attempts = $10, infra_losses = $11, single_deaths = $12, requeues = $13, clears = $14,
        generation = $15, forward_due = $16, recheck = $17, retry_at = $18, next_why = $19,
        prev_outcome = $20, reason = $21, scheduled_at = $22, queued_at = $23, started_at = $24,
        ended_at = $25
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND state = $4 AND token = $5",
)
.batched(
    3,
    "UPDATE task_instance t SET state = u.state, token = u.token, try_number = \
        u.try_number, max_tries = u.max_tries, attempts = u.attempts, infra_losses = \
        u.infra_losses, single_deaths = u.single_deaths, requeues = u.requeues, clears = \
        u.clears, generation = u.generation, forward_due = u.forward_due, recheck = \
        u.recheck, retry_at = u.retry_at, next_why = u.next_why, prev_outcome = \
        u.prev_outcome, reason = u.reason, scheduled_at = u.scheduled_at, queued_at = \
        u.queued_at, started_at = u.started_at, ended_at = u.ended_at FROM \
        unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], \
        $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], \
        $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], \
        $17::bigint[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::bigint[], \
        $23::bigint[], $24::bigint[], $25::bigint[]) WITH ORDINALITY AS u(run_pk, \
        task_index, map_index, from_state, from_token, state, token, try_number, max_tries, \
        attempts, infra_losses, single_deaths, requeues, clears, generation, forward_due, \
        recheck, retry_at, next_why, prev_outcome, reason, scheduled_at, queued_at, \
        started_at, ended_at, ord) WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index \
        AND t.map_index = u.map_index AND t.state = u.from_state AND t.token = u.from_token \
        RETURNING u.ord",
);

/// A change of an instance: what was read, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TiChange {
    pub from: TiState,
    pub from_token: Option<Token>,
    pub to: Ti,
}

impl TiChange {
    /// A change of `ti`, to be edited in `to`.
    pub fn of(ti: &Ti) -> Self {
        Self { from: ti.state, from_token: ti.token, to: ti.clone() }
    }
}

/// Compares and sets on (state, token); for each whether it was still so.
pub async fn change(tx: &Tx, changes: &[TiChange]) -> Result<Vec<bool>, StoreError> {
    let sets = changes
        .iter()
        .map(|change| {
            let t = &change.to;
            values![
                t.key.run_pk,
                t.key.task_index,
                t.key.map_index,
                change.from.as_str(),
                change.from_token.map_or(0, Token::as_i64),
                t.state.as_str(),
                t.token.map_or(0, Token::as_i64),
                t.try_number,
                t.max_tries,
                t.attempts,
                t.infra_losses,
                t.single_deaths,
                t.requeues,
                t.clears,
                t.generation,
                t.forward_due,
                t.recheck,
                t.retry_at,
                &t.next_why,
                &t.prev_outcome,
                t.reason.clone(),
                t.scheduled_at,
                t.queued_at,
                t.started_at,
                t.ended_at,
            ]
        })
        .collect();
    let changed: Vec<bool> =
        tx.execute_many(&TI_CHANGE, sets).await?.into_iter().map(|n| n == 1).collect();
    // No trigger outlives the wait that it is of (I13), whoever ends that.
    let over = changes.iter().zip(&changed).filter(|(change, changed)| {
        **changed && change.from == TiState::Deferred && change.to.state != TiState::Deferred
    });
    let over: Vec<Token> = over.filter_map(|(change, _)| change.from_token).collect();
    if !over.is_empty() {
        trigger::delete(tx, &over).await?;
    }
    Ok(changed)
}
