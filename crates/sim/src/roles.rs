//! Schedulers and servers: what one incarnation of each runs, with a lease of its own and a heart.

use crate::net::Port;
use crate::process::Body;
use crate::sim::Sim;
use crate::time;
use fencepost_core::id::{JobId, uuid_v7};
use fencepost_core::lease::{Lease, LeaseSettings};
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{Ended, SharedHealth, drive};
use fencepost_engine::liveness::{Heart, Own, Watch, enroll};
use fencepost_engine::operations::register::Identity;
use fencepost_engine::outbox::Outbox;
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::triggerer::Timers;
use fencepost_engine::{Cx, Pass};
use fencepost_server::execution::Execution;
use fencepost_server::render::Renderer;
use futures_util::FutureExt;
use futures_util::future::select;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;

/// The leases of schedulers and servers: the defaults.
fn lease() -> Result<Lease, String> {
    of_ttl(30)
}

/// The leases of workers.
pub(crate) fn worker_lease(secs: i64) -> Result<Lease, String> {
    of_ttl(secs)
}

fn of_ttl(secs: i64) -> Result<Lease, String> {
    let settings = LeaseSettings {
        lease_ttl: Span::from_secs(secs),
        heartbeat_interval: Span::from_secs(5),
        self_fence: None,
        kill_grace: None,
        margin: None,
    };
    settings.check().map_err(|error| error.to_string())
}

/// The id of an incarnation.
pub(crate) fn job_id(sim: &Sim, name: &str, number: u32) -> JobId {
    let random = sim.random.fork(&format!("{name} {number}"));
    let wall = sim.wall_of(name.split(' ').next().unwrap_or(name));
    let millis = u64::try_from(wall.now().as_micros() / 1_000).unwrap_or(0);
    let bits = (u128::from(random.bits()) << 64) | u128::from(random.bits());
    JobId::from_u128(uuid_v7(millis, bits))
}

/// A role has no home: its predecessor's lease runs out.
fn identity(sim: &Sim, kind: JobKind, name: &str, number: u32) -> Identity {
    Identity {
        job_id: job_id(sim, name, number),
        kind,
        name: name.to_owned(),
        host: format!("host-of-{name}"),
        pid: number,
        pid_start: number.into(),
        boot_id: "boot".into(),
        machine_id: format!("host-of-{name}"),
        home_id: format!("{name}-{number}"),
        registration: 0,
        version: "simulated".into(),
        queues: Vec::new(),
        slots: 0,
        lease_ttl: None,
    }
}

/// One incarnation of a scheduler: it ends when its lease does, and the next one registers anew.
pub(crate) fn scheduler(sim: &Sim, name: &str, number: u32) -> Body {
    let base = sim.cx(name, number);
    let who = identity(sim, JobKind::Scheduler, name, number);
    let trace = sim.trace.clone();
    Box::pin(async move {
        let cx = match enrolled(&base, &who).await {
            Ok(cx) => cx,
            Err(why) => return why,
        };
        let (_keep, stop) = watch::channel(false);
        let passes: Vec<Box<dyn Pass>> = vec![
            Box::new(Scheduler),
            Box::new(Dispatcher),
            Box::new(Timers),
            Box::new(Reaper),
            Box::new(Watch::default()),
            Box::new(Outbox::new(Arc::new(|_| Ok(())))),
        ];
        let heart = heart(base, cx.own.clone(), stop.clone()).map(|()| Ended::Fenced);
        let passes = drive(cx, passes, SharedHealth::default(), stop);
        let ended = either(number, heart, passes).await;
        if ended == Ended::Fenced {
            trace.mark("scheduler_fenced");
        }
        format!("{ended:?}")
    })
}

/// One incarnation of a server. It is no authority: its lease only says that workers are heard.
pub(crate) fn server(sim: &Sim, name: &str, number: u32, port: Port) -> Body {
    let base = sim.cx(name, number);
    let who = identity(sim, JobKind::Server, name, number);
    Box::pin(async move {
        let cx = match enrolled(&base, &who).await {
            Ok(cx) => cx,
            Err(why) => return why,
        };
        let (_keep, stop) = watch::channel(false);
        let heart = heart(base.clone(), cx.own.clone(), stop).map(|()| "its lease is over".into());
        let served = port.serve(Arc::new(Execution::new(base, Renderer::without_keys())));
        either(number, heart, served.map(|()| "nobody can call it".into())).await
    })
}

/// The first of the two to end. Outside they are threads beside each other: which of them comes first
/// when both can go on depends on the incarnation.
async fn either<T>(
    number: u32,
    heart: impl Future<Output = T> + Send,
    work: impl Future<Output = T> + Send,
) -> T {
    let (heart, work) = (pin!(heart), pin!(work));
    if number.is_multiple_of(2) {
        select(heart, work).await.factor_first().0
    } else {
        select(work, heart).await.factor_first().0
    }
}

async fn enrolled(base: &Cx, who: &Identity) -> Result<Cx, String> {
    enroll(base, who, lease()?).await.map_err(|error| error.to_string())
}

/// Ready when the lease is over.
async fn heart(base: Cx, own: Option<Arc<Own>>, stop: watch::Receiver<bool>) {
    let Some(own) = own else { return };
    Heart::new(base, own).run(|span: Span| time::pause(span.to_std()), stop).await;
}
