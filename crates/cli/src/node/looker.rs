//! Looks at files and addresses for deferred tasks.
//!
//! A look blocks a thread: so only a bounded number runs at once, and whatever hangs (a mount, a server)
//! holds up none but those that wait for a place.

use crate::client::{self, guarded};
use crate::config::Settings;
use fencepost_core::wait::{Http, Look, Wait};
use fencepost_engine::triggerer::Looker;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Threads that look at the same time, of the runtime's small pool.
const PLACES: usize = 8;

/// A looker of this host.
pub(super) struct HostLooker {
    places: Arc<Semaphore>,
    agent: ureq::Agent,
    /// Why nothing can be asked over TLS.
    no_tls: Option<String>,
}

impl HostLooker {
    /// As configured.
    pub(super) fn of(settings: &Settings) -> Self {
        let (tls, no_tls) = match client::tls("https://", None) {
            Ok(tls) => (tls, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let agent = guarded::agent(rules(settings), tls);
        Self { places: Arc::new(Semaphore::new(PLACES)), agent, no_tls }
    }
}

/// What requests of the installation may reach.
pub(super) fn rules(settings: &Settings) -> guarded::Rules {
    let text = |name: &str| settings.text(name).unwrap_or_default();
    guarded::Rules::of(&[text("http.allow"), text("triggerer.allow_hosts")], text("http.deny"))
}

impl Looker for HostLooker {
    fn look<'a>(&'a self, wait: &'a Wait) -> Pin<Box<dyn Future<Output = Look> + Send + 'a>> {
        Box::pin(async move {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return Look::NotYet;
            };
            let (wait, agent, no_tls) = (wait.clone(), self.agent.clone(), self.no_tls.clone());
            let seen = tokio::task::spawn_blocking(move || {
                let _place = place;
                match &wait {
                    Wait::File(path) => file(path),
                    Wait::Http(http) => request(&agent, http, no_tls),
                    // Nothing that a host could see.
                    Wait::Until(_) | Wait::External(_) | Wait::Asset { .. } | Wait::Approval(_) => {
                        Look::NotYet
                    }
                }
            });
            seen.await.unwrap_or_else(|error| Look::Trouble(error.to_string()))
        })
    }
}

fn file(path: &str) -> Look {
    match std::fs::metadata(path) {
        Ok(found) => Look::Met(json!({ "path": path, "bytes": found.len() })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Look::NotYet,
        Err(error) => Look::Trouble(format!("{path}: {error}")),
    }
}

fn request(agent: &ureq::Agent, http: &Http, no_tls: Option<String>) -> Look {
    if let Some(why) = no_tls.filter(|_| http.url.starts_with("https://")) {
        return Look::Trouble(why);
    }
    let mut request = agent.get(&http.url);
    for (name, value) in &http.headers {
        request = request.header(name, value);
    }
    if !http.headers.is_empty() {
        // They are for the host that was named, and no other.
        request = request.config().max_redirects(0).build();
    }
    let mut answer = match request.call() {
        Ok(answer) => answer,
        Err(error) => return Look::Trouble(error.to_string()),
    };
    let status = answer.status().as_u16();
    if !http.status.contains(&status) {
        return match status {
            400..=499 => Look::NotYet,
            500..=599 => Look::Trouble(format!("{} answered {status}", http.url)),
            _ => Look::NotYet,
        };
    }
    if http.json.is_empty() {
        return Look::Met(json!({ "status": status }));
    }
    let body = answer.body_mut().with_config().limit(guarded::BODY_MAX).read_to_string();
    let body: Value = match body.map_err(|e| e.to_string()).and_then(|text| {
        serde_json::from_str(&text).map_err(|error| format!("the answer is no JSON: {error}"))
    }) {
        Ok(body) => body,
        Err(why) => return Look::Trouble(why),
    };
    if meets(&body, &http.json) {
        return Look::Met(json!({ "status": status, "json": body }));
    }
    Look::NotYet
}

/// Whether an answer has, at every pointer, the value that must stand there.
fn meets(body: &Value, conditions: &[(String, Value)]) -> bool {
    conditions.iter().all(|(pointer, value)| body.pointer(pointer) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_must_be_met() {
        let body = json!({ "state": "ready", "parts": [{ "n": 3 }] });
        let of = |json: Value| -> Vec<(String, Value)> {
            json.as_object().unwrap().clone().into_iter().collect()
        };
        assert!(meets(&body, &of(json!({ "/state": "ready", "/parts/0/n": 3 }))));
        assert!(!meets(&body, &of(json!({ "/state": "ready", "/parts/0/n": 4 }))));
        assert!(!meets(&body, &of(json!({ "/missing": null }))));
    }

    #[test]
    fn a_file_is_seen_when_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready");
        assert_eq!(file(&path.to_string_lossy()), Look::NotYet);
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(file(&path.to_string_lossy()), Look::Met(_)));
    }
}
