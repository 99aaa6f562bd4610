//! Combines what many callers ask at the same time into one transaction.
//!
//! While one flush is under way, arrivals wait for the next; whoever gets the turn flushes for all
//! that wait. No task is spawned: a caller whose future is dropped in the middle of a flush takes
//! the flush with it, and those who waited for that one ask again (everything here may be asked
//! twice).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

type Waiting<Q, A> = Vec<(Q, oneshot::Sender<A>)>;

/// Requests that wait, and the turn to flush them.
#[derive(Debug)]
pub(super) struct Gather<Q, A> {
    waiting: Mutex<Waiting<Q, A>>,
    /// When the last flush began.
    turn: tokio::sync::Mutex<Option<Instant>>,
    /// From one flush to the next at least.
    pace: Duration,
    /// Requests of one flush at most.
    most: usize,
}

impl<Q: Clone, A> Gather<Q, A> {
    /// Flushes at most every `pace`, at most `most` at once.
    pub(super) fn new(pace: Duration, most: usize) -> Self {
        Self { waiting: Mutex::default(), turn: tokio::sync::Mutex::default(), pace, most }
    }

    /// Asks, together with whoever asks meanwhile. `flush` answers each request, in their order.
    pub(super) async fn ask<F>(&self, request: Q, flush: impl Fn(Vec<Q>) -> F) -> A
    where
        F: Future<Output = Vec<A>>,
    {
        loop {
            let (sender, mut answer) = oneshot::channel();
            self.waiting().push((request.clone(), sender));
            loop {
                tokio::select! {
                    biased;
                    answered = &mut answer => match answered {
                        Ok(answered) => return answered,
                        // Whoever flushed for us is gone.
                        Err(_) => break,
                    },
                    mut last = self.turn.lock() => {
                        self.keep_pace(&mut last).await;
                        let batch = self.take();
                        let (requests, senders): (Vec<Q>, Vec<_>) = batch.into_iter().unzip();
                        if requests.is_empty() {
                            continue;
                        }
                        for (sender, answer) in senders.into_iter().zip(flush(requests).await) {
                            // Who does not wait any more needs no answer.
                            let _ = sender.send(answer);
                        }
                    }
                }
            }
        }
    }

    async fn keep_pace(&self, last: &mut Option<Instant>) {
        if let Some(last) = *last {
            pause_until(last + self.pace).await;
        }
        *last = Some(Instant::now());
    }

    fn take(&self) -> Waiting<Q, A> {
        let mut waiting = self.waiting();
        let count = waiting.len().min(self.most);
        waiting.drain(..count).collect()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting<Q, A>> {
        // Pushed and drained whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::disallowed_methods, reason = "the pace of flushes")]
async fn pause_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        tokio::time::sleep(left).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    async fn count(flushes: &AtomicUsize, requests: Vec<u32>) -> Vec<u32> {
        flushes.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        requests.into_iter().map(|n| n * 2).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_callers_are_answered_by_few_flushes() {
        let gather = Arc::new(Gather::new(Duration::from_millis(60), 4_096));
        let flushes = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let callers: Vec<_> = (0..1_000_u32)
            .map(|n| {
                let (gather, flushes) = (Arc::clone(&gather), Arc::clone(&flushes));
                tokio::spawn(async move {
                    // A beat of each in five seconds.
                    pause_until(began + Duration::from_millis(u64::from(n) * 5)).await;
                    let answer = gather.ask(n, |requests| count(&flushes, requests)).await;
                    assert_eq!(answer, n * 2);
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        let flushes = flushes.load(Ordering::SeqCst);
        let seconds = began.elapsed().as_secs_f64();
        assert!(flushes > 1 && (flushes as f64) < seconds * 20.0, "{flushes} in {seconds} s");
    }

    /// The one who flushes for all is dropped in the middle: the others ask again.
    #[tokio::test(start_paused = true)]
    async fn a_dropped_caller_takes_nobody_with_it() {
        let gather = Arc::new(Gather::new(Duration::ZERO, 10));
        let stuck = Arc::clone(&gather);
        let first =
            tokio::spawn(async move { stuck.ask(1, |_| std::future::pending::<Vec<u32>>()).await });
        tokio::task::yield_now().await;
        let flushes = Arc::new(AtomicUsize::new(0));
        let (own, counted) = (Arc::clone(&gather), Arc::clone(&flushes));
        let second =
            tokio::spawn(async move { own.ask(2, |requests| count(&counted, requests)).await });
        tokio::task::yield_now().await;
        first.abort();
        assert_eq!(second.await.unwrap(), 4);
        assert_eq!(flushes.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_takes_no_more_than_it_may() {
        let gather = Arc::new(Gather::new(Duration::ZERO, 3));
        let flushes = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..10_u32)
            .map(|n| {
                let (gather, flushes) = (Arc::clone(&gather), Arc::clone(&flushes));
                tokio::spawn(async move {
                    gather
                        .ask(n, |requests| {
                            assert!(requests.len() <= 3);
                            count(&flushes, requests)
                        })
                        .await
                })
            })
            .collect();
        for (n, caller) in (0..10_u32).zip(callers) {
            assert_eq!(caller.await.unwrap(), n * 2);
        }
        assert!(flushes.load(Ordering::SeqCst) >= 4);
    }
}
