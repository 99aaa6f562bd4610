//! A worker introduces itself, under the next number of its home.

use super::Shared;
use super::launch::blocking;
use fencepost_api::execution::{Register, Registered};
use fencepost_api::problem::{Problem, ProblemCode};
use std::sync::Arc;

/// Registers; `None` if the job is over already: it was registered, the answer was lost, and its
/// lease ran out before it was asked for again.
pub(super) async fn register(shared: &Arc<Shared>) -> Result<Option<Registered>, Problem> {
    let mut above = 0;
    loop {
        let registration = number(shared, above).await?;
        let problem = match shared.api.register(request(shared, registration)).await {
            Ok(registered) => return Ok(Some(registered)),
            Err(problem) => problem,
        };
        match problem.known() {
            // This process holds the home's lock: its count was put back, with the home, from a copy.
            Some(ProblemCode::StaleHome) => above = problem.registration.unwrap_or(registration),
            Some(ProblemCode::AlreadyTerminal) => return Ok(None),
            _ => return Err(problem),
        }
    }
}

async fn number(shared: &Arc<Shared>, above: u64) -> Result<u64, Problem> {
    let inner = Arc::clone(shared);
    let counted =
        blocking(shared, move || inner.host.next_registration(&inner.settings.home, above)).await;
    counted.map_err(|error| Problem::new(ProblemCode::NoSpace, super::report::chain(&error)))
}

fn request(shared: &Shared, registration: u64) -> Register {
    let (who, settings) = (&shared.who, &shared.settings);
    Register {
        job_id: who.job_id.clone(),
        name: who.name.clone(),
        host: who.host.clone(),
        pid: who.pid,
        pid_start: who.pid_start,
        boot_id: who.boot_id.clone(),
        machine_id: who.machine_id.clone(),
        home_id: who.home_id.clone(),
        registration,
        version: who.version.clone(),
        queues: settings.queues.clone(),
        slots: settings.slots,
        lease_ttl_ms: settings.lease.map(|lease| lease.lease_ttl.as_millis()),
    }
}
