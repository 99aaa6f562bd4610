//! The network between workers and servers: an execution API whose calls are delayed, lost on
//! either way, delivered twice, out of order or long after their callers gave up, or cut off.
//!
//! A call is carried out within the server's process: while that stands still nothing answers, and
//! its death takes the call with it. What is lost is noticed by the caller's deadline only.

mod api;
mod told;

use crate::random::Random;
use crate::time;
use crate::trace::Trace;
use fencepost_api::execution::ExecutionApi;
use fencepost_api::problem::{Problem, ProblemCode};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use told::{Tokens, Told};

/// How long a caller waits, beyond what it asked the server to wait.
const DEADLINE: Duration = Duration::from_secs(10);

type Api = Arc<dyn ExecutionApi>;
type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;
type Call = Box<dyn FnOnce(Api) -> Handling + Send>;

/// Where a server listens. It is replaced with each of its incarnations.
#[derive(Clone, Default)]
pub struct Port(Arc<Mutex<Option<mpsc::UnboundedSender<Call>>>>);

impl Port {
    /// Serves calls for ever: the life of one incarnation of a server.
    pub async fn serve(self, api: Api) {
        let (sender, mut calls) = mpsc::unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        let mut handled: FuturesUnordered<Handling> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                call = calls.recv() => match call {
                    Some(call) => handled.push(call(Arc::clone(&api))),
                    None => return,
                },
                Some(()) = handled.next() => {}
            }
        }
    }

    /// False: the connection is refused.
    fn send(&self, call: Call) -> bool {
        let port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        port.as_ref().is_some_and(|port| port.send(call).is_ok())
    }
}

/// What the network does to a worker's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weather {
    /// Milliseconds that a message takes at most.
    pub delay_ms: u64,
    /// Of 1,000 messages: lost on the way there, on the way back, delivered twice.
    pub lose_request: u64,
    pub lose_answer: u64,
    pub double: u64,
    /// Of 1,000 requests that are lost: delivered all the same, long after.
    pub late: u64,
    /// Nothing passes.
    pub is_cut: bool,
    pub echo: Option<Echo>,
    /// Answers to requests of a name take so long.
    pub slow_answers: Option<(&'static str, Duration)>,
}

/// Requests of a name are delivered again and again, or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    pub call: &'static str,
    /// From each delivery to the next.
    pub every: Duration,
    pub times: u32,
    /// The first delivery does not happen.
    pub is_late: bool,
}

/// One worker's way to the servers. Clones are the same one.
#[derive(Clone)]
pub struct Network {
    ports: Arc<Vec<Port>>,
    random: Random,
    trace: Trace,
    state: Arc<Mutex<State>>,
    /// What servers have handed to this worker.
    tokens: Tokens,
}

#[derive(Default)]
struct State {
    weather: Weather,
    /// The server that answered last.
    server: usize,
}

/// A request that can be delivered any number of times.
trait Request<T>:
    Fn(Api) -> Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>> + Clone + Send + 'static
{
}

impl<T, F> Request<T> for F where
    F: Fn(Api) -> Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>> + Clone + Send + 'static
{
}

impl Network {
    /// A way to these servers; `name` is the worker's.
    pub fn new(name: &str, ports: &[Port], random: &Random, trace: &Trace) -> Self {
        let state = State { server: 0, ..State::default() };
        Self {
            ports: Arc::new(ports.to_vec()),
            random: random.fork(&format!("network of {name}")),
            trace: trace.clone(),
            state: Arc::new(Mutex::new(state)),
            tokens: Tokens::default(),
        }
    }

    /// Changes the weather.
    pub fn set(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.state().weather);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T: Told>(
        &self,
        name: &'static str,
        wait: Duration,
        make: impl Request<T>,
    ) -> Result<T, Problem> {
        let (weather, server) = {
            let state = self.state();
            (state.weather, state.server)
        };
        let (reply, answer) = oneshot::channel();
        // Kept while the caller waits for what does not come.
        let mut _lost = None;
        let echo = weather.echo.filter(|echo| echo.call == name);
        if echo.is_some_and(|echo| echo.is_late) {
            self.repeat((name, server), weather, &make);
            _lost = Some(reply);
        } else if self.delay(weather).await {
            self.deliver((name, server), make.clone(), Some(reply));
            self.repeat((name, server), weather, &make);
        } else if weather.is_cut {
            _lost = Some(reply);
        } else {
            self.lose((name, server), weather, make);
            _lost = Some(reply);
        }
        // The server died, or the connection was refused, or nothing came in time.
        let answered = tokio::time::timeout(wait + DEADLINE, answer).await;
        let Ok(Ok(answer)) = answered else { return Err(self.failed(name, server)) };
        if let Some((_, takes)) = weather.slow_answers.filter(|(slow, _)| *slow == name) {
            time::pause(takes).await;
        }
        time::pause(self.random.millis(0, weather.delay_ms)).await;
        if self.state().weather.is_cut {
            return Err(self.lost_answer(name, server));
        }
        if self.random.chance(weather.lose_answer) {
            self.trace.fault("answer_lost", || name.to_owned());
            time::pause(DEADLINE).await;
            return Err(self.lost_answer(name, server));
        }
        answer
    }

    /// False if the request is lost on its way.
    async fn delay(&self, weather: Weather) -> bool {
        time::pause(self.random.millis(0, weather.delay_ms)).await;
        !self.state().weather.is_cut && !self.random.chance(weather.lose_request)
    }

    fn deliver<T: Told>(
        &self,
        (name, server): (&'static str, usize),
        make: impl Request<T>,
        reply: Option<oneshot::Sender<Result<T, Problem>>>,
    ) {
        let Some(port) = self.ports.get(server) else { return };
        let own = self.clone();
        port.send(Box::new(move |api| {
            Box::pin(async move {
                let answer = make(api).await;
                if let Ok(answer) = &answer {
                    answer.tell(name, &own.trace, &own.tokens);
                }
                // The caller may have given up.
                if reply.is_some_and(|reply| reply.send(answer).is_err()) && name == "start" {
                    own.trace.mark("start_answer_lost");
                }
            })
        }));
    }

    /// Further copies of a request that arrived, perhaps long after the first, at any server.
    fn repeat<T: Told>(
        &self,
        (name, server): (&'static str, usize),
        weather: Weather,
        make: &impl Request<T>,
    ) {
        if let Some(echo) = weather.echo.filter(|echo| echo.call == name) {
            for n in 1..=echo.times {
                self.deliver_after(echo.every * n, (name, server), make.clone());
            }
        }
        if self.random.chance(weather.double) {
            self.trace.fault("message_doubled", || name.to_owned());
            let most = if self.random.chance(500) { 200 } else { 60_000 };
            let wait = self.random.millis(0, most);
            let server = (server + self.random.below(2)) % self.ports.len().max(1);
            self.deliver_after(wait, (name, server), make.clone());
        }
    }

    /// The request does not arrive; or not before its caller has given up.
    fn lose<T: Told>(
        &self,
        (name, server): (&'static str, usize),
        weather: Weather,
        make: impl Request<T>,
    ) {
        if !self.random.chance(weather.late) {
            return self.trace.fault("request_lost", || name.to_owned());
        }
        let wait = self.random.millis(10_000, 300_000);
        self.trace.fault("request_late", || format!("{name} by {wait:?}"));
        self.deliver_after(wait, (name, server), make);
    }

    fn deliver_after<T: Told>(
        &self,
        wait: Duration,
        (name, server): (&'static str, usize),
        make: impl Request<T>,
    ) {
        let own = self.clone();
        drop(tokio::spawn(async move {
            time::pause(wait).await;
            own.deliver((name, server), make, None);
        }));
    }

    fn lost_answer(&self, name: &str, server: usize) -> Problem {
        if name == "start" {
            self.trace.mark("start_answer_lost");
        }
        self.failed(name, server)
    }

    fn failed(&self, name: &str, server: usize) -> Problem {
        let mut state = self.state();
        state.server = (server + 1) % self.ports.len().max(1);
        Problem::new(ProblemCode::Unavailable, format!("no answer to {name}"))
    }
}
