//! What a worker cannot tell: it looks again, says so, and is held up by nothing for ever.

use crate::bench::{Bench, kill, log_text, wait_for};
use crate::questions::{NEXT, server, worker, worker_with};
use fencepost_api::execution::{Beaten, Ended};
use fencepost_worker::attempt::{Attached, AttemptHost, HostError, OsHost, PreparedAttempt};
use fencepost_worker::dir::AttemptDir;
use fencepost_worker::page::{Lease, Page};
use fencepost_worker::spec::ShimSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const LONG: Duration = Duration::from_mins(1);

fn peace(_beat: usize) -> Beaten {
    Beaten { epoch: 2, is_reconciled: true, ..Beaten::default() }
}

/// A host whose first looks fail.
struct Blurred {
    host: OsHost,
    looks: AtomicU32,
}

impl AttemptHost for Blurred {
    fn survey(&self) -> Result<Vec<String>, HostError> {
        self.host.survey()
    }
    fn dir(&self, name: &str) -> AttemptDir {
        self.host.dir(name)
    }
    fn prepare(
        &self,
        name: &str,
        spec: &ShimSpec,
        lease: Lease,
    ) -> Result<Box<dyn PreparedAttempt>, HostError> {
        self.host.prepare(name, spec, lease)
    }
    fn attach(&self, name: &str, lease: Lease) -> Result<Attached, HostError> {
        if self.looks.fetch_add(1, Ordering::SeqCst) < 2 {
            return Err(HostError::Starting(name.into()));
        }
        self.host.attach(name, lease)
    }
    fn cleanup(&self, name: &str) -> Result<(), HostError> {
        self.host.cleanup(name)
    }
    fn remove(&self, name: &str) -> Result<(), HostError> {
        self.host.remove(name)
    }
}

/// The shim cannot be spawned, and at first it cannot be proved either that nothing ran: it is proved
/// later, and told. (Else the attempt would be in its worker's hands for ever.)
#[tokio::test]
async fn a_start_that_failed_is_told_though_its_proof_failed_at_first() {
    let bench = Bench::new();
    let mut server = Arc::into_inner(server(peace, false)).unwrap();
    server.forgets = Some(vec!["true".into()]);
    let server = Arc::new(server);
    let through =
        |host| -> Arc<dyn AttemptHost> { Arc::new(Blurred { host, looks: AtomicU32::new(0) }) };
    let worker = worker_with(&bench, &server, |_| {}, "/no/such/program".into(), through);
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut reports = server.reports.subscribe();
    let told = tokio::time::timeout(LONG, reports.wait_for(|all| !all.is_empty())).await;
    let told = told.unwrap().unwrap()[0].clone();
    assert_eq!((told.token.as_str(), &told.ended), (NEXT, &Ended::NeverRan));
    worker.abort();
}

/// From the hundredth beat on the store has closed the attempt.
fn closed_later(beat: usize) -> Beaten {
    let disowned = if beat < 100 { Vec::new() } else { vec![NEXT.to_owned()] };
    Beaten { disowned, ..peace(beat) }
}

/// The shim of an attempt at level `group` is killed: nobody can tell whether something of it runs. That is
/// said in its log, and it takes its worker's place until the store has closed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_told_is_said_and_let_go_when_the_store_has_closed_it() {
    let bench = Bench::new();
    let mut server = Arc::into_inner(server(closed_later, false)).unwrap();
    server.forgets = Some(vec!["sleep".into(), "600".into()]);
    let server = Arc::new(server);
    let worker = worker(&bench, &server, |_| {});
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let dir = AttemptDir::new(bench.file("home").join("attempts").join(NEXT));
    let running = || Page::open(&dir).ok().filter(|page| page.started_at_ns() > 0)?.shim();
    wait_for("the shim", || running().is_some());
    kill(running().unwrap().pid, "-KILL");
    wait_for("it to be said", || log_text(&dir).contains("may still run"));
    assert!(log_text(&dir).contains(&format!("confirm-dead {NEXT}")), "{}", log_text(&dir));
    let named = |all: &[fencepost_api::execution::Beat]| {
        all.last().is_some_and(|beat| beat.inventory.iter().any(|token| token == NEXT))
    };
    let whole = || {
        let beats = server.beats.lock().unwrap();
        let said = fencepost_api::execution::Says::All;
        beats.iter().filter(|beat| beat.says == said).cloned().collect::<Vec<_>>()
    };
    assert!(named(&whole()), "it is in hand as long as it is open");
    wait_for("it to be let go", || !named(&whole()));
    wait_for("its directory to be put away", || !dir.path().exists());
    assert!(server.reports.borrow().is_empty(), "nothing was guessed");
    worker.abort();
}
