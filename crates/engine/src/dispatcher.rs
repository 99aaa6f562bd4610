//! The dispatcher's pass: scheduled instances get an attempt, a token and their holds, in one
//! transaction, as far as the limits allow.

mod waits;

use crate::catalog::Version;
use crate::error::EngineError;
use crate::liveness::reconcile::stays_apart;
use crate::liveness::{gate, reconcile, renew_epoch};
use crate::log;
use crate::operations::ramp::RECOVERS;
use crate::triggerer;
use crate::{Cx, Pass, Report, Share};
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::plan::dispatch::{Blocked, Candidate, Room, admit, place};
use fencepost_core::state::Why;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, NewAttempt};
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::event;
use fencepost_store::query::installation;
use fencepost_store::query::pool::{self, Active, Hold};
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, CandidatePlace, Ti, TiChange};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use tokio::try_join;

/// Candidates read at a time from one DAG and pool.
const PAGE: u32 = 128;
/// When limits that another dispatcher has in hand are looked at again.
const AGAIN: Span = Span::from_millis(20);
/// Attempts made in one transaction.
const BATCH: usize = 512;

use waits::Waits;

/// The pass. It remembers nothing between turns.
#[derive(Debug, Default)]
pub struct Dispatcher;

impl Pass for Dispatcher {
    fn name(&self) -> &'static str {
        "dispatcher"
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = Report::default();
            let share = Share::of(cx);
            loop {
                let moved = match dispatch(cx, &mut report).await {
                    // What was chosen is let go; the next pass mints in the new epoch.
                    Err(error) if error.is_epoch_over() => {
                        renew_epoch(cx).await?;
                        report.next_due = Some(cx.store.clock().now());
                        return Ok(report);
                    }
                    moved => moved?,
                };
                report.moved += moved;
                if moved < BATCH || share.is_over(cx) {
                    return Ok(report);
                }
            }
        })
    }
}

async fn dispatch(cx: &Cx, report: &mut Report) -> Result<usize, EngineError> {
    let look = cx.store.read("look_for_scheduled").await?;
    let none = (String::new(), String::new());
    let (standing, first) = try_join!(
        biased;
        installation::standing(&look),
        task_instance::next_pair(&look, &none),
    )?;
    drop(look);
    if !gate::is_open(cx, standing.as_ref()) && !reconcile::finish(cx, report).await? {
        return Ok(0);
    }
    if first.is_none() {
        return Ok(0);
    }
    let tx = cx.store.begin("dispatch").await?;
    let chosen = choose(cx, &tx, report).await?;
    if chosen.is_empty() {
        return Ok(0);
    }
    queue(cx, &tx, &chosen).await?;
    tx.commit().await?;
    cx.wakes.workers();
    Ok(chosen.len())
}

/// The instances that get an attempt now, the highest priorities first.
async fn choose(cx: &Cx, tx: &Tx, report: &mut Report) -> Result<Vec<Ti>, EngineError> {
    let pairs = pairs(tx).await?;
    let locked = lock(tx, &pairs).await?;
    if locked.is_partial {
        let again = tx.now().plus(AGAIN);
        report.merge(Report { next_due: Some(again), ..Report::default() });
    }
    // Counted under the locks: what others gave away before is seen, and nobody gives more away.
    let held = pool::active_of_dags(tx).await?;
    let standing = installation::standing(tx).await?;
    let is_apart = gate::stays_apart(standing.as_ref());
    let (room, dags, active) = (locked.room, locked.dags, None);
    let mut desk = Desk { cx, tx, room, dags, held, active, is_apart, report };
    let mut streams: Vec<Stream> = Vec::new();
    for pair in &pairs {
        streams.extend(desk.open(pair).await?);
    }
    let mut chosen: Vec<Ti> = Vec::new();
    while chosen.len() < BATCH {
        let heads = streams.iter().enumerate().filter_map(|(i, s)| Some((i, desk.place(s)?)));
        let Some((best, _)) = heads.min_by(|(_, a), (_, b)| a.cmp(b)) else { break };
        let Some(stream) = streams.get_mut(best) else { break };
        let Some(ti) = desk.take(stream).await? else { continue };
        match admit(&mut desk.room, &candidate(&ti)) {
            Ok(()) => chosen.push(ti),
            // The rest of this DAG and pool lacks the same room.
            Err(Blocked::DagLimit | Blocked::PoolTooSmall) => stream.close(),
            Err(Blocked::Pool) if ti.pool_slots <= 1 => stream.close(),
            // Another task, or one that wants fewer slots, may still fit.
            Err(Blocked::Pool | Blocked::TaskLimit) => {}
        }
    }
    Ok(chosen)
}

/// The (DAG, pool) pairs with scheduled instances.
async fn pairs(tx: &Tx) -> Result<Vec<(String, String)>, EngineError> {
    let mut pairs = Vec::new();
    let mut pair = (String::new(), String::new());
    while let Some(next) = task_instance::next_pair(tx, &pair).await? {
        pairs.push(next.clone());
        pair = next;
    }
    Ok(pairs)
}

/// Limits that are in this dispatcher's hands until its commit.
struct Locked {
    dags: BTreeMap<String, DagRow>,
    /// What is free of the pools.
    room: Room,
    /// Another dispatcher has some: what it leaves is looked at again soon.
    is_partial: bool,
}

/// Locks the pools and DAGs of pairs, in the order of their names and pools first, as far as nobody
/// else has them: limits are kept by whoever holds the row that states them.
async fn lock(tx: &Tx, pairs: &[(String, String)]) -> Result<Locked, EngineError> {
    let names: BTreeSet<&str> = pairs.iter().map(|(_, pool)| pool.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let (pools, known) = try_join!(biased; pool::take(tx, &names), pool::list(tx))?;
    let pools: BTreeSet<String> = pools.into_iter().collect();
    let is_elsewhere =
        |name: &&str| !pools.contains(*name) && known.iter().any(|pool| pool.name == **name);
    let mut is_partial = names.iter().any(is_elsewhere);
    let mut dags = BTreeMap::new();
    let wanted = pairs.iter().filter(|(_, pool)| pools.contains(pool)).map(|(dag_id, _)| dag_id);
    for dag_id in wanted.collect::<BTreeSet<_>>() {
        match dag::take(tx, dag_id).await? {
            Some(row) => drop(dags.insert(dag_id.clone(), row)),
            None => is_partial |= dag::get(tx, dag_id).await?.is_some(),
        }
    }
    let mut room = Room::default();
    for pool in known.into_iter().filter(|pool| pools.contains(&pool.name)) {
        room.pools.insert(pool.name, pool.slots - pool.held);
    }
    Ok(Locked { dags, room, is_partial })
}

/// The candidates of one DAG and pool, read page by page.
struct Stream {
    dag: DagRow,
    pool: String,
    page: VecDeque<Ti>,
    after: CandidatePlace,
    more: bool,
}

impl Stream {
    fn close(&mut self) {
        self.page.clear();
        self.more = false;
    }
}

/// What a choice is made from.
struct Desk<'a> {
    cx: &'a Cx,
    tx: &'a Tx,
    room: Room,
    dags: BTreeMap<String, DagRow>,
    /// What is active before this choice, by DAG.
    held: BTreeMap<String, i64>,
    /// The same by task of a run, once a task with a limit of its own was met.
    active: Option<Vec<Active>>,
    /// Instances wait whose executions are never to overlap.
    is_apart: bool,
    report: &'a mut Report,
}

impl Desk<'_> {
    /// Opens a stream; `None` if nothing of it can run.
    async fn open(&mut self, pair: &(String, String)) -> Result<Option<Stream>, EngineError> {
        let (dag_id, pool) = pair;
        if self.room.pools.get(pool).is_none_or(|free| *free < 1) {
            return Ok(None);
        }
        let Some(dag) = self.dags.get(dag_id).cloned() else { return Ok(None) };
        if dag.is_paused {
            return Ok(None);
        }
        let held = self.held.get(dag_id).copied().unwrap_or(0);
        self.room.dags.entry(dag_id.clone()).or_insert(dag.max_active_tasks - held);
        let (pool, page) = (pool.clone(), VecDeque::new());
        let mut stream = Stream { dag, pool, page, after: CandidatePlace::FIRST, more: true };
        self.fill(&mut stream).await?;
        Ok(Some(stream))
    }

    /// The place of a stream's head among those of the others.
    fn place(&self, stream: &Stream) -> Option<impl Ord + use<>> {
        let (ti, dag) = (stream.page.front()?, &stream.dag);
        let free = self.room.dags.get(&dag.dag_id).copied().unwrap_or(dag.max_active_tasks);
        Some(place(ti.priority, dag.max_active_tasks - free, ti.key))
    }

    async fn take(&mut self, stream: &mut Stream) -> Result<Option<Ti>, EngineError> {
        let taken = stream.page.pop_front();
        self.fill(stream).await?;
        Ok(taken)
    }

    /// Reads on if nothing is left to look at. Instances whose version cannot be read stay where
    /// they are, and hide nobody.
    async fn fill(&mut self, stream: &mut Stream) -> Result<(), EngineError> {
        while stream.page.is_empty() && stream.more {
            let pair = (stream.dag.dag_id.clone(), stream.pool.clone());
            let found = task_instance::candidates(self.tx, &pair, stream.after, PAGE).await?;
            stream.more = found.len() == PAGE as usize;
            stream.after = found.last().map_or(stream.after, CandidatePlace::of);
            let runs = unique(found.iter().map(|ti| ti.key.run_pk).collect());
            let mut versions = BTreeMap::new();
            for run in run::by_pks(self.tx, &runs).await? {
                match self.cx.catalog.version(self.tx, run.version_pk).await {
                    Ok(version) => drop(versions.insert(run.run_pk, version)),
                    Err(trouble) => self.report.troubles.push(trouble.of_one_version()?),
                }
            }
            for ti in found {
                let Some(version) = versions.get(&ti.key.run_pk) else { continue };
                let task = version.dag.tasks.get(ti.key.task_index as usize);
                if self.is_apart && task.is_some_and(stays_apart) {
                    continue;
                }
                self.limit(version, &ti).await?;
                stream.page.push_back(ti);
            }
        }
        Ok(())
    }

    /// Enters the limits of an instance's task into the room, less what is active.
    async fn limit(&mut self, version: &Version, ti: &Ti) -> Result<(), EngineError> {
        let (dag_id, run, index) = (&ti.dag_id, ti.key.run_pk, ti.key.task_index);
        let Some(task) = version.dag.tasks.get(index as usize) else { return Ok(()) };
        let limits = &task.limits;
        if limits.max_active_tis_per_dag.or(limits.max_active_tis_per_dagrun).is_none() {
            return Ok(());
        }
        let active = match self.active.take() {
            Some(active) => active,
            None => pool::active(self.tx).await?,
        };
        let active = self.active.insert(active);
        let own = active.iter().filter(|a| a.dag_id == *dag_id && a.task_index == index);
        if let Some(most) = task.limits.max_active_tis_per_dag {
            let held: i64 = own.clone().map(|a| a.count).sum();
            let key = (dag_id.clone(), index);
            self.room.tasks.entry(key).or_insert(i64::from(most) - held);
        }
        if let Some(most) = task.limits.max_active_tis_per_dagrun {
            let held: i64 = own.filter(|a| a.run_pk == run).map(|a| a.count).sum();
            self.room.run_tasks.entry((run, index)).or_insert(i64::from(most) - held);
        }
        Ok(())
    }
}

fn candidate(ti: &Ti) -> Candidate {
    Candidate {
        run: ti.key.run_pk,
        task: ti.key.task_index,
        dag_id: ti.dag_id.clone(),
        pool: ti.pool.clone(),
        pool_slots: ti.pool_slots,
    }
}

/// Queues instances: token, attempt, hold and the new state, all in this transaction.
async fn queue(cx: &Cx, tx: &Tx, chosen: &[Ti]) -> Result<(), EngineError> {
    let tokens = installation::mint(tx, chosen.len()).await?;
    // The row is locked from here on: nobody makes a new epoch before the commit.
    if !gate::is_open(cx, installation::standing(tx).await?.as_ref()) {
        return Err(gate::shut("dispatch").into());
    }
    let mut changes = Vec::new();
    let mut attempts = Vec::new();
    let mut holds = Vec::new();
    let mut waits = Waits::default();
    let mut versions = BTreeMap::new();
    let runs: Vec<i64> = chosen.iter().map(|ti| ti.key.run_pk).collect();
    for run in run::by_pks(tx, &unique(runs)).await? {
        let version = cx.catalog.version(tx, run.version_pk).await?;
        versions.insert(run.run_pk, (version, run));
    }
    for (ti, token) in chosen.iter().zip(tokens) {
        let Ok(to) = ti_next(ti.state, TiEvent::Queue) else { continue };
        let Some((version, run)) = versions.get(&ti.key.run_pk) else { continue };
        let Some(task) = version.dag.tasks.get(ti.key.task_index as usize) else { continue };
        let wait = triggerer::of_task(cx, tx, (version, run), (task, ti)).await?;
        let mut change = TiChange::of(ti);
        change.to.state = to;
        change.to.token = Some(token);
        change.to.attempts += 1;
        change.to.queued_at = Some(tx.now());
        change.to.ended_at = None;
        change.to.reason = None;
        let is_wait = wait.is_some();
        if let Some(wait) = wait {
            waits.defer(tx, &mut change.to, token, wait)?;
        }
        changes.push(change);
        attempts.push(NewAttempt {
            queued_until: tx.now().plus(task.times.queued_timeout),
            queue: task.limits.queue.as_str().into(),
            ..new_attempt(cx, ti, token)
        });
        // Who waits holds no slot.
        holds.extend((!is_wait).then(|| hold(ti, token)));
    }
    let lines = changes.iter().map(|c| log::ti_state(&c.to, c.from, log::SCHEDULER)).collect();
    try_join!(
        biased;
        task_instance::change(tx, &changes),
        attempt::insert(tx, &attempts),
        pool::hold(tx, &holds),
        event::append(tx, lines),
    )?;
    waits.write(tx).await
}

fn unique(mut list: Vec<i64>) -> Vec<i64> {
    list.sort_unstable();
    list.dedup();
    list
}

fn new_attempt(cx: &Cx, ti: &Ti, token: Token) -> NewAttempt {
    let recovers = ti.next_why == RECOVERS;
    let why = Why::parse(&ti.next_why).unwrap_or(Why::First);
    let why = if recovers { Why::Replaces } else { why };
    NewAttempt {
        token,
        attempt_id: cx.env.attempt_id(),
        ti: ti.key,
        dag_id: ti.dag_id.clone(),
        try_number: ti.try_number,
        attempt_number: ti.attempts + 1,
        why,
        replaces: ti.token.filter(|_| why == Why::Replaces),
        prev_outcome: ti.prev_outcome.clone(),
        queue: String::new(),
        priority: ti.priority,
        queued_until: Timestamp::default(),
        ramp: recovers.then(|| ti.pool.clone()),
    }
}

fn hold(ti: &Ti, token: Token) -> Hold {
    Hold {
        token,
        pool: ti.pool.clone(),
        slots: ti.pool_slots,
        dag_id: ti.dag_id.clone(),
        run_pk: ti.key.run_pk,
        task_index: ti.key.task_index,
    }
}
