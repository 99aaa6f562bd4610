//! Carries callbacks out: requests and mails, each on a thread of its own with a limit on its time, so
//! that no receiver, however slow, holds a thread that anything else needs. How many there are at once is
//! the engine's to say.
//!
//! A text of a failure is kept and shown: it names hosts, never the rest of an address, which may be the
//! secret of whoever receives.

mod mail;
mod request;
mod smtp;

use self::smtp::timed::Deadline;
use super::looker::rules;
use super::{connection, serve};
use crate::client::guarded;
use crate::config::Settings;
use fencepost_core::callback::{Address, Callback, Patience};
use fencepost_core::time::Span;
use fencepost_engine::Cx;
use fencepost_engine::callbacks::{CallbackPass, Courier, Delivery, TAKEN, Told};
use fencepost_server::vault::Keyring;
use fencepost_store::Store;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// No delivery takes longer, the reading of its connection and the look-up of a name included: an engine
/// takes a callback for abandoned after [`TAKEN`], and another one then delivers it.
const PATIENCE: Duration = Duration::from_secs(20);
// A request has a limit of its own, from when it begins.
const _: () =
    assert!(PATIENCE.as_secs() + guarded::PATIENCE.as_secs() + 20 < TAKEN.as_secs().unsigned_abs());

/// The courier of a process.
struct HostCourier {
    store: Store,
    keyring: Arc<Keyring>,
    agent: ureq::Agent,
    mail: smtp::Server,
    rules: guarded::Rules,
}

/// The pass, as configured; `url`: where people see the installation.
pub(super) fn pass(
    cx: &Cx,
    settings: &Settings,
    keyring: Arc<Keyring>,
    url: Option<String>,
) -> CallbackPass {
    let tls = crate::client::tls("https://", None).ok().flatten();
    let courier = HostCourier {
        store: cx.store.clone(),
        keyring,
        agent: guarded::agent(rules(settings), tls),
        mail: smtp::Server::of(settings),
        rules: rules(settings),
    };
    let named = settings.text("server.url").map(ToOwned::to_owned).or(url);
    let listens = settings.text("server.listen").unwrap_or("127.0.0.1:7373");
    let default = Patience::default();
    let tries = settings.text("callbacks.max_tries").and_then(|text| text.parse().ok());
    let told = Told {
        patience: Patience {
            tries: tries.unwrap_or(default.tries),
            age: settings.span("callbacks.max_age").unwrap_or(Span::from_hours(24)),
        },
        url: named.unwrap_or_else(|| format!("http://{listens}")).trim_end_matches('/').into(),
    };
    CallbackPass::new(Arc::new(courier), told)
}

/// The pass of a process that serves people on a listener.
pub(super) fn beside(
    cx: &Cx,
    settings: &Settings,
    keyring: &Arc<Keyring>,
    listener: &serve::Listener,
) -> CallbackPass {
    let url = serve::for_tasks(settings, listener).url;
    pass(cx, settings, Arc::clone(keyring), Some(url))
}

impl Courier for HostCourier {
    fn deliver<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let until = Deadline::after(PATIENCE);
            let connection = match named(&delivery.callback) {
                Some(name) => Some(connection::named(&self.store, &self.keyring, name).await?),
                None => None,
            };
            let delivery = delivery.clone();
            let (agent, mail, rules) = (self.agent.clone(), self.mail.clone(), self.rules.clone());
            on_a_thread(move || match &delivery.callback {
                Callback::Webhook { .. } | Callback::Slack { .. } => {
                    until.left().map_err(|error| error.to_string())?;
                    request::send(&agent, &delivery, connection.as_ref())
                }
                Callback::Email { .. } => {
                    let server = match &connection {
                        Some(connection) => mail.with(connection)?,
                        None => mail,
                    };
                    smtp::send(&server, &rules, &mail::message(&delivery, &server)?, until)
                }
                Callback::TriggerDag { .. } | Callback::Run { .. } => {
                    Err("the engine makes runs by itself".into())
                }
            })
            .await
        })
    }
}

/// The connection that a callback names.
fn named(callback: &Callback) -> Option<&str> {
    match callback {
        Callback::Webhook { to: Address::Connection(name), .. }
        | Callback::Slack { to: Address::Connection(name), .. }
        | Callback::Email { conn: Some(name), .. } => Some(name),
        Callback::Webhook { .. }
        | Callback::Slack { .. }
        | Callback::Email { .. }
        | Callback::TriggerDag { .. }
        | Callback::Run { .. } => None,
    }
}

async fn on_a_thread(
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let (done, went) = oneshot::channel();
    let thread = std::thread::Builder::new().name("callback".into());
    // Whoever asked may be gone: then nobody is told, and the row is due again.
    let spawned = thread.spawn(move || drop(done.send(work())));
    spawned.map_err(|error| format!("no thread for the delivery: {error}"))?;
    went.await.unwrap_or_else(|_| Err("the delivery ended by a panic".into()))
}
