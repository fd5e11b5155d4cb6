//! Request bodies: JSON with errors that name the field.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{Method, StatusCode, header};
use base::Instant;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use crate::Problem;

/// Maximum body size of most requests.
pub(crate) const LIMIT: usize = 1024 * 1024;
/// Maximum size of a template archive with modules.
pub(crate) const ARCHIVE_LIMIT: usize = 8 * LIMIT;
/// The only path that accepts archives.
const TEMPLATES: &str = "/api/v1/templates";

/// Maximum body size of a request with this path.
pub(crate) fn limit(path: &str) -> usize {
    if path == TEMPLATES { ARCHIVE_LIMIT } else { LIMIT }
}

/// The path that receives image archives, which are stored in a file and have their own limits.
pub(crate) const IMAGES: &str = "/api/v1/images";
/// Time limit of loading an image archive: receiving and unpacking it.
const IMAGE_TIMEOUT: Duration = Duration::from_hours(1);

/// Whether the request uploads an image archive.
pub(crate) fn is_image(request: &Request) -> bool {
    request.method() == Method::POST && request.uri().path() == IMAGES
}

/// Time limit of a request, which is `usual` for most.
pub(crate) fn timeout(request: &Request, usual: Duration) -> Duration {
    if is_image(request) { IMAGE_TIMEOUT.max(usual) } else { usual }
}

/// A JSON body. The type decides whether unknown fields are rejected.
pub(crate) struct Json<T>(pub(crate) T);

/// An optional JSON body.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "The body is empty; send a JSON object.",
            ));
        }
        require_json(is_json)?;
        parse(&bytes).map(Json)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let bytes = read(request).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(is_json)?;
        parse(&bytes).map(Self)
    }
}

/// Time by which the body must have been received, set by the middleware.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Instant);

/// Reads a body up to `limit` bytes and within the deadline.
pub(crate) async fn read_body(
    body: Body,
    limit: usize,
    deadline: Option<Deadline>,
) -> Result<Bytes, Problem> {
    let Some(Deadline(at)) = deadline else { return collect(body, limit).await };
    tokio::time::timeout_at(at, collect(body, limit)).await.unwrap_or_else(|_| {
        let detail = "The request body was not received in time.";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let (mut chunks, mut all, mut size) = (body.into_data_stream(), Vec::new(), 0);
    // A client that is still sending does not read the response, so oversized bodies are drained up
    // to a bound.
    let drain_limit = (8 * LIMIT).max(2 * limit);
    while size <= drain_limit
        && let Some(chunk) = chunks.next().await
    {
        let chunk = chunk.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "The request body could not be read.")
        })?;
        size += chunk.len();
        if size <= limit {
            all.extend_from_slice(&chunk);
        }
    }
    if size > limit {
        let detail = format!("The body is larger than {} MiB.", limit >> 20);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(all.into())
}

async fn read(request: Request) -> Result<Bytes, Problem> {
    read_up_to(request, LIMIT).await
}

/// Reads the body of a request up to `limit` bytes.
pub(crate) async fn read_up_to(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let deadline = request.extensions().get().copied();
    read_body(request.into_body(), limit, deadline).await
}

/// Media type of the body: lower-case, without parameters.
pub(crate) fn content_type(request: &Request) -> String {
    let text = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = text.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn is_json(request: &Request) -> bool {
    let essence = content_type(request);
    essence == "application/json" || essence.ends_with("+json")
}

fn require_json(is_json: bool) -> Result<(), Problem> {
    if is_json {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The body must be JSON: send the header Content-Type: application/json.",
    ))
}

/// Parses JSON; errors name the path in the document.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let path = path.trim_end_matches(".?").to_owned();
        let cause = error.into_inner();
        if cause.is_data() {
            let field = if path == "." { "body".to_owned() } else { path };
            return Problem::field(field, without_position(&cause.to_string()));
        }
        let place = if path == "." { String::new() } else { format!(" at {path}") };
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!("The body is not valid JSON{place}: {cause}."),
        )
    })?;
    json.end().map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!("The body has trailing characters after the JSON value: {error}."),
        )
    })?;
    Ok(value)
}

/// Removes the line and column: the path is more precise.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(before, _)| before)
}
