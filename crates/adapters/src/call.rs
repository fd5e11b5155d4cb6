//! One call to an external HTTP API: with a timeout and a size limit, without redirects, errors as
//! [`Fault`]s.
//!
//! Calls are not retried here, and faults never contain secrets.

use std::time::Duration;

use base::Resolver;
use base::resolver::refusal;
use model::Secret;
use model::address::Policy;
use port::Fault;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::http::{self, Unread, root_of};

pub(crate) mod message;

/// The default timeout of one call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of a response body.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Invalid settings, with a message for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOptions(pub String);

/// An external system that speaks HTTP.
pub(crate) struct Peer {
    http: reqwest::Client,
    resolver: Resolver,
    address: Url,
    name: String,
    limit: Duration,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    body: Vec<u8>,
}

impl Peer {
    /// Prepares calls to `what`, for example "Vault"; sends nothing yet.
    pub(crate) fn new(what: &str, address: &str, limit: Duration) -> Result<Self, InvalidOptions> {
        Self::checked(what, address, limit, Policy::default())
    }

    /// The same for a system that may refer to other hosts, which the policy must permit.
    pub(crate) fn checked(
        what: &str,
        address: &str,
        limit: Duration,
        policy: Policy,
    ) -> Result<Self, InvalidOptions> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(|url| url.host().is_some() && url.password().is_none());
        // The message does not repeat the address: it may contain a password.
        let address = url.ok_or_else(|| {
            InvalidOptions(
                "invalid address: must be a URL such as https://sso.example.com, without a password"
                .into(),
            )
        })?;
        let resolver = Resolver::new(policy).with_exempt(address.host_str().unwrap_or_default());
        let http = http::checked_client(address.as_str(), limit, resolver.clone())
            .map_err(|fault| InvalidOptions(fault.to_string()))?;
        let name = format!("{what} at {}", address.as_str().trim_end_matches('/'));
        Ok(Self { http, resolver, address, name, limit })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The URL of these path segments below its address.
    pub(crate) fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// A URL that the system itself returned. A system that is called with TLS must not downgrade
    /// to HTTP, and another host must have a permitted address.
    pub(crate) fn returned_url(&self, address: &str) -> Result<Url, Fault> {
        let url = Url::parse(address).ok().filter(|url| match self.address.scheme() {
            "https" => url.scheme() == "https",
            _ => matches!(url.scheme(), "http" | "https"),
        });
        let url = url.ok_or_else(|| self.invalid_response("it contains an unusable URL"))?;
        // Names are checked when they are resolved.
        let checked = self.resolver.check_literal(url.host_str().unwrap_or_default());
        checked.map_err(|refused| self.invalid_response(&refused.to_string()))?;
        Ok(url)
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: reqwest::Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }

    /// Sends a request and reads the response, whatever its status.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Reply, Fault> {
        let reply = self.send_within(request, MAX_BODY_BYTES).await?;
        reply.ok_or_else(|| {
            let most = MAX_BODY_BYTES >> 20;
            self.invalid_response(&format!("it is larger than {most} MiB"))
        })
    }

    /// The same with another size limit; none if the response is larger.
    pub(crate) async fn send_within(
        &self,
        request: RequestBuilder,
        most_bytes: usize,
    ) -> Result<Option<Reply>, Fault> {
        let answer = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        match http::body(answer, most_bytes).await {
            Ok(body) => Ok(Some(Reply { status, body })),
            Err(Unread::TooLong(_)) => Ok(None),
            Err(Unread::Broken(error)) => Err(self.unreachable(error)),
        }
    }

    /// The fault of an unexpected response. `doing` completes "failed to"; secrets that were sent
    /// are redacted, in case the response repeats them.
    pub(crate) fn fault(&self, doing: &str, reply: &Reply, secrets: &[&Secret]) -> Fault {
        let (name, status) = (&self.name, reply.status.as_u16());
        let message = reply.redacted_message(secrets);
        match reply.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::Unavailable(format!(
                "{name} failed to {doing}: access denied, status {status}{message}. Check the \
                 credentials in the settings"
            )),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Fault::Unavailable(
                format!("{name} failed to {doing}: overloaded, status {status}{message}"),
            ),
            other if other.is_client_error() => {
                Fault::Refused(format!("{name} refused to {doing}: status {status}{message}"))
            }
            _ => Fault::Unavailable(format!("{name} failed to {doing}: status {status}{message}")),
        }
    }

    /// The fault of a response that can't be interpreted.
    pub(crate) fn invalid_response(&self, why: &str) -> Fault {
        Fault::Unavailable(format!("{} returned an invalid response: {why}", self.name))
    }

    fn unreachable(&self, error: reqwest::Error) -> Fault {
        let name = &self.name;
        if error.is_timeout() {
            return Fault::Unavailable(format!("{name} did not answer within {:?}", self.limit));
        }
        if let Some(refused) = refusal(&error) {
            return self.invalid_response(&refused.to_string());
        }
        let cause = root_of(&error.without_url());
        Fault::Unavailable(format!("{name} is unreachable: {cause}"))
    }
}

impl Reply {
    /// The body as JSON of the expected type.
    pub(crate) fn json<T: DeserializeOwned>(&self, peer: &Peer) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|_| peer.invalid_response("the body is not the expected JSON"))
    }

    /// Whether the body contains this text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.body).contains(text)
    }

    /// The error message in the body, with secrets that were sent redacted.
    pub(crate) fn redacted_message(&self, secrets: &[&Secret]) -> String {
        message::redact(&self.message(), secrets)
    }

    /// The error message in the body, as ` (message)`; empty if there is none.
    pub(crate) fn message(&self) -> String {
        let message = match serde_json::from_slice(&self.body) {
            Ok(value) => message::in_json(&value),
            Err(_) => message::first_line(&self.body),
        };
        message.map(|text| format!(" ({text})")).unwrap_or_default()
    }
}
