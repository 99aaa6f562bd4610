//! Turns: every pass once, every worker once, and a look at the books.

use super::World;
use super::post::Delivering;
use super::worker::Desk;
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::wait::{Look, Wait};
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::error::EngineError;
use fencepost_engine::outbox::Outbox;
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::triggerer::{Looker, Timers, Watcher};
use fencepost_engine::{Cx, Pass, Report};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// Turns until everything stands still: more means that something turns for ever.
const TURNS_MAX: usize = 400;
/// How far time moves when nothing says when the next thing is due.
const IDLE: Span = Span::from_secs(30);

/// A watcher whose looks come within its turn.
struct Watched(Watcher);

impl Pass for Watched {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut whole = self.0.pass(cx).await?;
            while self.0.is_looking() {
                tokio::task::yield_now().await;
                let next = self.0.pass(cx).await?;
                whole.moved += next.moved;
                whole.next_due = next.next_due;
            }
            Ok(whole)
        })
    }
}

/// What there is to see, by the path of the file that is waited for; nothing is seen of others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(pub(crate) Arc<Mutex<BTreeMap<String, Look>>>);

impl Looker for Seen {
    fn look<'a>(&'a self, wait: &'a Wait) -> Pin<Box<dyn Future<Output = Look> + Send + 'a>> {
        let path = if let Wait::File(path) = wait { path.as_str() } else { "" };
        let seen = self.0.lock().unwrap().get(path).cloned();
        Box::pin(async move { seen.unwrap_or(Look::NotYet) })
    }
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) moved: usize,
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) errors: Vec<String>,
    pub(crate) troubles: Vec<String>,
}

impl World {
    fn outbox(&self) -> Outbox {
        let effects = Arc::clone(&self.effects);
        Outbox::new(Arc::new(move |effect| {
            effects.lock().unwrap().push(format!("{} {}", effect.kind, effect.payload));
            Ok(())
        }))
    }

    /// Every pass once.
    pub(crate) async fn passes(&mut self) -> Turn {
        let mut whole = Report::default();
        let mut turn = Turn::default();
        let mut outbox = self.outbox();
        let looker: Arc<dyn Looker> = Arc::new(self.looker.clone());
        let mut watcher = Watched(Watcher::new(looker, 1_000));
        let mut callbacks = Delivering::to(&self.post);
        let passes: [&mut dyn Pass; 7] = [
            &mut Scheduler,
            &mut Timers,
            &mut Dispatcher,
            &mut Reaper,
            &mut watcher,
            &mut outbox,
            &mut callbacks,
        ];
        for pass in passes {
            match pass.pass(&self.cx).await {
                Ok(report) => whole.merge(report),
                Err(error) => turn.errors.push(format!("{}: {error}", pass.name())),
            }
        }
        turn.moved = whole.moved;
        turn.next_due = whole.next_due;
        turn.troubles = whole.troubles;
        turn
    }

    /// Every worker once.
    pub(crate) async fn work(&mut self) -> Turn {
        let mut turn = Turn::default();
        let World { cx, machine, script, faults, workers, .. } = self;
        for worker in workers {
            let mut desk = Desk { cx, machine, script, faults };
            match worker.step(&mut desk).await {
                Ok(did) => turn.moved += did,
                Err(error) => turn.errors.push(format!("{}: {error}", worker.name)),
            }
        }
        turn
    }

    /// Passes and workers once; then the audit and the books.
    pub(crate) async fn turn(&mut self) -> Turn {
        let mut turn = self.passes().await;
        let watched = self.watch().await;
        turn.moved += watched.moved;
        turn.errors.extend(watched.errors);
        let worked = self.work().await;
        turn.moved += worked.moved;
        turn.errors.extend(worked.errors);
        if self.checks {
            self.check().await;
        }
        turn
    }

    /// Turns until nothing moves. Nothing may fail.
    pub(crate) async fn settle(&mut self) -> Turn {
        for _ in 0..TURNS_MAX {
            let turn = self.turn().await;
            assert_eq!(turn.errors, Vec::<String>::new());
            if turn.moved == 0 {
                self.no_ghost().await;
                return turn;
            }
        }
        panic!("it never stands still");
    }

    /// Passes only, until nothing moves: as if no worker were there.
    pub(crate) async fn plan(&mut self) {
        for _ in 0..TURNS_MAX {
            let turn = self.passes().await;
            assert_eq!(turn.errors, Vec::<String>::new());
            self.check().await;
            if turn.moved == 0 {
                return;
            }
        }
        panic!("the passes never stand still");
    }

    /// Lets time pass until every run is over; fails if some are not after `limit` waits.
    pub(crate) async fn finish(&mut self) {
        for _ in 0..TURNS_MAX {
            let turn = self.settle().await;
            if self.unfinished_runs().await.is_empty() {
                return;
            }
            self.wait(&turn);
        }
        panic!("these runs never end: {:?}", self.unfinished_runs().await);
    }

    /// Moves time to the next thing that is due.
    pub(crate) fn wait(&self, turn: &Turn) {
        let now = self.now();
        let next = turn.next_due.filter(|at| *at > now).unwrap_or_else(|| now.plus(IDLE));
        self.clock.set(next);
    }
}
