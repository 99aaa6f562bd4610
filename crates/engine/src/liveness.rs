//! Liveness among processes: who is declared lost, and what becomes of its attempts.
//!
//! [`Watch`] is a pass like any other: it reads all leases, lets the core's observer judge, declares
//! what is over in one small transaction each ([`declare`]), and works the attempts of departed jobs
//! off in pages ([`settle`]), whoever declared them and whenever. It remembers only what it observed;
//! a fresh one needs a whole TTL before it can declare anything.
//!
//! Two schedulers may do all of this at the same time: one declaration wins by compare-and-set on the
//! renewal that was observed, and a page locks the departed job's row.

mod declare;
mod epoch;
pub(crate) mod gate;
mod heart;
pub mod incidents;
mod own;
pub(crate) mod reconcile;
mod renew;
mod settle;

pub(crate) use epoch::{force_epoch, renew_epoch};
pub use heart::{Beaten, Heart, Stopped};
pub use own::{Own, enroll};
pub(crate) use renew::renewals;
pub use renew::{Beat, renew};

use crate::error::EngineError;
use crate::meters::BRAKED;
use crate::{Cx, Pass, Report};
use fencepost_core::id::JobId;
use fencepost_core::liveness::{Observer, ObserverSettings, Scan, Sight};
use fencepost_core::time::{BootInstant, Span};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::{incident, installation, lease};
use std::pin::Pin;
use tokio::try_join;

/// No scan is closer to the last than this.
const SHORTEST_SCAN: Span = Span::from_millis(100);

/// The pass.
#[derive(Debug, Default)]
pub struct Watch {
    observer: Option<Observer>,
    last_scan: Option<BootInstant>,
    /// A tenth of the shortest TTL that was read, if that is less than `scan_interval`.
    interval: Option<Span>,
    /// The epoch is one in which something is waited for.
    is_new: bool,
    /// Where the last turn stopped, if departed jobs had left more than fitted into it.
    unsettled: Option<settle::Place>,
}

impl Pass for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    /// Leases run out in silence.
    fn rests(&self) -> bool {
        false
    }

    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>> {
        Box::pin(async move {
            let mut report = Report::default();
            let interval = self.interval(cx);
            let since = self.last_scan.map(|last| (cx.env.boottime)().since(last));
            if since.is_some_and(|since| since < interval.over(2)) {
                if self.unsettled.is_some() {
                    self.settle(cx, &mut report).await?;
                }
                return Ok(self.due(cx, report));
            }
            let Seen { sight, mut departed, ripe } = match self.scan(cx).await {
                Ok(seen) => seen,
                Err(error) => {
                    self.observer(cx).failed();
                    return Err(error);
                }
            };
            alert(cx, &sight).await?;
            for expired in &sight.expired {
                report.moved += usize::from(declare::declare(cx, expired).await?);
                departed = true;
            }
            if departed {
                self.settle(cx, &mut report).await?;
            }
            incidents::close(cx, &ripe).await?;
            if self.is_new {
                reconcile::give_up(cx, sight.epoch, &mut report).await?;
            }
            Ok(self.due(cx, report))
        })
    }
}

/// What a scan showed.
struct Seen {
    sight: Sight,
    /// A departed job has left something.
    departed: bool,
    /// Incidents of which nothing is open.
    ripe: Vec<(i64, JobId)>,
}

impl Watch {
    fn observer(&mut self, cx: &Cx) -> &mut Observer {
        self.observer.get_or_insert_with(|| {
            Observer::new(ObserverSettings {
                scan_interval: cx.settings.scan_interval,
                heartbeat_interval: cx.settings.heartbeat_interval,
                mass_loss_percent: cx.settings.mass_loss_percent,
                guards: cx.settings.guards,
            })
        })
    }

    async fn settle(&mut self, cx: &Cx, report: &mut Report) -> Result<(), EngineError> {
        let (settled, stopped) = settle::settle(cx, self.unsettled.take()).await?;
        self.unsettled = stopped;
        report.merge(settled);
        Ok(())
    }

    fn interval(&self, cx: &Cx) -> Span {
        self.interval.unwrap_or(cx.settings.scan_interval)
    }

    /// With leases to observe, or an epoch, the next scan is due by itself.
    fn due(&self, cx: &Cx, mut report: Report) -> Report {
        if self.interval.is_some() || self.is_new {
            report.next_due = Some(cx.store.clock().now().plus(self.interval(cx)));
        }
        report
    }

    /// Reads all leases, and what else is a matter of the dead.
    async fn scan(&mut self, cx: &Cx) -> Result<Seen, EngineError> {
        let started = (cx.env.boottime)();
        let tx = cx.store.read("scan_leases").await?;
        let (readings, standing, departed, ripe) = try_join!(
            biased;
            lease::read(&tx),
            installation::standing(&tx),
            lease::departed(&tx, 1),
            incident::ripe(&tx, incidents::AT_ONCE),
        )?;
        let epoch = standing.map_or(1, |standing| standing.epoch);
        let is_new = gate::stays_apart(standing.as_ref());
        let store_now = tx.now();
        drop(tx);
        let ended = (cx.env.boottime)();
        self.last_scan = Some(started);
        let shortest = readings.iter().map(|reading| reading.ttl).min();
        let most = cx.settings.scan_interval;
        self.interval = shortest.map(|ttl| ttl.over(10).max(SHORTEST_SCAN).min(most));
        let interval = self.interval(cx);
        let observer = self.observer(cx);
        observer.set_scan_interval(interval);
        let scan = Scan { started, ended, store_now, epoch, readings: &readings };
        let sight = observer.scan(&scan);
        cx.meters.gauge(BRAKED, u64::try_from(sight.waiting).unwrap_or(u64::MAX));
        self.is_new = is_new;
        Ok(Seen { sight, departed: !departed.is_empty(), ripe })
    }
}

/// Says at once that many workers fell silent together, before any of them is declared.
async fn alert(cx: &Cx, sight: &Sight) -> Result<(), EngineError> {
    if sight.braked.is_empty() {
        return Ok(());
    }
    let jobs: Vec<String> = sight.braked.iter().map(ToString::to_string).collect();
    let line = Event {
        kind: "mass_loss_braked",
        actor: cx.actor().into(),
        reason: Some(format!("{} workers fell silent together: one TTL more", jobs.len())),
        evidence: Some(serde_json::json!({ "jobs": jobs })),
        ..Event::default()
    };
    let tx = cx.store.begin("alert").await?;
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    Ok(())
}
