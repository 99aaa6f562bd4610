//! A simulated process: a future that can be crashed (dropped), paused (not polled) and restarted.
//!
//! A crash at a hook point unwinds from there, so that nothing after it happens; from outside it
//! drops the future at once. A paused process keeps its locks and its place in queues, and clocks
//! go on, as under SIGSTOP.

use crate::time;
use crate::trace::Trace;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The life of one incarnation; the text says why it ended by itself.
pub type Body = Pin<Box<dyn Future<Output = String> + Send>>;

type Factory = dyn Fn(u32) -> Body + Send + Sync;

/// A process of a name, in its incarnations. Clones are the same one.
#[derive(Clone)]
pub struct Process {
    name: Arc<str>,
    trace: Trace,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    body: Option<Body>,
    is_paused: bool,
    /// To be down, until somebody starts it.
    is_down: bool,
    crashed: bool,
    restart: Duration,
    incarnations: u32,
    waker: Option<Waker>,
}

/// The payload of an unwinding that is a simulated crash.
struct Crash;

/// Ends the process that is being polled, here.
pub fn crash_here() -> ! {
    // Without the panic hook: nothing is printed.
    resume_unwind(Box::new(Crash))
}

enum End {
    Crashed,
    Ended(String),
    Panicked(String),
}

impl Process {
    /// Starts it. A crashed or ended incarnation is followed by the next after `restart`.
    pub fn start(
        name: &str,
        trace: &Trace,
        restart: Duration,
        factory: impl Fn(u32) -> Body + Send + Sync + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(State { restart, ..State::default() }));
        let process = Self { name: name.into(), trace: trace.clone(), state };
        let own = process.clone();
        drop(tokio::spawn(async move { own.live(Box::new(factory)).await }));
        process
    }

    async fn live(self, factory: Box<Factory>) {
        loop {
            Up(&self).await;
            let number = {
                let mut state = self.state();
                state.incarnations += 1;
                state.crashed = false;
                state.incarnations
            };
            self.trace.note(|| format!("{} starts ({number})", self.name));
            let body = factory(number);
            self.state().body = Some(body);
            match Alive(&self).await {
                End::Crashed => self.trace.note(|| format!("{} is dead", self.name)),
                End::Ended(why) => self.trace.note(|| format!("{} ends: {why}", self.name)),
                End::Panicked(why) => self.trace.violate(format!("{} panics: {why}", self.name)),
            }
            let restart = self.state().restart;
            time::pause(restart).await;
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SIGKILL; the next incarnation comes after `restart`.
    pub fn crash(&self, restart: Duration) {
        self.end(false, Some(restart));
    }

    /// SIGKILL, and nobody starts it again until [`Process::up`].
    pub fn down(&self) {
        self.end(true, None);
    }

    fn end(&self, is_down: bool, restart: Option<Duration>) {
        let body = {
            let mut state = self.state();
            state.is_down = is_down;
            state.is_paused = false;
            state.restart = restart.unwrap_or(state.restart);
            state.crashed = true;
            wake(&mut state);
            state.body.take()
        };
        drop(body);
    }

    /// Starts it if it is down.
    pub fn up(&self) {
        let mut state = self.state();
        state.is_down = false;
        wake(&mut state);
    }

    /// SIGSTOP, SIGCONT.
    pub fn set_paused(&self, is_paused: bool) {
        let mut state = self.state();
        state.is_paused = is_paused;
        wake(&mut state);
    }

    /// It runs and is not stopped.
    pub fn is_running(&self) -> bool {
        let state = self.state();
        state.body.is_some() && !state.is_paused
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(state: &mut State) {
    if let Some(waker) = state.waker.take() {
        waker.wake();
    }
}

/// Ready when the process is to be up.
struct Up<'a>(&'a Process);

impl Future for Up<'_> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state();
        state.waker = Some(cx.waker().clone());
        if state.is_down { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Polls the body, unless the process is stopped.
struct Alive<'a>(&'a Process);

impl Future for Alive<'_> {
    type Output = End;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let mut body = {
            let mut state = self.0.state();
            state.waker = Some(cx.waker().clone());
            if state.crashed {
                return Poll::Ready(End::Crashed);
            }
            if state.is_paused {
                return Poll::Pending;
            }
            match state.body.take() {
                Some(body) => body,
                None => return Poll::Ready(End::Crashed),
            }
        };
        // What unwinds is dropped right after, so that nobody sees it half done.
        match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
            Ok(Poll::Ready(why)) => Poll::Ready(End::Ended(why)),
            Ok(Poll::Pending) => {
                let mut state = self.0.state();
                if state.crashed {
                    drop(state);
                    drop(body);
                    return Poll::Ready(End::Crashed);
                }
                state.body = Some(body);
                Poll::Pending
            }
            Err(payload) => {
                drop(catch_unwind(AssertUnwindSafe(|| drop(body))));
                Poll::Ready(end_of(payload.as_ref()))
            }
        }
    }
}

fn end_of(payload: &(dyn Any + Send)) -> End {
    if payload.is::<Crash>() {
        return End::Crashed;
    }
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string));
    End::Panicked(text.unwrap_or_else(|| "without a word".into()))
}
