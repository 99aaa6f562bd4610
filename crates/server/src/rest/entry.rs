//! From a request to its handler: route, token, permission, body.

use super::answer::{Done, response};
use super::call::Call;
use super::failure::Failure;
use super::{Server, dispatch, idempotency};
use crate::auth::{Principal, authenticate, remember};
use crate::body::{bearer, take};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::routes::{self, Method, Permission, Route};
use std::sync::{Arc, PoisonError};

/// Largest body.
const BODY_MAX: usize = 1 << 20;
const METHODS: [Method; 5] =
    [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete];

/// Answers any request.
pub(super) async fn serve(State(server): State<Arc<Server>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let allow = allowed(&path);
    let done = Box::pin(answer(server, request)).await;
    let refused = matches!(&done, Err(Failure(problem, ..)) if problem.status == 405);
    response(done, &path, allow.as_deref().filter(|_| refused))
}

/// The methods of a path, if it has any.
fn allowed(path: &str) -> Option<String> {
    let has = |method: &&Method| routes::find(method.as_str(), path).is_some();
    let names: Vec<&str> = METHODS.iter().filter(has).map(|method| method.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

async fn answer(server: Arc<Server>, request: Request) -> Done {
    let (parts, body) = request.into_parts();
    let (route, args) = find(parts.method.as_str(), parts.uri.path())?;
    let principal = admit(&server, route, &parts.headers).await?;
    if args.iter().any(|arg| arg.contains('\0')) || has_nul(parts.uri.query()) {
        return Err(Failure::new(ProblemCode::BadRequest, "the address has a NUL character"));
    }
    let body = match route.method {
        Method::Get | Method::Delete => Bytes::new(),
        Method::Post | Method::Put | Method::Patch => take(&parts.headers, body, BODY_MAX).await?,
    };
    let uri = parts.uri;
    let call = Call { server, route, args, uri, principal, body, run_id: None };
    if route.method == Method::Get {
        return dispatch::serve(&call).await;
    }
    // What changes something is carried out to its end, whether or not somebody still listens.
    let key = idempotency::key(&parts.headers)?.filter(|_| route.method == Method::Post);
    let task = tokio::spawn(async move {
        match key {
            Some(key) => idempotency::serve(call, &key).await,
            None => dispatch::serve(&call).await,
        }
    });
    task.await.unwrap_or_else(|_| {
        Err(Failure::new(ProblemCode::Internal, "the request could not be carried out"))
    })
}

/// The route of a request; HEAD is GET without its body.
fn find(method: &str, path: &str) -> Result<(&'static Route, Vec<String>), Failure> {
    let method = if method == "HEAD" { "GET" } else { method };
    routes::find(method, path).ok_or_else(|| match allowed(path) {
        Some(names) => {
            let text = format!("{method} is not among the methods of {path}: {names}");
            Failure::new(ProblemCode::MethodNotAllowed, text)
        }
        None => Failure::new(ProblemCode::NoSuchRoute, format!("there is nothing at {path}"))
            .suggest(format!("see  {}{}", routes::PREFIX, routes::OPENAPI.path)),
    })
}

/// Who calls, if they may. On a public route a token is optional, and a bad one is none.
async fn admit(
    server: &Server,
    route: &Route,
    headers: &HeaderMap,
) -> Result<Option<Principal>, Failure> {
    let public = route.permission == Permission::Public;
    let found = match bearer(headers) {
        Some(secret) => authenticate(&server.state.cx, secret).await,
        None => Err(Failure::new(
            ProblemCode::Unauthenticated,
            "this needs a header `Authorization: Bearer TOKEN`",
        )),
    };
    match found {
        Ok(principal) => {
            principal.check(route.permission)?;
            let now = server.state.cx.store.clock().now();
            {
                let mut used = server.used.lock().unwrap_or_else(PoisonError::into_inner);
                used.insert(principal.id.clone(), now);
            }
            remember(&server.state.cx, &principal).await;
            Ok(Some(principal))
        }
        Err(_) if public => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn has_nul(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.contains("%00"))
}
