//! The dead man's switch: an outgoing ping for as long as passes make progress, so that silence is an
//! alarm even when everything here is dead.
//!
//! Progress is that all passes have gone round without a failure since the last ping; a beat is none.
//! A ping is sent beside the passes and never waited for by them; one that fails is counted and said,
//! and the next one follows after the interval. Every scheduler pings: whoever watches is quiet while
//! one of them lives.

use super::journal::{Journal, Level};
use super::surroundings::pause;
use crate::client;
use crate::config::Settings;
use crate::error::Outcome;
use fencepost_core::time::Span;
use fencepost_engine::drive::SharedHealth;
use fencepost_engine::meters::{Meters, PINGS};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How soon after its start a process that makes progress says so.
const FIRST: Duration = Duration::from_secs(2);
/// No ping takes longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a ping needs.
pub(super) struct Pinger {
    pub(super) health: SharedHealth,
    pub(super) meters: Arc<Meters>,
    pub(super) journal: Arc<Journal>,
}

impl Pinger {
    /// Pings as configured, until the process stops.
    pub(super) fn start(
        self,
        settings: &Settings,
        mut stopped: watch::Receiver<bool>,
    ) -> Outcome<()> {
        let Some(url) = settings.text("alerts.ping_url").map(ToOwned::to_owned) else {
            return Ok(());
        };
        let interval =
            settings.span("alerts.ping_interval").unwrap_or(Span::from_secs(60)).to_std();
        let agent = client::agent(client::tls(&url, None)?);
        tokio::spawn(async move {
            let (mut seen, mut was_good) = (0, true);
            let mut wait = FIRST.min(interval);
            loop {
                tokio::select! {
                    () = pause(wait) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => return,
                }
                wait = interval;
                let good = self.good();
                if good == seen {
                    self.meters.count(PINGS, "withheld");
                    continue;
                }
                seen = good;
                let (agent, url, limit) = (agent.clone(), url.clone(), PATIENCE.min(interval));
                let sent = tokio::task::spawn_blocking(move || send(&agent, &url, limit)).await;
                let sent = sent.unwrap_or_else(|error| Err(error.to_string()));
                self.note(&sent, was_good);
                was_good = sent.is_ok();
            }
        });
        Ok(())
    }

    /// Turns of all passes without a failure.
    fn good(&self) -> u64 {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).good
    }

    fn note(&self, sent: &Result<(), String>, was_good: bool) {
        self.meters.count(PINGS, if sent.is_ok() { "ok" } else { "failed" });
        match sent {
            Err(why) => self.journal.say(Level::Warn, "ping_failed", why),
            Ok(()) if !was_good => self.journal.say(Level::Info, "ping_sent", "pings arrive again"),
            Ok(()) => {}
        }
    }
}

fn send(agent: &ureq::Agent, url: &str, limit: Duration) -> Result<(), String> {
    let request = agent.get(url).config().timeout_global(Some(limit)).build();
    match request.call() {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => {
            Err(format!("the answer to the ping has status {}", answer.status().as_u16()))
        }
        // Its text may name the address, which is a secret: whoever knows it can keep an alarm quiet.
        Err(ureq::Error::Timeout(_)) => Err(format!("no answer to the ping within {limit:?}")),
        Err(_) => Err("the ping did not get through".into()),
    }
}
