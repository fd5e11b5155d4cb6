//! Handles one request: losses, seal, authentication, authorization, routing.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Injected};
use axum::http::{HeaderMap, Response, StatusCode, header};
use futures_util::stream;
use serde_json::{Value, json};

use super::{Call, Hold, Lost, State, auth, kv, pki};

/// A status, and a body unless that is null.
pub(super) type Answer = (u16, Value);

/// A request.
pub(super) struct VaultRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: &'a Value,
    pub(super) content_type: &'a str,
}

pub(super) fn router(state: Arc<Mutex<State>>) -> Router {
    Router::new().fallback(serve).with_state(state)
}

/// An error response.
pub(super) fn error(status: u16, why: &str) -> Answer {
    let errors = if why.is_empty() { json!([]) } else { json!([why]) };
    (status, json!({"errors": errors}))
}

async fn serve(Injected(state): Injected<Arc<Mutex<State>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 4 << 20).await.unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path().strip_prefix("/v1/").unwrap_or_default().to_owned();
    let call = Call {
        method: parts.method.to_string(),
        path,
        token: text(&parts.headers, "x-vault-token").to_owned(),
        namespace: text(&parts.headers, "x-vault-namespace").to_owned(),
    };
    let content_type = text(&parts.headers, header::CONTENT_TYPE.as_str());
    let (number, held) = record(&state, &call);
    if let Some(held) = held {
        held.arrived.notify_one();
        held.released.notified().await;
    }
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, path, values)) = state.concurrent_write.take_if(|(at, ..)| *at == number) {
        state.put(path, values);
    }
    let lost = state.lost.take_if(|(at, _)| *at == number).map(|(_, how)| how);
    if lost == Some(Lost::Before) {
        return cut();
    }
    let asked = VaultRequest { method: &call.method, path: &call.path, body: &body, content_type };
    let (status, body) = answer(&mut state, &asked, &call.token);
    if lost == Some(Lost::After) {
        return cut();
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

/// Records a call. Returns its number, and its delay if any.
fn record(state: &Mutex<State>, call: &Call) -> (usize, Option<Hold>) {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let number = state.calls.len();
    state.calls.push(call.clone());
    (number, state.held.take_if(|(at, _)| *at == number).map(|(_, hold)| hold))
}

/// A response that breaks off before its first byte.
fn cut() -> Response<Body> {
    let broken: Result<Vec<u8>, _> = Err(std::io::Error::other("cut"));
    Response::new(Body::from_stream(stream::iter([broken])))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn answer(state: &mut State, asked: &VaultRequest<'_>, token: &str) -> Answer {
    if state.is_sealed {
        return error(503, "Vault is sealed");
    }
    if let (Some(mount), "POST") = (login(asked.path), asked.method) {
        return auth::log_in(state, mount, asked.body);
    }
    let now = state.now();
    let Some(holder) = state.tokens.get(token).filter(|token| !token.is_expired(now)) else {
        return error(403, "permission denied");
    };
    // Every token may inspect itself by the policy `default`; mounts have a rule of their own.
    if let Some(what) = asked.path.strip_prefix("auth/token/") {
        return auth::token(state, token, asked.method, what);
    }
    if let Some(mount) = asked.path.strip_prefix("sys/internal/ui/mounts/") {
        let may = holder.may_below(mount);
        return mounts(state, mount, may);
    }
    if !holder.may(asked.method, asked.path) {
        return error(403, "1 error occurred:\n\t* permission denied\n\n");
    }
    match asked.path.split_once('/') {
        Some(("secret", rest)) => kv::version_2(state, asked, rest),
        Some(("kv", _)) => kv::version_1(state, asked),
        Some(("pki", rest)) => pki::act(state, asked, rest),
        _ => error(404, &format!("no handler for route \"{}\"", asked.path)),
    }
}

fn login(path: &str) -> Option<&str> {
    path.strip_prefix("auth/")?.strip_suffix("/login")
}

fn mounts(state: &State, mount: &str, may: bool) -> Answer {
    if !state.has_mounts {
        return error(404, "");
    }
    let first = mount.split('/').next().unwrap_or_default();
    let (engine, version) = match first {
        "secret" => ("kv", json!({"version": "2"})),
        "kv" => ("kv", json!({"version": "1"})),
        "pki" => ("pki", Value::Null),
        _ => ("", Value::Null),
    };
    if engine.is_empty() || !may {
        let why = format!(
            "preflight capability check returned 403, please ensure client's policies grant access \
             to path \"{mount}/\""
        );
        return error(403, &why);
    }
    let path = format!("{first}/");
    (200, json!({"data": {"path": path, "type": engine, "options": version}}))
}
