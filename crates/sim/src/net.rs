//! The network between workers and servers: an execution API whose calls are delayed, lost on
//! either way, delivered twice or out of order, or cut off.
//!
//! A call is carried out within the server's process: while that stands still nothing answers, and
//! its death takes the call with it. What is lost is noticed by the caller's deadline only.

use crate::random::Random;
use crate::time;
use crate::trace::Trace;
use fencepost_api::execution::{
    Answer, Beat, Beaten, ExecutionApi, Found, LogAnswer, LogPiece, Poll, Polled, Register,
    Registered, Reply, Report, Start,
};
use fencepost_api::problem::{Problem, ProblemCode};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

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
    /// Nothing passes.
    pub is_cut: bool,
}

/// One worker's way to the servers. Clones are the same one.
#[derive(Clone)]
pub struct Network {
    ports: Arc<Vec<Port>>,
    random: Random,
    trace: Trace,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    weather: Weather,
    /// The server that answered last.
    server: usize,
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
        }
    }

    /// Changes the weather.
    pub fn set(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.state().weather);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        wait: Duration,
        make: impl Fn(Api) -> Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>
        + Clone
        + Send
        + 'static,
    ) -> Result<T, Problem> {
        let (weather, server) = {
            let state = self.state();
            (state.weather, state.server)
        };
        let (reply, answer) = oneshot::channel();
        // Kept while the caller waits for what does not come.
        let mut _lost = None;
        if self.delay(weather).await {
            self.deliver(server, make.clone(), Some(reply), name == "register");
            if self.random.chance(weather.double) {
                self.trace.fault("message_doubled", || name.to_owned());
                self.deliver_late(server, make, name == "register");
            }
        } else if weather.is_cut {
            _lost = Some(reply);
        } else {
            self.trace.fault("request_lost", || name.to_owned());
            _lost = Some(reply);
        }
        let answered = match tokio::time::timeout(wait + DEADLINE, answer).await {
            Ok(Ok(answer)) => Some(answer),
            // The server died, or the connection was refused.
            Ok(Err(_)) => None,
            Err(_) => None,
        };
        let Some(answer) = answered else { return Err(self.failed(name, server)) };
        time::pause(self.random.millis(0, weather.delay_ms)).await;
        if self.state().weather.is_cut {
            return Err(self.failed(name, server));
        }
        if self.random.chance(weather.lose_answer) {
            self.trace.fault("answer_lost", || name.to_owned());
            time::pause(DEADLINE).await;
            return Err(self.failed(name, server));
        }
        answer
    }

    /// False if the request is lost on its way.
    async fn delay(&self, weather: Weather) -> bool {
        time::pause(self.random.millis(0, weather.delay_ms)).await;
        !self.state().weather.is_cut && !self.random.chance(weather.lose_request)
    }

    fn deliver<T: Send + 'static>(
        &self,
        server: usize,
        make: impl Fn(Api) -> Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>> + Send + 'static,
        reply: Option<oneshot::Sender<Result<T, Problem>>>,
        heeds_hang_up: bool,
    ) -> bool {
        let Some(port) = self.ports.get(server) else { return false };
        port.send(Box::new(move |api| {
            Box::pin(async move {
                if heeds_hang_up && reply.as_ref().is_none_or(oneshot::Sender::is_closed) {
                    return;
                }
                let answer = make(api).await;
                if let Some(reply) = reply {
                    // The caller may have given up.
                    let _ = reply.send(answer);
                }
            })
        }))
    }

    /// The second copy of a message, perhaps long after the first, at any server.
    fn deliver_late<T: Send + 'static>(
        &self,
        server: usize,
        make: impl Fn(Api) -> Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>> + Send + 'static,
        heeds_hang_up: bool,
    ) {
        let own = self.clone();
        let wait = if self.random.chance(500) {
            self.random.millis(0, 200)
        } else {
            self.random.millis(0, 60_000)
        };
        let server = (server + self.random.below(2)) % self.ports.len().max(1);
        drop(tokio::spawn(async move {
            time::pause(wait).await;
            own.deliver(server, make, None, heeds_hang_up);
        }));
    }

    fn failed(&self, name: &str, server: usize) -> Problem {
        let mut state = self.state();
        state.server = (server + 1) % self.ports.len().max(1);
        Problem::new(ProblemCode::Unavailable, format!("no answer to {name}"))
    }
}

impl ExecutionApi for Network {
    fn register(&self, request: Register) -> Reply<'_, Registered> {
        Box::pin(self.call("register", Duration::ZERO, move |api| {
            let request = request.clone();
            Box::pin(async move { api.register(request).await })
        }))
    }

    fn take_over(&self, job_id: &str, token: &str, found: Found) -> Reply<'_, Answer> {
        let (job_id, token) = (job_id.to_owned(), token.to_owned());
        Box::pin(self.call("take_over", Duration::ZERO, move |api| {
            let (job_id, token, found) = (job_id.clone(), token.clone(), found.clone());
            Box::pin(async move { api.take_over(&job_id, &token, found).await })
        }))
    }

    fn poll(&self, request: Poll) -> Reply<'_, Polled> {
        let wait = Duration::from_millis(request.wait_ms);
        Box::pin(self.call("poll", wait, move |api| {
            let request = request.clone();
            Box::pin(async move { api.poll(request).await })
        }))
    }

    fn start(&self, job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("start", Duration::ZERO, move |api| {
            let (job_id, starts) = (job_id.clone(), starts.clone());
            Box::pin(async move { api.start(&job_id, starts).await })
        }))
    }

    fn report(&self, job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("report", Duration::ZERO, move |api| {
            let (job_id, reports) = (job_id.clone(), reports.clone());
            Box::pin(async move { api.report(&job_id, reports).await })
        }))
    }

    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        Box::pin(self.call("beat", Duration::ZERO, move |api| {
            let request = request.clone();
            Box::pin(async move { api.beat(request).await })
        }))
    }

    fn release(&self, job_id: &str, tokens: Vec<String>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("release", Duration::ZERO, move |api| {
            let (job_id, tokens) = (job_id.clone(), tokens.clone());
            Box::pin(async move { api.release(&job_id, tokens).await })
        }))
    }

    fn logs(&self, job_id: &str, pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("logs", Duration::ZERO, move |api| {
            let (job_id, pieces) = (job_id.clone(), pieces.clone());
            Box::pin(async move { api.logs(&job_id, pieces).await })
        }))
    }

    fn leave(&self, job_id: &str) -> Reply<'_, ()> {
        let job_id = job_id.to_owned();
        Box::pin(self.call("leave", Duration::ZERO, move |api| {
            let job_id = job_id.clone();
            Box::pin(async move { api.leave(&job_id).await })
        }))
    }
}
