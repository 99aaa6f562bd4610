//! Hints that there may be work. A hint only makes a pass earlier; losing one costs a scan.

use std::sync::Arc;
use tokio::sync::Notify;

/// One hint per kind of waiter. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Wakes {
    /// The scheduler, dispatcher and reaper.
    pub engine: Arc<Notify>,
    /// Workers that wait for work or orders.
    pub workers: Arc<Notify>,
    /// Readers that follow events and logs.
    pub readers: Arc<Notify>,
}

impl Wakes {
    /// Something ended, or a person asked for something: the passes should look.
    pub fn engine(&self) {
        self.engine.notify_one();
        self.readers.notify_waiters();
    }
    /// There is something to read.
    pub fn readers(&self) {
        self.readers.notify_waiters();
    }
    /// There is work, or an order.
    pub fn workers(&self) {
        self.workers.notify_one();
        self.readers.notify_waiters();
    }
}
