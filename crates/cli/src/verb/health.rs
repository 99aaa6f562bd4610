//! `fencepost health`: for people, and as the probe of a supervisor.

use crate::client::{Ask, Client};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use clap::Args;
use fencepost_api::rest::routes::HEALTH_READY;
use fencepost_api::rest::{Health, HealthComponent};
use fencepost_core::time::Span;

/// Say whether the server and its roles make progress
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  fencepost health --role scheduler --max-age 30s      exit 1 if it stands still")]
pub(crate) struct HealthArgs {
    /// This role only
    #[arg(long)]
    role: Option<String>,
    /// Every loop must have come round within this time
    #[arg(long, value_name = "SPAN")]
    max_age: Option<Span>,
}

/// Prints the components; exit 1 unless all are well.
pub(super) fn run(cx: &Cx, args: HealthArgs) -> Outcome {
    let client = cx.client()?;
    // A server that is not ready says so with 503 and the same body.
    let answer = client.exchange(HEALTH_READY.method, &HEALTH_READY.url(&[]), Ask::default())?;
    let Ok(mut health) = typed::<Health>(answer.body.clone()) else {
        let message = format!("the server answered with status {}", answer.status);
        return Err(CliError::new(Exit::of_status(answer.status), message));
    };
    if let Some(role) = &args.role {
        health.components.retain(|component| component.role == *role);
        if health.components.is_empty() {
            return Err(CliError::new(Exit::NotFound, format!("no `{role}` is known")));
        }
    }
    let well = match args.role {
        None => health.status == "ok",
        Some(_) => health.components.iter().all(|component| component.status == "ok"),
    };
    let well = well && health.components.iter().all(|component| is_fresh(component, args.max_age));
    print(cx, &health, &client)?;
    Ok(if well { Exit::Done } else { Exit::Unexpected })
}

fn print(cx: &Cx, health: &Health, client: &Client) -> Outcome<()> {
    if cx.out.data(health)? {
        return Ok(());
    }
    cx.out.remark(&format!("{}  fencepost {}", health.status, health.version));
    let items = health.components.iter().map(|c| serde_json::to_value(c).unwrap_or_default());
    cx.out.list::<HealthComponent>(items.collect(), client.now())
}

/// A component without a loop has no age to be judged by.
fn is_fresh(component: &HealthComponent, max_age: Option<Span>) -> bool {
    match (component.age_ms, max_age) {
        (Some(age), Some(most)) => u64::try_from(most.as_millis()).is_ok_and(|most| age <= most),
        _ => true,
    }
}
