//! The children of a worker: starts, watches, reports, beats, archiving.
//!
//! They are polled by `Supervisor::run` itself and live no longer than its future: who drops that
//! future ends the whole worker at once, and who does not poll it stops the whole worker, as a
//! signal does to a process. No child is waited for at the end: whatever a worker leaves behind is
//! found by its successor.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type Child = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where children are handed in.
#[derive(Clone)]
pub(super) struct Nursery(UnboundedSender<Child>);

/// Where they live.
pub(super) struct Children {
    newcomers: UnboundedReceiver<Child>,
    living: FuturesUnordered<Child>,
}

/// A nursery and its children.
pub(super) fn nursery() -> (Nursery, Children) {
    let (sender, newcomers) = unbounded_channel();
    (Nursery(sender), Children { newcomers, living: FuturesUnordered::new() })
}

impl Nursery {
    /// Runs `child` beside the worker's main loop. After the end of `run` it is dropped.
    pub(super) fn add(&self, child: impl Future<Output = ()> + Send + 'static) {
        // Without a receiver the worker has ended, and its children with it.
        let _ = self.0.send(Box::pin(child));
    }
}

impl Children {
    /// Runs `main` to its end, with the children beside it.
    pub(super) async fn beside<T>(mut self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        poll_fn(|cx| {
            loop {
                while let Poll::Ready(Some(child)) = self.newcomers.poll_recv(cx) {
                    self.living.push(child);
                }
                // One that has ended may have added others.
                if !matches!(self.living.poll_next_unpin(cx), Poll::Ready(Some(()))) {
                    break;
                }
            }
            main.as_mut().poll(cx)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use tokio::sync::{Notify, oneshot};

    #[tokio::test]
    async fn children_run_beside_the_main_loop_and_may_have_children() {
        let (nursery, children) = nursery();
        let (sender, received) = oneshot::channel();
        let inner = nursery.clone();
        nursery.add(async move { inner.add(async move { sender.send(7).unwrap() }) });
        assert_eq!(children.beside(received).await, Ok(7));
    }

    #[tokio::test]
    async fn children_end_with_the_worker() {
        let (nursery, children) = nursery();
        let (alive, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let (count, hint) = (Arc::clone(&alive), Arc::clone(&dropped));
        nursery.add(async move {
            count.fetch_add(1, SeqCst);
            hint.notify_one();
            std::future::pending::<()>().await;
        });
        children.beside(dropped.notified()).await;
        assert_eq!((alive.load(SeqCst), Arc::strong_count(&alive)), (1, 1));
        // Handed in too late: dropped at once.
        let late = Arc::clone(&alive);
        nursery.add(async move {
            late.fetch_add(1, SeqCst);
        });
        assert_eq!((alive.load(SeqCst), Arc::strong_count(&alive)), (1, 1));
    }
}
