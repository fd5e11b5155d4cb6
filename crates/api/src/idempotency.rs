//! `Idempotency-Key`: executes a repeated create request once and replays its response.
//!
//! The response is stored in the transaction of the operation itself: neither exists without the
//! other.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::entropy;
use model::DeploymentId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Tx;
use store::idempotency::{self, StoredResponse};

use crate::body::{is_image, limit, read_body};
use crate::caller::Caller;
use crate::{App, Problem};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The caller's idempotency key, if given.
pub(crate) struct IdempotencyKey {
    key: Option<String>,
    /// Hash of the request: a key must not be reused for a different request.
    request: String,
    /// Status of the first response.
    status: StatusCode,
}

/// A stored response with a deployment whose environment variables are encrypted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithSealedEnv {
    deployment: DeploymentId,
    sealed_env: BTreeMap<String, String>,
    /// The response without variables.
    response: Map<String, Value>,
}

impl WithSealedEnv {
    pub(crate) fn new(
        shown: &impl Serialize,
        deployment: DeploymentId,
        sealed_env: BTreeMap<String, String>,
    ) -> Self {
        let mut response = match serde_json::to_value(shown) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        response.insert("env".into(), Value::Object(Map::new()));
        Self { deployment, sealed_env, response }
    }

    /// The response as it was first sent.
    async fn open(mut self, app: &App) -> Result<String, Problem> {
        let mut env = Map::new();
        for (name, sealed) in self.sealed_env {
            let purpose = engine::secrets::purpose(self.deployment, &name);
            let opened = app.seal.decrypt(&purpose, &sealed).await.map_err(|fault| {
                tracing::warn!(deployment = %self.deployment, %fault, "decrypting a stored response failed");
                Problem::unavailable("Secret encryption backend unavailable; try again.")
            })?;
            env.insert(name, Value::String(opened.reveal().to_owned()));
        }
        self.response.insert("env".into(), Value::Object(env));
        Ok(Value::Object(self.response).to_string())
    }
}

/// Hash of the request body, computed by the middleware.
#[derive(Clone)]
struct Digest(String);

/// Hashes the bodies of requests with a key before handlers read them.
pub(crate) async fn digest(request: Request, next: Next) -> Response {
    // Loading an image twice has the same result as loading it once.
    if !request.headers().contains_key(&HEADER) || is_image(&request) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let deadline = parts.extensions.get().copied();
    let bytes = match read_body(body, limit(parts.uri.path()), deadline).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let text = format!("{} {} {}", parts.method, parts.uri.path(), String::from_utf8_lossy(&bytes));
    parts.extensions.insert(Digest(entropy::hash(&text)));
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let request = parts.extensions.get::<Digest>().map(|d| d.0.clone()).unwrap_or_default();
        let status = StatusCode::CREATED;
        let Some(value) = parts.headers.get(&HEADER) else {
            return Ok(Self { key: None, request, status });
        };
        let key = value.to_str().unwrap_or_default().trim();
        if key.is_empty() || key.len() > 255 {
            let detail = "Idempotency-Key must have 1 to 255 visible ASCII characters.";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        Ok(Self { key: Some(key.to_owned()), request, status })
    }
}

impl IdempotencyKey {
    /// Responds with 202 instead of 201, for long-running operations.
    pub(crate) fn accepted(self) -> Self {
        Self { status: StatusCode::ACCEPTED, ..self }
    }

    /// Returns the stored response if the request was already executed.
    pub(crate) async fn replay(
        &self,
        tx: &mut Tx,
        by: &Caller,
    ) -> Result<Option<Response>, Problem> {
        let found = self.stored(tx, by).await?;
        found.map(|response| self.replayed(response)).transpose()
    }

    /// Same as `replay`, as it is stored: for [`IdempotencyKey::replayed_with_env`].
    pub(crate) async fn stored(
        &self,
        tx: &mut Tx,
        by: &Caller,
    ) -> Result<Option<StoredResponse>, Problem> {
        let Some(key) = &self.key else { return Ok(None) };
        // A concurrent request with the same key waits here, then finds the response.
        tx.lock(&format!("idempotency/{}/{key}", by.user.id)).await?;
        Ok(idempotency::get(tx, &by.user.id.to_string(), key).await?)
    }

    /// Repeats a stored response with its environment variables decrypted.
    pub(crate) async fn replayed_with_env(
        &self,
        app: &App,
        mut response: StoredResponse,
    ) -> Result<Response, Problem> {
        // Responses of the release before contain the variables.
        if let Ok(sealed) = serde_json::from_str::<WithSealedEnv>(&response.body) {
            response.body = sealed.open(app).await?;
        }
        self.replayed(response)
    }

    /// Same as `finish`, for a response with environment variables, which are stored encrypted.
    pub(crate) async fn finish_with_env(
        self,
        app: &App,
        tx: Tx,
        by: &Caller,
        stored: &WithSealedEnv,
        returned: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        match self.store(tx, by, stored).await? {
            Some(tx) => self.commit(tx, returned, headers).await,
            None => {
                let response = self.raced(app, by).await?;
                self.replayed_with_env(app, response).await
            }
        }
    }

    /// Stores the response, commits the transaction and responds.
    pub(crate) async fn finish(
        self,
        app: &App,
        tx: Tx,
        by: &Caller,
        body: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        self.finish_with_secret(app, tx, by, body, body, headers).await
    }

    /// Same as `finish`, for a response with secrets that must not be stored.
    pub(crate) async fn finish_with_secret(
        self,
        app: &App,
        tx: Tx,
        by: &Caller,
        stored: &impl Serialize,
        returned: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        match self.store(tx, by, stored).await? {
            Some(tx) => self.commit(tx, returned, headers).await,
            None => self.replayed(self.raced(app, by).await?),
        }
    }

    /// Stores the response. `None`: a concurrent request with the same key was faster, and this one
    /// is rolled back.
    async fn store(
        &self,
        mut tx: Tx,
        by: &Caller,
        stored: &impl Serialize,
    ) -> Result<Option<Tx>, Problem> {
        let Some(key) = &self.key else { return Ok(Some(tx)) };
        let body = serde_json::to_string(stored).expect("responses are plain data");
        let (owner, status) = (by.user.id.to_string(), self.status.as_u16().into());
        let response = StoredResponse { request: self.request.clone(), status, body };
        let is_first = idempotency::create(&mut tx, &owner, key, &response).await?;
        Ok(is_first.then_some(tx))
    }

    /// The response of the request that was faster.
    async fn raced(&self, app: &App, by: &Caller) -> Result<StoredResponse, Problem> {
        let (owner, key) = (by.user.id.to_string(), self.key.as_deref().unwrap_or_default());
        let found = idempotency::get(&mut app.db.read().await?, &owner, key).await?;
        found.ok_or_else(|| {
            Problem::conflict("A request with the same Idempotency-Key is in progress; try again.")
        })
    }

    async fn commit(
        &self,
        tx: Tx,
        returned: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        let returned = serde_json::to_string(returned).expect("responses are plain data");
        tx.commit().await?;
        Ok((self.status, headers, json(returned)).into_response())
    }

    fn replayed(&self, response: StoredResponse) -> Result<Response, Problem> {
        if response.request != self.request {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "This Idempotency-Key was already used for a different request; use a new key.",
            ));
        }
        let replayed = HeaderName::from_static("idempotency-replayed");
        let status = u16::try_from(response.status).ok().and_then(|s| StatusCode::from_u16(s).ok());
        let status = status.unwrap_or(StatusCode::CREATED);
        Ok((status, [(replayed, HeaderValue::from_static("true"))], json(response.body))
            .into_response())
    }
}

fn json(body: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body)
}
