//! `GET /metrics`: what Prometheus reads (text format 0.0.4), also at `/api/v1/metrics`.
//!
//! Gauges are read from the store, in one snapshot that is kept for some seconds, so that no number of
//! scrapers storms it; counters are those of this process. A store that is away takes only its gauges
//! with it: `fencepost_store_up` is 0 then.

mod families;
mod pulse;
mod text;

use crate::auth::authenticate;
use crate::body::bearer;
use crate::rest::{Failure, response};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::{Method, Response};
use axum::routing::any;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::routes::{PREFIX, Permission};
use fencepost_core::time::{BootInstant, Span};
use fencepost_engine::Cx;
use fencepost_engine::drive::SharedHealth;
use pulse::Pulse;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use text::{Kind, Text};
use tokio::sync::Mutex;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long a reading is kept.
const KEPT: Span = Span::from_secs(3);
/// How long the store may take to give one.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the metrics are made of.
#[derive(Clone)]
pub struct Metrics {
    pub cx: Cx,
    /// Of the loop that runs the passes, if this process has one.
    pub health: SharedHealth,
    pub version: String,
    /// Anybody who can reach the address may read them.
    pub is_anonymous: bool,
}

struct Served {
    metrics: Metrics,
    kept: Mutex<Option<(BootInstant, Arc<Pulse>)>>,
}

/// The routes.
pub fn routes(metrics: Metrics) -> Router {
    let served = Arc::new(Served { metrics, kept: Mutex::default() });
    Router::new()
        .route("/metrics", any(serve))
        .route(&format!("{PREFIX}/metrics"), any(serve))
        .with_state(served)
}

async fn serve(State(served): State<Arc<Served>>, request: Request) -> Response<Body> {
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    if method != Method::GET && method != Method::HEAD {
        let text = format!("{path} is read with GET");
        let failure = Failure::new(ProblemCode::MethodNotAllowed, text);
        return response(Err(failure), &path, Some("GET"));
    }
    match admit(&served.metrics, request.headers()).await {
        Ok(()) => {}
        Err(failure) => return response(Err(failure), &path, None),
    }
    let mut answer = Response::new(Body::from(served.document().await));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
    answer
}

/// A viewer's token, unless the operator said that nobody needs one.
async fn admit(metrics: &Metrics, headers: &HeaderMap) -> Result<(), Failure> {
    if metrics.is_anonymous {
        return Ok(());
    }
    let Some(secret) = bearer(headers) else {
        let text = "this needs a header `Authorization: Bearer TOKEN`";
        return Err(Failure::new(ProblemCode::Unauthenticated, text)
            .suggest("a token of role viewer, or [metrics] anonymous = true"));
    };
    authenticate(&metrics.cx, secret).await?.check(Permission::SystemRead)
}

impl Served {
    async fn document(&self) -> String {
        let mut text = Text::default();
        let pulse = self.pulse().await;
        let version = self.metrics.version.as_str();
        let info = [(vec![("version", version)], 1.0)];
        text.family(Kind::Gauge, "fencepost_build_info", "The program.", info);
        let up = f64::from(u8::from(pulse.is_some()));
        text.gauge("fencepost_store_up", "Whether the store answered this process.", up);
        if let Some(pulse) = pulse {
            families::of_store(&mut text, &pulse);
        }
        self.progress(&mut text);
        families::of_process(&mut text, &self.metrics.cx.meters);
        text.into_string()
    }

    /// The reading of a moment ago, or a fresh one. Who asks meanwhile waits for that.
    async fn pulse(&self) -> Option<Arc<Pulse>> {
        let cx = &self.metrics.cx;
        let mut kept = self.kept.lock().await;
        let now = (cx.env.boottime)();
        if let Some((at, pulse)) = &*kept
            && now.since(*at) < KEPT
        {
            return Some(Arc::clone(pulse));
        }
        let read = tokio::time::timeout(PATIENCE, Pulse::read(cx)).await;
        let fresh = read.ok().and_then(Result::ok).map(Arc::new);
        *kept = fresh.clone().map(|pulse| ((cx.env.boottime)(), pulse));
        fresh
    }

    /// Of a process with passes: how far they are.
    fn progress(&self, text: &mut Text) {
        let known = self.metrics.health.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(at) = known.last_turn_at else { return };
        let age = self.metrics.cx.store.clock().now().since(at).max(Span::ZERO);
        let name = "fencepost_progress_age_seconds";
        let help = "Since all passes of this process last went round without a failure.";
        text.gauge(name, help, f64::from(u32::try_from(age.as_millis()).unwrap_or(u32::MAX)) / 1e3);
    }
}
