//! Talks to the server: one place for addresses, tokens, time-outs and second tries.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Request, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::call::{Body, Call};
use super::config::Token;
use super::error::{Error, Refusal};
use super::problem::Problem;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long to pause before each further try.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// The server, as the one who is signed in sees it.
pub(crate) struct Api {
    http: reqwest::Client,
    server: Url,
    token: Option<Token>,
    /// How long to wait for an answer.
    patience: Duration,
}

/// What the server answered, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Did the call make something that was not there?
    pub(crate) is_new: bool,
    pub(crate) body: String,
}

/// What came back over the wire, not yet judged.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Api {
    /// Prepares to talk to `server`; nothing is sent yet.
    pub(crate) fn new(
        server: Url,
        token: Option<Token>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("paddock/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN.min(patience))
            // A redirect would turn a POST into a GET: better to say so than to lose a body.
            .redirect(redirect::Policy::none());
        if server.scheme() == "http" {
            // Without TLS it must not matter that a small container has no certificates.
            http = http.tls_certs_only([]);
        }
        let http = http.build().map_err(|error| {
            Error::failed_but(
                format!("can't prepare TLS: {}", root(&error)),
                "name the certificates to trust in SSL_CERT_FILE",
            )
        })?;
        Ok(Self { http, server, token, patience })
    }

    /// The server's address, as people write it.
    pub(crate) fn address(&self) -> String {
        self.server.as_str().trim_end_matches('/').into()
    }

    /// Makes a call. Broken connections are tried again where that can do no harm.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failure = match self.attempt(self.request(call, Some(self.patience))?).await {
                Ok(reply) => return self.judge(reply, call.needs_token),
                Err(failure) => failure,
            };
            match pauses.next() {
                Some(pause) if may_repeat(call, &failure) => sleep(pause).await,
                _ => return Err(self.unreachable(&failure)),
            }
        }
    }

    /// Opens a stream of server-sent events that goes on after `last_event_id`.
    pub(crate) async fn stream(
        &self,
        call: &Call,
        last_event_id: Option<&str>,
    ) -> Result<Response, Error> {
        let mut request = self.request(call, None)?;
        if let Some(id) = last_event_id.and_then(|id| id.parse().ok()) {
            request.headers_mut().insert("last-event-id", id);
        }
        self.open(request, "text/event-stream", call.needs_token).await
    }

    /// Opens a stream of lines, each of them JSON.
    pub(crate) async fn lines(&self, call: &Call) -> Result<Response, Error> {
        self.open(self.request(call, None)?, "application/x-ndjson", call.needs_token).await
    }

    /// Waits for the head of an answer; its body may take as long as it likes.
    async fn open(
        &self,
        mut request: Request,
        accept: &'static str,
        with_token: bool,
    ) -> Result<Response, Error> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let response = timeout(self.patience, self.http.execute(request))
            .await
            .map_err(|_| self.silent())?
            .map_err(|failure| self.unreachable(&failure))?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let reply = read(response).await.map_err(|failure| self.unreachable(&failure))?;
        let refused = self.judge(reply, with_token).err();
        Err(refused.unwrap_or_else(|| self.foreign()))
    }

    fn request(&self, call: &Call, within: Option<Duration>) -> Result<Request, Error> {
        let mut request = self.http.request(call.method.clone(), self.url(call));
        if let Some(within) = within {
            request = request.timeout(within);
        }
        if call.needs_token {
            let token = self.token.as_ref().ok_or_else(|| self.signed_out())?;
            request = request.bearer_auth(token.reveal());
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        request = match &call.body {
            None => request,
            Some(Body::Json(body)) => request.json(body),
            Some(Body::File { media_type, bytes }) => {
                request.header(CONTENT_TYPE, *media_type).body(bytes.clone())
            }
        };
        request.build().map_err(|error| {
            Error::failed(format!("can't ask {}: {}", self.address(), root(&error)))
        })
    }

    fn url(&self, call: &Call) -> Url {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .expect("`config` lets only http and https pass")
            .pop_if_empty()
            .push("api")
            .extend(&call.family)
            .push("v1")
            .extend(&call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        url
    }

    async fn attempt(&self, request: Request) -> reqwest::Result<Reply> {
        read(self.http.execute(request).await?).await
    }

    fn judge(&self, reply: Reply, with_token: bool) -> Result<Answer, Error> {
        if reply.status.is_success() {
            let is_new = reply.status == StatusCode::CREATED;
            return Ok(Answer { is_new, body: reply.body });
        }
        let header = |name| reply.headers.get(name)?.to_str().ok().map(String::from);
        if reply.status.is_redirection() {
            return Err(self.moved(header(LOCATION)));
        }
        Err(Error::Refused(Box::new(Refusal {
            status: reply.status.as_u16(),
            problem: Problem::read(reply.status, &reply.body),
            retry_after: header(RETRY_AFTER),
            with_token,
        })))
    }

    fn signed_out(&self) -> Error {
        Error::SignedOut { server: self.address() }
    }

    fn unreachable(&self, failure: &reqwest::Error) -> Error {
        if failure.is_timeout() && !failure.is_connect() {
            return self.silent();
        }
        Error::Unreachable { server: self.address(), why: root(failure) }
    }

    fn silent(&self) -> Error {
        let why = format!("no answer within {} s", self.patience.as_secs());
        Error::Unreachable { server: self.address(), why }
    }

    fn moved(&self, location: Option<String>) -> Error {
        let location = location.unwrap_or_else(|| "another address".into());
        Error::failed_but(
            format!("{} sends us on to {location}", self.address()),
            "name the server's own address with --server",
        )
    }

    /// The answer came, but not from a Paddock server.
    pub(crate) fn foreign(&self) -> Error {
        Error::failed_but(
            format!("the answer of {} was not understood", self.address()),
            "is that a Paddock server, and as new as this client?",
        )
    }

    /// Reads what the server answered.
    pub(crate) fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Error> {
        serde_json::from_str(&answer.body).map_err(|_| self.foreign())
    }
}

/// A connection that was never made can always be tried again; one that broke only when a second
/// arrival does no harm. What took too long has had its time.
fn may_repeat(call: &Call, failure: &reqwest::Error) -> bool {
    !failure.is_timeout() && (failure.is_connect() || call.is_repeatable())
}

async fn read(response: Response) -> reqwest::Result<Reply> {
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Reply { status, headers, body: response.text().await? })
}

/// The innermost cause: the outer ones only repeat the address. The number that the operating
/// system has for it helps nobody.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(server: &str, call: &Call) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Api::new(server.parse().unwrap(), None, Duration::from_secs(1)).unwrap().url(call).into()
    }

    #[test]
    fn addresses_are_joined_and_escaped() {
        let list = Call::get(&["clusters"]).query("after", Some("a b")).query("limit", None::<u8>);
        for (server, call, want) in [
            ("http://h:1", &list, "http://h:1/api/v1/clusters?after=a+b"),
            ("https://h/prefix/", &Call::get(&["users", "me"]), "https://h/prefix/api/v1/users/me"),
            ("http://h", &Call::get(&["a/b?c", ".."]), "http://h/api/v1/a%2Fb%3Fc"),
            ("http://h", &Call::get(&["xs"]).to("xs_mgmt"), "http://h/api/xs_mgmt/v1/xs"),
        ] {
            assert_eq!(url(server, call), want);
        }
    }
}
