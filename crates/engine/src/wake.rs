//! Hints that there may be work. A hint only makes a pass earlier; losing one costs a scan or two.

use std::sync::Arc;
use tokio::sync::Notify;

use fencepost_store::{Hint, Hints, Store, Topic};

/// One hint per kind of waiter. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Wakes {
    /// Where hints go on to other processes.
    store: Option<Store>,
    /// The scheduler, dispatcher and reaper.
    pub engine: Arc<Notify>,
    /// Workers that wait for work or orders.
    pub workers: Arc<Notify>,
    /// Readers that follow events and logs.
    pub readers: Arc<Notify>,
}

impl Wakes {
    /// Hints that also reach the other processes on a store.
    pub fn of(store: &Store) -> Self {
        Self { store: store.is_shared().then(|| store.clone()), ..Self::default() }
    }

    /// Hands on what other processes hint at, for ever; at once over where there can be none.
    pub async fn listen(&self) {
        let Some(mut hints) = self.store.as_ref().and_then(Store::hints) else { return };
        loop {
            self.hear(&mut hints).await;
        }
    }

    async fn hear(&self, hints: &mut Hints) {
        match hints.next().await {
            Hint::Topic(Topic::Engine) => self.engine_here(),
            Hint::Topic(Topic::Workers) => self.workers_here(),
            Hint::LookAgain => {
                self.engine_here();
                self.workers_here();
            }
        }
    }

    fn hint(&self, topic: Topic) {
        if let Some(store) = &self.store {
            store.hint(topic);
        }
    }

    /// Something ended, or a person asked for something: the passes should look.
    pub fn engine(&self) {
        self.engine_here();
        self.hint(Topic::Engine);
    }
    /// There is something to read.
    pub fn readers(&self) {
        self.readers.notify_waiters();
    }
    /// There is work, or an order.
    pub fn workers(&self) {
        self.workers_here();
        self.hint(Topic::Workers);
    }

    pub(crate) fn engine_here(&self) {
        self.engine.notify_one();
        self.readers.notify_waiters();
    }

    /// On a server many workers may wait for one hint.
    fn workers_here(&self) {
        self.workers.notify_one();
        self.workers.notify_waiters();
        self.readers.notify_waiters();
    }
}
