//! `Idempotency-Key`: a creating call that is repeated acts once and answers the same.
//!
//! The answer is kept in the transaction of the act itself, so there is no moment at which one
//! exists without the other.

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::entropy;
use serde::Serialize;
use store::Tx;
use store::idempotency::{self, Answer};

use crate::body::{limit, whole};
use crate::caller::Caller;
use crate::{App, Problem};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The caller's key for this act, if it gave one.
pub(crate) struct Once {
    key: Option<String>,
    /// What is asked for, as a hash: the same key can't mean two things.
    request: String,
    /// The status of the first answer.
    status: StatusCode,
}

/// What the middleware found out about the body.
#[derive(Clone)]
struct Digest(String);

/// Hashes the bodies of requests that carry a key, before anybody reads them.
pub(crate) async fn digest(request: Request, next: Next) -> Response {
    if !request.headers().contains_key(&HEADER) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let deadline = parts.extensions.get().copied();
    let bytes = match whole(body, limit(parts.uri.path()), deadline).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let text = format!("{} {} {}", parts.method, parts.uri.path(), String::from_utf8_lossy(&bytes));
    parts.extensions.insert(Digest(entropy::hash(&text)));
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
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

impl Once {
    /// Answers 202 instead of 201: what is asked for takes its time.
    pub(crate) fn accepted(self) -> Self {
        Self { status: StatusCode::ACCEPTED, ..self }
    }

    /// The answer of before, if this was done already.
    pub(crate) async fn replay(
        &self,
        tx: &mut Tx,
        by: &Caller,
    ) -> Result<Option<Response>, Problem> {
        let Some(key) = &self.key else { return Ok(None) };
        // Whoever sends the same at the same time waits here, and then finds the answer.
        tx.lock(&format!("idempotency/{}/{key}", by.user.id)).await?;
        let found = idempotency::get(tx, &by.user.id.to_string(), key).await?;
        found.map(|answer| self.again(answer)).transpose()
    }

    /// Keeps the answer, makes the act durable, and answers.
    pub(crate) async fn finish(
        self,
        app: &App,
        tx: Tx,
        by: &Caller,
        body: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        self.finish_showing(app, tx, by, body, body, headers).await
    }

    /// The same, for an answer that shows more than may be kept.
    pub(crate) async fn finish_showing(
        self,
        app: &App,
        mut tx: Tx,
        by: &Caller,
        kept: &impl Serialize,
        shown: &impl Serialize,
        headers: impl axum::response::IntoResponseParts,
    ) -> Result<Response, Problem> {
        let kept = serde_json::to_string(kept).expect("answers are plain data");
        let shown = serde_json::to_string(shown).expect("answers are plain data");
        let status = self.status;
        if let Some(key) = &self.key {
            let owner = by.user.id.to_string();
            let request = self.request.clone();
            let answer = Answer { request, status: status.as_u16().into(), body: kept };
            if !idempotency::create(&mut tx, &owner, key, &answer).await? {
                // The same call came twice at once and the other was faster: undo this one.
                drop(tx);
                let found = idempotency::get(&mut app.db.read().await?, &owner, key).await?;
                let answer = found
                    .ok_or_else(|| Problem::conflict("The same call is under way; try again."))?;
                return self.again(answer);
            }
        }
        tx.commit().await?;
        Ok((status, headers, json(shown)).into_response())
    }

    fn again(&self, answer: Answer) -> Result<Response, Problem> {
        if answer.request != self.request {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "This Idempotency-Key was used for another request; use a new key for a new request.",
            ));
        }
        let replayed = HeaderName::from_static("idempotency-replayed");
        let status = u16::try_from(answer.status).ok().and_then(|s| StatusCode::from_u16(s).ok());
        let status = status.unwrap_or(StatusCode::CREATED);
        Ok((status, [(replayed, HeaderValue::from_static("true"))], json(answer.body))
            .into_response())
    }
}

fn json(body: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body)
}
