//! Handles one request: faults, authentication, routing.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Injected};
use axum::http::{HeaderMap, Response, header};
use futures_util::stream;
use serde_json::Value;

use super::answer::{Answer, Failure, json_response, ok};
use super::route::Route;
use super::{FaultKind, RecordedRequest, Shared, discovery, fault, verbs, watch};

/// Router of the server.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(serve).with_state(shared)
}

async fn serve(Injected(shared): Injected<Arc<Shared>>, request: Request) -> Response<Body> {
    let (asked, headers) = read(request).await;
    let fault = {
        let mut state = shared.state();
        state.asked.push(asked.clone());
        fault::next_fault(&mut state.faults, &asked)
    };
    match fault {
        None => {}
        Some(FaultKind::Status(code)) => return Failure::new(code, "injected fault").into(),
        Some(FaultKind::Busy(seconds)) => return Failure::busy(seconds).into(),
        Some(FaultKind::Garbage) => return Response::new(Body::from("<html>Welcome!</html>")),
        Some(FaultKind::Cut) => return cut(),
        Some(FaultKind::WatchError(code)) => return watch::error(code),
        Some(FaultKind::Slow(time)) => tokio::time::sleep(time).await,
    }
    answer(&shared, &asked, &headers).unwrap_or_else(Response::from)
}

/// A response that breaks off before its first byte.
fn cut() -> Response<Body> {
    let broken: Result<Vec<u8>, _> = Err(std::io::Error::other("cut"));
    Response::new(Body::from_stream(stream::iter([broken])))
}

fn answer(shared: &Arc<Shared>, asked: &RecordedRequest, headers: &HeaderMap) -> Answer {
    let kinds = {
        let state = shared.state();
        let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if !state.tokens.is_empty() && !state.tokens.contains(token) {
            return Err(Failure::new(401, "Unauthorized"));
        }
        state.kinds.clone()
    };
    let missing = || Failure::new(404, "the server could not find the requested resource");
    match Route::parse(&asked.path, &kinds) {
        Route::Version => ok(&discovery::version()),
        Route::CoreVersions => ok(&discovery::core_versions()),
        Route::Groups => ok(&discovery::groups(&kinds)),
        Route::Group(name) => ok(&discovery::group(&kinds, &name).ok_or_else(missing)?),
        Route::Resources(group, version) => {
            ok(&discovery::resources(&kinds, &group, &version).ok_or_else(missing)?)
        }
        Route::Objects(target) => verbs::act(shared, asked, &target),
        Route::Unknown => Ok(json_response(404, &missing().body())),
    }
}

async fn read(request: Request) -> (RecordedRequest, HeaderMap) {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 4 << 20).await.unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    let url = reqwest::Url::parse(&format!("http://host/?{query}"));
    let query = url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default();
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = RecordedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query,
        content_type: content_type.to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    (asked, parts.headers)
}
