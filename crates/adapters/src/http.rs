//! HTTP as adapters use it: no answer is followed elsewhere, and none may be endless.

use std::error::Error;
use std::time::Duration;

use futures_util::StreamExt;
use port::Fault;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};

/// Why an answer could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It has more bytes than anybody should need.
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
    /// It broke off.
    #[error("the answer broke off: {}", root_of(.0))]
    Broken(reqwest::Error),
}

/// A client that sends requests where they are meant to go and nowhere else.
pub(crate) fn client(address: &str, timeout: Duration) -> Result<Client, Fault> {
    built(builder(address.starts_with("https:")).timeout(timeout))
}

/// What every client begins with.
pub(crate) fn builder(has_tls: bool) -> ClientBuilder {
    let client = Client::builder()
        .user_agent(concat!("paddock/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none());
    // Without TLS it must not matter that a small container has no certificates.
    if has_tls { client } else { client.tls_certs_only([]) }
}

/// The client, or why there can be none.
pub(crate) fn built(client: ClientBuilder) -> Result<Client, Fault> {
    client.build().map_err(|error| {
        let why = root_of(&error);
        Fault::Refused(format!("TLS can't be used: {why}; name certificates in SSL_CERT_FILE"))
    })
}

/// The first bytes of an answer's body, at most so many, and whether those are all.
pub(crate) async fn start(
    answer: Response,
    most_bytes: usize,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let (mut read, mut stream) = (Vec::new(), answer.bytes_stream());
    while let Some(part) = stream.next().await {
        read.extend_from_slice(&part?);
        if read.len() > most_bytes {
            read.truncate(most_bytes);
            return Ok((read, false));
        }
    }
    Ok((read, true))
}

/// The body of an answer, if it has at most so many bytes.
pub(crate) async fn body(answer: Response, most_bytes: usize) -> Result<Vec<u8>, Unread> {
    let (mut read, mut stream) = (Vec::new(), answer.bytes_stream());
    while let Some(part) = stream.next().await {
        let part = part.map_err(Unread::Broken)?;
        if read.len() + part.len() > most_bytes {
            return Err(Unread::TooLong(most_bytes));
        }
        read.extend_from_slice(&part);
    }
    Ok(read)
}

/// The innermost reason: what wraps it says only that something failed.
pub(crate) fn root_of(error: &(dyn Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
