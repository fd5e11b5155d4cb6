//! Reading request bodies: JSON, with errors that name the field.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::Problem;

/// A JSON body. Whether unknown fields are refused is up to the type.
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body that may be left out.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let bytes = read(request, state).await?;
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

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let bytes = read(request, state).await?;
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

/// What reading a body gives, if the client sends it in time.
pub(crate) async fn in_time<T>(
    deadline: Option<Deadline>,
    reading: impl Future<Output = T>,
) -> Result<T, Problem> {
    let Some(Deadline(at)) = deadline else { return Ok(reading.await) };
    tokio::time::timeout_at(at, reading).await.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "The body did not come to its end in time.")
    })
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    let deadline = request.extensions().get().copied();
    let read = in_time(deadline, Bytes::from_request(request, state)).await?;
    read.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1 MiB.")
        }
        _ => Problem::new(StatusCode::BAD_REQUEST, "The body could not be read to its end."),
    })
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
