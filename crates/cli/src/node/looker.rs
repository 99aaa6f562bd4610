//! Looks at files, addresses and databases for deferred tasks.
//!
//! A look blocks a thread, or a session of somebody's database: so only a bounded number runs at once, and
//! whatever hangs (a mount, a server) holds up none but those that wait for a place.

use super::connection;
use crate::client::{self, guarded};
use crate::config::Settings;
use fencepost_core::connection::Connection;
use fencepost_core::time::Span;
use fencepost_core::wait::{Http, Look, Sql, Wait};
use fencepost_engine::triggerer::Looker;
use fencepost_server::vault::Keyring;
use fencepost_store::{Store, probe};
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Threads that look at the same time, of the runtime's small pool.
const PLACES: usize = 8;

/// The longest that a database is asked.
const QUERY: Span = Span::from_secs(25);

/// A looker of this host.
pub(super) struct HostLooker {
    store: Store,
    keyring: Arc<Keyring>,
    places: Arc<Semaphore>,
    agent: ureq::Agent,
    /// Why nothing can be asked over TLS.
    no_tls: Option<String>,
}

impl HostLooker {
    /// As configured.
    pub(super) fn of(store: Store, keyring: Arc<Keyring>, settings: &Settings) -> Self {
        let (tls, no_tls) = match client::tls("https://", None) {
            Ok(tls) => (tls, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let agent = guarded::agent(rules(settings), tls);
        let places = Arc::new(Semaphore::new(PLACES));
        Self { store, keyring, places, agent, no_tls }
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
            if let Wait::Sql(sql) = wait {
                let seen = self.query(sql).await;
                drop(place);
                return seen;
            }
            let (wait, agent, no_tls) = (wait.clone(), self.agent.clone(), self.no_tls.clone());
            let seen = tokio::task::spawn_blocking(move || {
                let _place = place;
                match &wait {
                    Wait::File(path) => file(path),
                    Wait::Http(http) => request(&agent, http, no_tls),
                    // Nothing that a host could see.
                    Wait::Until(_)
                    | Wait::Sql(_)
                    | Wait::External(_)
                    | Wait::Asset { .. }
                    | Wait::Approval(_) => Look::NotYet,
                }
            });
            seen.await.unwrap_or_else(|error| Look::Trouble(error.to_string()))
        })
    }
}

impl HostLooker {
    async fn query(&self, sql: &Sql) -> Look {
        let asked = async {
            let connection = connection::named(&self.store, &self.keyring, &sql.conn).await?;
            let url = database(&connection).map_err(|why| format!("{}: {why}", sql.conn))?;
            let answer = probe::ask(&url, &sql.query, QUERY).await;
            answer.map_err(|error| format!("{}: {}", sql.conn, error.message))
        };
        match asked.await {
            Ok(answer) if answer.is_true => Look::Met(json!({ "value": answer.value })),
            Ok(_) => Look::NotYet,
            Err(why) => Look::Trouble(why),
        }
    }
}

/// The address of a connection's database.
fn database(connection: &Connection) -> Result<String, String> {
    match connection.conn_type.as_str() {
        "postgres" | "postgresql" => {
            let named = Connection { conn_type: "postgresql".into(), ..connection.clone() };
            Ok(named.to_uri())
        }
        // Airflow's form has the path as host, a URI with three slashes as schema.
        "sqlite" => match (&connection.host, &connection.schema) {
            (Some(path), None) => Ok(format!("sqlite:{path}")),
            (None, Some(path)) => Ok(format!("sqlite:/{path}")),
            (Some(_), Some(_)) | (None, None) => {
                Err("a connection to SQLite is sqlite:///absolute/path".into())
            }
        },
        other => Err(format!("`{other}` cannot be asked: PostgreSQL and SQLite can")),
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

    #[test]
    fn a_connection_names_its_database() {
        let of = |uri: &str| database(&Connection::from_uri(uri).unwrap());
        assert_eq!(of("sqlite:///srv/x.db").unwrap(), "sqlite:/srv/x.db");
        assert_eq!(
            of("postgres://me:p%40@db:5433/sales").unwrap(),
            "postgresql://me:p%40@db:5433/sales"
        );
        assert!(of("mysql://me@db/sales").unwrap_err().contains("`mysql` cannot be asked"));
        assert!(of("sqlite://").is_err());
    }
}
