//! Hints between processes: NOTIFY and LISTEN.
//!
//! A hint may be lost and may come twice; it only makes somebody look earlier. NOTIFY takes a lock of
//! the whole server when it commits, so it is never part of an operation's transaction: hints are
//! gathered for a moment and sent by a connection of their own.

use super::connect::{PgOptions, Wire, connect, dial};
use super::url::Target;
use crate::db::hint::{Hint, Topic};
use crate::error::StoreError;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::AsyncMessage;

const CHANNEL: &str = "fencepost";
/// Hints of one topic are at least this far apart.
const APART: Duration = Duration::from_millis(20);
/// The wait before the server is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Sends hints. Its task ends with its last handle.
pub(in crate::db) struct Notifier {
    due: Mutex<BTreeSet<Topic>>,
    wake: Arc<Notify>,
    /// The server's number of the connection that sends: its own hints are no news to a process.
    sender: Arc<AtomicI32>,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notifier")
    }
}

impl Notifier {
    pub(in crate::db) fn start(target: Target, options: PgOptions) -> Arc<Self> {
        let (wake, sender) = (Arc::default(), Arc::default());
        let it = Arc::new(Self { due: Mutex::default(), wake, sender });
        tokio::spawn(send(Arc::downgrade(&it), Arc::clone(&it.wake), target, options));
        it
    }

    pub(in crate::db) fn hint(&self, topic: Topic) {
        if self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(topic) {
            self.wake.notify_one();
        }
    }

    pub(in crate::db) fn listener(&self, target: Target, options: PgOptions) -> Hints {
        Hints { target, options, sender: Arc::clone(&self.sender), heard: None }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

async fn send(of: Weak<Notifier>, wake: Arc<Notify>, target: Target, options: PgOptions) {
    let mut line: Option<Wire> = None;
    loop {
        wake.notified().await;
        wait(APART).await;
        let Some(notifier) = of.upgrade() else { return };
        let due = std::mem::take(&mut *notifier.due.lock().unwrap_or_else(PoisonError::into_inner));
        if due.is_empty() {
            continue;
        }
        if line.as_ref().is_none_or(|wire| wire.client.is_closed()) {
            line = connect(&target, &options).await.ok();
            let number = match &line {
                Some(wire) => number(wire).await.unwrap_or(0),
                None => 0,
            };
            notifier.sender.store(number, Ordering::Release);
        }
        let topics: Vec<String> =
            due.iter().map(|t| format!("NOTIFY {CHANNEL}, '{}'", t.as_str())).collect();
        if let Some(wire) = &line
            && wire.client.batch_execute(&topics.join(";")).await.is_err()
        {
            // Lost, as hints may be: whoever it was for looks at its next scan.
            line = None;
        }
    }
}

async fn number(wire: &Wire) -> Result<i32, tokio_postgres::Error> {
    wire.client.query_one_scalar("SELECT pg_backend_pid()", &[]).await
}

#[expect(clippy::disallowed_methods, reason = "a pause between hints, which decide nothing")]
async fn wait(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Hints of other processes.
pub struct Hints {
    target: Target,
    options: PgOptions,
    sender: Arc<AtomicI32>,
    heard: Option<Heard>,
}

impl std::fmt::Debug for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hints")
    }
}

/// A line that listens; it is closed with its client.
struct Heard {
    messages: mpsc::Receiver<(i32, String)>,
    _client: tokio_postgres::Client,
}

impl Hints {
    /// Waits for the next hint. After each (re)connection it is [`Hint::LookAgain`]: what was said
    /// meanwhile is lost.
    pub async fn next(&mut self) -> Hint {
        loop {
            let Some(heard) = &mut self.heard else {
                match self.listen().await {
                    Ok(heard) => {
                        self.heard = Some(heard);
                        return Hint::LookAgain;
                    }
                    Err(_) => wait(AGAIN).await,
                }
                continue;
            };
            match heard.messages.recv().await {
                None => self.heard = None,
                Some((from, _)) if from == self.sender.load(Ordering::Acquire) => {}
                Some((_, topic)) => {
                    if let Some(topic) = Topic::parse(&topic) {
                        return Hint::Topic(topic);
                    }
                }
            }
        }
    }

    async fn listen(&self) -> Result<Heard, StoreError> {
        let (client, mut connection) = dial(&self.target, &self.options).await?;
        let (tell, messages) = mpsc::channel(64);
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(told) = message {
                    // A reader that is behind has hints enough.
                    let _ = tell.try_send((told.process_id(), told.payload().to_owned()));
                }
            }
        });
        let listened = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
        listened.map_err(|error| super::wrong("listen", &error))?;
        Ok(Heard { messages, _client: client })
    }
}
