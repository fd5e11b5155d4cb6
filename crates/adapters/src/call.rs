//! One call of a foreign HTTP API: a limit of time and of size, no redirects, faults as sentences.
//!
//! Nothing here repeats a call, and nothing secret gets into a fault.

use std::time::Duration;

use model::Secret;
use port::Fault;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::http::{self, Unread, root_of};

pub(crate) mod words;

/// How long one call may take, unless somebody says otherwise.
pub const LIMIT: Duration = Duration::from_secs(5);

/// What no answer is longer than.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Settings that can't be used, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// A foreign system that speaks HTTP.
pub(crate) struct Peer {
    http: reqwest::Client,
    address: Url,
    name: String,
    limit: Duration,
}

/// What it answered.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    body: Vec<u8>,
}

impl Peer {
    /// Prepares to talk to `what`, for example "Vault"; nothing is sent yet.
    pub(crate) fn new(what: &str, address: &str, limit: Duration) -> Result<Self, Unusable> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(|url| url.host().is_some() && url.password().is_none());
        // It is not repeated: there could be a password in it.
        let address = url.ok_or_else(|| {
            Unusable(
                "this is no address, such as https://sso.example.com, or has a password".into(),
            )
        })?;
        let http =
            http::client(address.as_str(), limit).map_err(|fault| Unusable(fault.to_string()))?;
        let name = format!("{what} at {}", address.as_str().trim_end_matches('/'));
        Ok(Self { http, address, name, limit })
    }

    /// What it is called in sentences.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where something of it is: its address, and these segments.
    pub(crate) fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// An address that it named itself. Who was asked with TLS must not lead away from it.
    pub(crate) fn elsewhere(&self, address: &str) -> Result<Url, Fault> {
        let url = Url::parse(address).ok().filter(|url| match self.address.scheme() {
            "https" => url.scheme() == "https",
            _ => matches!(url.scheme(), "http" | "https"),
        });
        url.ok_or_else(|| self.confused("it named an address that can't be used"))
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: reqwest::Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }

    /// Sends it, and reads the answer, whatever its status.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Reply, Fault> {
        let reply = self.send_within(request, MAX_BODY_BYTES).await?;
        reply.ok_or_else(|| self.confused("its answer has no end"))
    }

    /// The same with another limit of size; none if the answer is longer.
    pub(crate) async fn send_within(
        &self,
        request: RequestBuilder,
        most_bytes: usize,
    ) -> Result<Option<Reply>, Fault> {
        let answer = request.send().await.map_err(|error| self.silent(error))?;
        let status = answer.status();
        match http::body(answer, most_bytes).await {
            Ok(body) => Ok(Some(Reply { status, body })),
            Err(Unread::TooLong(_)) => Ok(None),
            Err(Unread::Broken(error)) => Err(self.silent(error)),
        }
    }

    /// The fault of an answer that is not what was asked for. `doing` follows "to"; the secrets that
    /// were sent are blotted out, should it have repeated them.
    pub(crate) fn fault(&self, doing: &str, reply: &Reply, secrets: &[&Secret]) -> Fault {
        let (name, status) = (&self.name, reply.status.as_u16());
        let said = reply.said_without(secrets);
        match reply.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::Unavailable(format!(
                "{name} does not allow Paddock to {doing}: it answered {status}{said}; check the \
                 credentials in the settings"
            )),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Fault::Unavailable(format!("{name} has no time to {doing}: {status}{said}"))
            }
            other if other.is_client_error() => {
                Fault::Refused(format!("{name} refuses to {doing}: it answered {status}{said}"))
            }
            _ => Fault::Unavailable(format!("{name} fails to {doing}: it answered {status}{said}")),
        }
    }

    /// The fault of an answer that makes no sense.
    pub(crate) fn confused(&self, why: &str) -> Fault {
        Fault::Unavailable(format!("{} gives answers that make no sense: {why}", self.name))
    }

    fn silent(&self, error: reqwest::Error) -> Fault {
        let name = &self.name;
        if error.is_timeout() {
            return Fault::Unavailable(format!("{name} did not answer within {:?}", self.limit));
        }
        let cause = root_of(&error.without_url());
        Fault::Unavailable(format!("{name} can't be reached: {cause}"))
    }
}

impl Reply {
    /// The answer, if it is what it should be.
    pub(crate) fn json<T: DeserializeOwned>(&self, peer: &Peer) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|_| peer.confused("what should be JSON of a known shape is something else"))
    }

    /// Are these words in it?
    pub(crate) fn says(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.body).contains(words)
    }

    /// What it says about itself, without the secrets that were sent, should it have repeated them.
    pub(crate) fn said_without(&self, secrets: &[&Secret]) -> String {
        words::without(&self.said(), secrets)
    }

    /// What the answer says about itself, as ` (words)`; nothing if it says nothing.
    pub(crate) fn said(&self) -> String {
        let said = match serde_json::from_slice(&self.body) {
            Ok(value) => words::said(&value),
            Err(_) => words::first_line(&self.body),
        };
        said.map(|text| format!(" ({text})")).unwrap_or_default()
    }
}
