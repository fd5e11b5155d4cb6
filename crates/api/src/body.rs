//! Reading request bodies: JSON, with errors that name the field.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::Problem;

/// The largest body that is read.
const LIMIT: usize = 1024 * 1024;
/// How much of a larger one is taken in and thrown away before it is refused.
const HEARD_OUT: usize = 8 * LIMIT;

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
pub(crate) async fn whole(body: Body, deadline: Option<Deadline>) -> Result<Bytes, Problem> {
    let Some(Deadline(at)) = deadline else { return collect(body).await };
    tokio::time::timeout_at(at, collect(body)).await.unwrap_or_else(|_| {
        let detail = "The body did not come to its end in time.";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

async fn collect(body: Body) -> Result<Bytes, Problem> {
    let (mut chunks, mut all, mut size) = (body.into_data_stream(), Vec::new(), 0);
    // Whoever is still sending does not hear an answer: what is too large is heard out, in reason.
    while size <= HEARD_OUT
        && let Some(chunk) = chunks.next().await
    {
        let chunk = chunk.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "The body could not be read to its end.")
        })?;
        size += chunk.len();
        if size <= LIMIT {
            all.extend_from_slice(&chunk);
        }
    }
    if size > LIMIT {
        let detail = "The body is larger than 1 MiB.";
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(all.into())
}

async fn read(request: Request) -> Result<Bytes, Problem> {
    let deadline = request.extensions().get().copied();
    whole(request.into_body(), deadline).await
}

fn is_json(request: &Request) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json") || essence.ends_with("+json")
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
