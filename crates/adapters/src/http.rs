//! The HTTP clients of adapters: they follow no redirects, limit the size of responses, and connect
//! to permitted addresses only.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use base::Resolver;
use futures_util::StreamExt;
use port::Fault;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};

/// Why a response body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// The body exceeds the size limit.
    #[error("the response is larger than {0} bytes")]
    TooLong(usize),
    /// The connection failed.
    #[error("the response was interrupted: {}", root_of(.0))]
    Broken(reqwest::Error),
}

/// A client for a system that the settings name. It follows no redirects.
pub(crate) fn client(address: &str, timeout: Duration) -> Result<Client, Fault> {
    built(builder(address.starts_with("https:")).timeout(timeout))
}

/// The same for a system that may refer to other hosts: these are resolved by `resolver`.
pub(crate) fn checked_client(
    address: &str,
    timeout: Duration,
    resolver: Resolver,
) -> Result<Client, Fault> {
    let client = builder(address.starts_with("https:")).timeout(timeout);
    built(client.dns_resolver(Arc::new(Checked(resolver.with_proxies()))))
}

/// The resolver of a client.
pub(crate) struct Checked(pub(crate) Resolver);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The settings that all clients share.
pub(crate) fn builder(has_tls: bool) -> ClientBuilder {
    let client = Client::builder()
        .user_agent(concat!("paddock/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none());
    // Without TLS a missing CA bundle, as in a minimal container, must not matter.
    if has_tls { client } else { client.tls_certs_only([]) }
}

/// Builds the client.
pub(crate) fn built(client: ClientBuilder) -> Result<Client, Fault> {
    client.build().map_err(|error| {
        let why = root_of(&error);
        Fault::Refused(format!("TLS is not available: {why}. Set SSL_CERT_FILE to a CA bundle"))
    })
}

/// The first bytes of a response body, up to a limit, and whether they are the whole body.
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

/// The body of a response, up to a size limit.
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

/// The root cause of an error: the outer errors only say that something failed.
pub(crate) fn root_of(error: &(dyn Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
