//! Which scheduled instances get an attempt now: the highest priorities that the limits allow.
//!
//! What is held is read from the rows of the holds (one per attempt), never from a counter, so the
//! limits cannot drift (I14). Room that one pool, DAG or task lacks does not hold up the others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sizes and what is held, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Free slots of each pool; may be negative after a pool was made smaller.
    pub pools: BTreeMap<String, i64>,
    /// Instances that each DAG may still have active (`max_active_tasks`).
    pub dags: BTreeMap<String, i64>,
    /// Instances that each task of a DAG may still have active over all runs.
    pub tasks: BTreeMap<(String, u32), i64>,
    /// Instances that each task of a run may still have active.
    pub run_tasks: BTreeMap<(i64, u32), i64>,
}

/// A scheduled instance, in the order in which it is to be considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub run: i64,
    pub task: u32,
    pub dag_id: String,
    pub pool: String,
    pub pool_slots: i64,
}

/// Why a candidate must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocked {
    /// `pool_full`
    Pool,
    /// The task wants more slots than its pool has (or the pool does not exist).
    PoolTooSmall,
    /// `dag_task_limit`
    DagLimit,
    /// `task_limit`
    TaskLimit,
}

/// The place of a candidate among others, the smallest first: by priority, among equals the DAG that has
/// least in hand, so that one with very much to do does not hold up the others; then the oldest run, in the
/// order of the file.
pub fn place<K: Ord>(priority: i32, dag_in_hand: i64, key: K) -> impl Ord {
    (Reverse(priority), dag_in_hand, key)
}

/// Takes room for a candidate, or says what it lacks. A pool that is unknown has no room.
pub fn admit(room: &mut Room, candidate: &Candidate) -> Result<(), Blocked> {
    let task_key = (candidate.dag_id.clone(), candidate.task);
    let run_key = (candidate.run, candidate.task);
    let free = room.pools.get(&candidate.pool).copied().ok_or(Blocked::PoolTooSmall)?;
    if free < candidate.pool_slots {
        return Err(Blocked::Pool);
    }
    if room.dags.get(&candidate.dag_id).is_some_and(|free| *free < 1) {
        return Err(Blocked::DagLimit);
    }
    let task_full = room.tasks.get(&task_key).is_some_and(|free| *free < 1);
    if task_full || room.run_tasks.get(&run_key).is_some_and(|free| *free < 1) {
        return Err(Blocked::TaskLimit);
    }
    *room.pools.entry(candidate.pool.clone()).or_default() -= candidate.pool_slots;
    take(&mut room.dags, &candidate.dag_id);
    take(&mut room.tasks, &task_key);
    take(&mut room.run_tasks, &run_key);
    Ok(())
}

fn take<K: Ord>(room: &mut BTreeMap<K, i64>, key: &K) {
    if let Some(free) = room.get_mut(key) {
        *free -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Slots held never exceed the size, whatever comes in whatever order (I14).
        #[test]
        fn admission_never_exceeds_a_limit(
            size in 0_i64..8,
            dag_limit in 0_i64..6,
            wants in prop::collection::vec((0_u32..3, 1_i64..4, 0_i64..3), 0..40),
        ) {
            let mut room = Room::default();
            room.pools.insert("p".into(), size);
            room.dags.insert("d".into(), dag_limit);
            room.tasks.insert(("d".into(), 1), 2);
            room.run_tasks.insert((1, 2), 1);
            let mut held = (0, 0, 0, 0);
            for (task, pool_slots, run) in wants {
                let candidate = Candidate {
                    run, task, dag_id: "d".into(), pool: "p".into(), pool_slots,
                };
                if admit(&mut room, &candidate).is_ok() {
                    held.0 += pool_slots;
                    held.1 += 1;
                    held.2 += i32::from(task == 1);
                    held.3 += i32::from(task == 2 && run == 1);
                }
            }
            prop_assert!(held.0 <= size && held.1 <= dag_limit && held.2 <= 2 && held.3 <= 1);
        }
    }

    #[test]
    fn priority_goes_before_shares_and_shares_before_age() {
        let mut heads = [(1, 9, 1), (5, 9, 4), (5, 2, 6), (5, 2, 5)];
        heads.sort_by_key(|(priority, in_hand, run)| place(*priority, *in_hand, *run));
        assert_eq!(heads, [(5, 2, 5), (5, 2, 6), (5, 9, 4), (1, 9, 1)]);
    }

    #[test]
    fn a_shrunk_pool_stops_nobody_else() {
        let mut room = Room::default();
        room.pools.insert("small".into(), -3);
        room.pools.insert("other".into(), 1);
        let of = |pool: &str| Candidate {
            run: 1,
            task: 0,
            dag_id: "d".into(),
            pool: pool.into(),
            pool_slots: 1,
        };
        assert_eq!(admit(&mut room, &of("small")), Err(Blocked::Pool));
        assert_eq!(admit(&mut room, &of("nowhere")), Err(Blocked::PoolTooSmall));
        assert_eq!(admit(&mut room, &of("other")), Ok(()));
    }
}
