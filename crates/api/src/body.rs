//! Reading request bodies: JSON, with errors that name the field.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use base::Instant;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use crate::Problem;

/// The largest body that is read, of most calls.
pub(crate) const LIMIT: usize = 1024 * 1024;
/// The largest archive with a template and its modules.
pub(crate) const ARCHIVE_LIMIT: usize = 8 * LIMIT;
/// The one call that takes archives.
const TEMPLATES: &str = "/api/v1/templates";

/// The largest body that is read by the call of this path.
pub(crate) fn limit(path: &str) -> usize {
    if path == TEMPLATES { ARCHIVE_LIMIT } else { LIMIT }
}

/// A JSON body. Whether unknown fields are refused is up to the type.
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body that may be left out.
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

/// Until when the request must have been read, as the middleware says.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Instant);

/// All of a body, if it is not too large and comes in time.
pub(crate) async fn whole(
    body: Body,
    limit: usize,
    deadline: Option<Deadline>,
) -> Result<Bytes, Problem> {
    let Some(Deadline(at)) = deadline else { return collect(body, limit).await };
    tokio::time::timeout_at(at, collect(body, limit)).await.unwrap_or_else(|_| {
        let detail = "The body did not come to its end in time.";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let (mut chunks, mut all, mut size) = (body.into_data_stream(), Vec::new(), 0);
    // Whoever is still sending does not hear an answer: what is too large is heard out, in reason.
    let heard_out = (8 * LIMIT).max(2 * limit);
    while size <= heard_out
        && let Some(chunk) = chunks.next().await
    {
        let chunk = chunk.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "The body could not be read to its end.")
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

/// All of a request's body, if it has at most `limit` bytes.
pub(crate) async fn read_up_to(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let deadline = request.extensions().get().copied();
    whole(request.into_body(), limit, deadline).await
}

/// What the body is said to be, in lower case and without parameters.
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

/// Reads JSON; an error says where in the document it is.
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
        Problem::new(StatusCode::BAD_REQUEST, format!("The body is not JSON{place}: {cause}."))
    })?;
    json.end().map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!("There is more after the JSON's end: {error}."),
        )
    })?;
    Ok(value)
}

/// The path says better where it is than a line and a column.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(before, _)| before)
}
