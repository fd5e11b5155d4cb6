//! Request bodies: JSON regardless of the content type; unknown fields are ignored.

use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::Error;
use crate::body::{LIMIT, parse, read_body};

/// A JSON body. `null` is treated as an empty object.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<Self, Response> {
        read(request).await.map(Json).map_err(IntoResponse::into_response)
    }
}

async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Error> {
    let deadline = request.extensions().get().copied();
    let unreadable = |problem: crate::Problem| Error::unreadable(problem.to_string());
    let bytes = read_body(request.into_body(), LIMIT, deadline).await.map_err(unreadable)?;
    let body = match bytes.trim_ascii() {
        b"" => return Err(Error::unreadable("The body is empty; send a JSON object.")),
        b"null" => b"{}",
        body => body,
    };
    if body.first() != Some(&b'{') {
        return Err(Error::unreadable("The body must be a JSON object."));
    }
    parse(body).map_err(unreadable)
}
