//! The execution API over HTTP, as a worker calls it.
//!
//! Calls that run at the same time have connections of their own, so a long poll holds up nothing;
//! [`HttpExecution::beside`] makes a second client with connections of its own and the same
//! credential, for beats that must wait for nothing else. Each call has a deadline. Nothing is
//! given up here: a call that fails is a problem for its caller, who asks again; what bounds the
//! rate is the pause before a call that follows failures. Every call may be repeated.
//!
//! Deliberately absent: redirects, proxies, compression, HTTP/2.

mod address;
mod connection;
mod patience;
mod tls;

pub use address::AddressError;

use address::Address;
use connection::{CallError, Connections, Sent};
use fencepost_api::execution::wire::{
    BODY_MAX, Call, Caller, Hello, Leave, Logs, Release, Reports, Starts, VERSION_HEADER,
};
use fencepost_api::execution::{
    Answer, Beat, Beaten, EXECUTION_VERSION, ExecutionApi, LogAnswer, LogPiece, Poll, Polled,
    Register, Registered, Reply, Report, Says, Start, TakeOver,
};
use fencepost_api::problem::{Problem, ProblemCode};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use patience::Patience;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest that a call may take, beyond what a long poll asks for.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// A call is cut into several beyond this: far from what a server takes, whatever JSON makes of it.
const SPLIT: usize = BODY_MAX / 4;

/// Told what stands in the way of calls, when that changes; `None`: nothing any more.
pub type Notice = Arc<dyn Fn(Option<&Problem>) + Send + Sync>;

/// Whom to call, and as whom.
#[derive(Clone)]
pub struct Connect {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub url: String,
    /// Certificates of authorities to trust (PEM); needed for https.
    pub ca: Option<Vec<u8>>,
    /// The join token.
    pub join_token: String,
    /// Of this program, for the server's log.
    pub version: String,
    /// 64 random bits: many workers do not come back at the same instant.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub notice: Notice,
}

/// A client.
pub struct HttpExecution {
    shared: Arc<Shared>,
    connections: Connections,
    patience: Patience,
    limit: Duration,
}

/// What clients of one worker share.
struct Shared {
    connect: Connect,
    /// The job's, since it is registered.
    credential: watch::Sender<Option<String>>,
}

impl HttpExecution {
    /// A client; it connects with its first call.
    pub fn new(connect: Connect) -> Result<Self, AddressError> {
        let address = Address::parse(&connect.url)?;
        let connections = Connections::new(address, connect.ca.as_deref())?;
        let patience = Patience::new(Arc::clone(&connect.random), Arc::clone(&connect.notice));
        let shared = Arc::new(Shared { connect, credential: watch::Sender::default() });
        Ok(Self { shared, connections, patience, limit: CALL_LIMIT })
    }

    /// Another client of the same worker, with connections and a deadline of its own.
    pub fn beside(&self, limit: Duration) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            connections: self.connections.afresh(),
            patience: self.patience.paced(),
            limit,
        }
    }

    /// Whom this worker would join.
    pub async fn hello(&self) -> Result<Hello, Problem> {
        self.call(Call::Hello, &serde_json::json!({}), Duration::ZERO).await
    }

    /// Ready once this worker is registered.
    pub async fn registered(&self) {
        let mut credential = self.shared.credential.subscribe();
        // The sender lives in `self`.
        let _ = credential.wait_for(Option::is_some).await;
    }

    /// What stands in the way of calls, if the last one failed.
    pub fn trouble(&self) -> Option<Problem> {
        self.patience.trouble()
    }

    async fn call<A: DeserializeOwned>(
        &self,
        call: Call,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<A, Problem> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Problem::new(ProblemCode::BadRequest, error.to_string()))?;
        self.send(call, body.into(), wait).await
    }

    /// One call; the pause after failures is a part of it.
    async fn send<A: DeserializeOwned>(
        &self,
        call: Call,
        body: Bytes,
        wait: Duration,
    ) -> Result<A, Problem> {
        self.patience.wait().await;
        let answered = self.exchange(call, body, self.limit + wait).await;
        self.patience.note(answered.as_ref().err());
        let bytes = answered?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let text = format!("the answer to `{}` cannot be read: {error}", call.name());
            Problem::new(ProblemCode::Internal, text)
        })
    }

    async fn exchange(&self, call: Call, body: Bytes, limit: Duration) -> Result<Bytes, Problem> {
        let credential = self.credential(call).ok_or_else(|| {
            let text = "this worker is not registered yet";
            Problem::new(ProblemCode::Unauthenticated, text)
        })?;
        let request = || self.request(call, &credential, body.clone());
        let sending = self.connections.send(request);
        let Sent { status, body } = match tokio::time::timeout(limit, sending).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(error)) => return Err(self.unreachable(&error.to_string())),
            Err(_) => return Err(self.unreachable(&format!("no answer within {limit:?}"))),
        };
        if status < 400 { Ok(body) } else { Err(problem_of(status, &body)) }
    }

    fn unreachable(&self, why: &str) -> Problem {
        let text = format!("the server at {} cannot be reached: {why}", self.shared.connect.url);
        Problem::new(ProblemCode::Unavailable, text)
    }

    fn credential(&self, call: Call) -> Option<String> {
        match call.caller() {
            Caller::Join => Some(self.shared.connect.join_token.clone()),
            Caller::Job => self.shared.credential.borrow().clone(),
            Caller::Attempt => None,
        }
    }

    fn request(
        &self,
        call: Call,
        credential: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, CallError> {
        let agent = format!("fencepost-worker/{}", self.shared.connect.version);
        Request::post(call.path())
            .header(HOST, self.connections.authority())
            .header(USER_AGENT, agent)
            .header(CONTENT_TYPE, "application/json")
            .header(VERSION_HEADER, EXECUTION_VERSION)
            .header(AUTHORIZATION, format!("Bearer {credential}"))
            .body(Full::new(body))
            .map_err(|error| CallError::Request(error.to_string()))
    }

    /// Registers; goes on asking while the server cannot be reached, since a worker may come before
    /// its server.
    async fn join(&self, request: Register) -> Result<Registered, Problem> {
        loop {
            match self.call::<Registered>(Call::Register, &request, Duration::ZERO).await {
                Ok(registered) => {
                    self.shared.credential.send_replace(registered.credential.clone());
                    return Ok(registered);
                }
                Err(problem) if problem.status >= 500 => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    /// A beat, and what of its checkpoints is too large for one body right behind it, under the same
    /// number: that renews nothing, and is kept all the same.
    async fn beaten(&self, mut request: Beat) -> Result<Beaten, Problem> {
        let mut rest = parts(std::mem::take(&mut request.checkpoints)).into_iter();
        request.checkpoints = rest.next().unwrap_or_default();
        let beaten = self.call(Call::Beat, &request, Duration::ZERO).await?;
        for checkpoints in rest {
            let (inventory, says) = (Vec::new(), Says::Nothing);
            let more = Beat { inventory, says, checkpoints, ..request.clone() };
            self.call::<Beaten>(Call::Beat, &more, Duration::ZERO).await?;
        }
        Ok(beaten)
    }

    /// Items in as many calls as their size asks for; answers in their order.
    async fn in_parts<T: Serialize, A: DeserializeOwned>(
        &self,
        call: Call,
        items: Vec<T>,
        body: impl Fn(Vec<T>) -> Result<Vec<u8>, serde_json::Error>,
    ) -> Result<Vec<A>, Problem> {
        let mut answers = Vec::with_capacity(items.len());
        for part in parts(items) {
            let body = body(part)
                .map_err(|error| Problem::new(ProblemCode::BadRequest, error.to_string()))?;
            answers.extend(self.send::<Vec<A>>(call, body.into(), Duration::ZERO).await?);
        }
        Ok(answers)
    }
}

/// Cuts a list where its JSON would become too large.
fn parts<T: Serialize>(items: Vec<T>) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = Vec::new();
    let mut size = 0;
    for item in items {
        let own = serde_json::to_vec(&item).map_or(0, |text| text.len());
        match parts.last_mut() {
            Some(part) if size + own <= SPLIT => {
                part.push(item);
                size += own;
            }
            _ => {
                parts.push(vec![item]);
                size = own;
            }
        }
    }
    parts
}

/// The problem in an answer; one is made up where something else answered.
fn problem_of(status: u16, body: &[u8]) -> Problem {
    let mut problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    problem.status = status;
    if problem.title.is_empty() {
        problem.title = format!("the server answered with status {status}");
    }
    problem
}

impl ExecutionApi for HttpExecution {
    fn register(&self, request: Register) -> Reply<'_, Registered> {
        Box::pin(self.join(request))
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Answer> {
        Box::pin(async move { self.call(Call::TakeOver, &request, Duration::ZERO).await })
    }

    fn poll(&self, request: Poll) -> Reply<'_, Polled> {
        Box::pin(async move {
            let wait = Duration::from_millis(request.wait_ms);
            self.call(Call::Poll, &request, wait).await
        })
    }

    fn start(&self, job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(async move {
            let body = |starts| serde_json::to_vec(&Starts { job_id: job_id.clone(), starts });
            self.in_parts(Call::Start, starts, body).await
        })
    }

    fn report(&self, job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(async move {
            let body = |reports| serde_json::to_vec(&Reports { job_id: job_id.clone(), reports });
            self.in_parts(Call::Report, reports, body).await
        })
    }

    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        Box::pin(self.beaten(request))
    }

    fn release(&self, job_id: &str, tokens: Vec<String>) -> Reply<'_, Vec<Answer>> {
        let job_id = job_id.to_owned();
        Box::pin(async move {
            self.call(Call::Release, &Release { job_id, tokens }, Duration::ZERO).await
        })
    }

    fn leave(&self, job_id: &str) -> Reply<'_, ()> {
        let job_id = job_id.to_owned();
        Box::pin(async move { self.call(Call::Leave, &Leave { job_id }, Duration::ZERO).await })
    }

    fn logs(&self, job_id: &str, pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>> {
        let job_id = job_id.to_owned();
        Box::pin(async move {
            let body = |pieces| serde_json::to_vec(&Logs { job_id: job_id.clone(), pieces });
            self.in_parts(Call::Logs, pieces, body).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_where_it_becomes_too_large_and_loses_nothing() {
        let large = "x".repeat(SPLIT / 2);
        let items = vec![large.clone(), "a".into(), large.clone(), large.clone(), "b".into()];
        let cut = parts(items.clone());
        assert!(cut.len() > 1, "{}", cut.len());
        assert_eq!(cut.concat(), items);
        assert_eq!(parts(vec!["x".repeat(SPLIT * 2)]).len(), 1);
        assert_eq!(parts(Vec::<String>::new()).len(), 0);
    }
}
