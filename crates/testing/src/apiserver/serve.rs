//! One request: who asks, what goes wrong, what is meant.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Injected};
use axum::http::{HeaderMap, Response, header};
use futures_util::stream;
use serde_json::Value;

use super::answer::{Answer, Failure, json_response, ok};
use super::route::Route;
use super::{Asked, Misbehave, Shared, discovery, fault, verbs, watch};

/// The server, for one connection or many.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(serve).with_state(shared)
}

async fn serve(Injected(shared): Injected<Arc<Shared>>, request: Request) -> Response<Body> {
    let (asked, headers) = read(request).await;
    let wrong = {
        let mut state = shared.state();
        state.asked.push(asked.clone());
        fault::take(&mut state.faults, &asked)
    };
    match wrong {
        None => {}
        Some(Misbehave::Status(code)) => return Failure::new(code, "as the test wants").into(),
        Some(Misbehave::Busy(seconds)) => return Failure::busy(seconds).into(),
        Some(Misbehave::Garbage) => return Response::new(Body::from("<html>Welcome!</html>")),
        Some(Misbehave::Cut) => return cut(),
        Some(Misbehave::WatchError(code)) => return watch::error(code),
        Some(Misbehave::Slow(time)) => tokio::time::sleep(time).await,
    }
    answer(&shared, &asked, &headers).unwrap_or_else(Response::from)
}

/// An answer that breaks off before its first byte.
fn cut() -> Response<Body> {
    let broken: Result<Vec<u8>, _> = Err(std::io::Error::other("cut"));
    Response::new(Body::from_stream(stream::iter([broken])))
}

fn answer(shared: &Arc<Shared>, asked: &Asked, headers: &HeaderMap) -> Answer {
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
    match Route::of(&asked.path, &kinds) {
        Route::Version => ok(&discovery::version()),
        Route::CoreVersions => ok(&discovery::core_versions()),
        Route::Groups => ok(&discovery::groups(&kinds)),
        Route::Group(name) => ok(&discovery::group(&kinds, &name).ok_or_else(missing)?),
        Route::Resources(group, version) => {
            ok(&discovery::resources(&kinds, &group, &version).ok_or_else(missing)?)
        }
        Route::Objects(place) => verbs::act(shared, asked, &place),
        Route::Unknown => Ok(json_response(404, &missing().body())),
    }
}

async fn read(request: Request) -> (Asked, HeaderMap) {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 4 << 20).await.unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    let url = reqwest::Url::parse(&format!("http://host/?{query}"));
    let query = url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default();
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = Asked {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query,
        content_type: content_type.to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    (asked, parts.headers)
}
