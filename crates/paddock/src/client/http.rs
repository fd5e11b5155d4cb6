//! HTTP client of the server: URLs, tokens, timeouts and retries.

use std::time::Duration;

use reqwest::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Request, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::call::{Body, Call};
use super::config::Token;
use super::error::{Error, Refusal};
use super::problem::Problem;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pauses before retries.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// Authenticated client of the server's API.
pub(crate) struct Api {
    http: reqwest::Client,
    server: Url,
    token: Option<Token>,
    /// Timeout of a request.
    timeout: Duration,
}

/// Successful response of the server.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    /// Whether the call created a resource.
    pub(crate) is_new: bool,
    pub(crate) body: String,
}

/// Response of any status.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Api {
    /// Creates the client; sends nothing yet.
    pub(crate) fn new(server: Url, token: Option<Token>, timeout: Duration) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("paddock/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            // A redirect would turn a POST into a GET and lose its body.
            .redirect(redirect::Policy::none());
        if server.scheme() == "http" {
            // Plain HTTP must work in minimal containers without CA certificates.
            http = http.tls_certs_only([]);
        }
        let http = http.build().map_err(|error| {
            Error::failed_with_hint(
                format!("cannot set up TLS: {}", root_cause(&error)),
                "set SSL_CERT_FILE to the trusted CA certificates",
            )
        })?;
        Ok(Self { http, server, token, timeout })
    }

    /// URL of the server without a trailing slash.
    pub(crate) fn address(&self) -> String {
        self.server.as_str().trim_end_matches('/').into()
    }

    /// Makes a call. Retries after connection errors if the call is safe to retry.
    pub(crate) async fn send(&self, call: &Call) -> Result<ApiResponse, Error> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failure = match self.attempt(self.request(call, Some(self.timeout))?).await {
                Ok(reply) => return self.check_status(reply, call.needs_token),
                Err(failure) => failure,
            };
            match pauses.next() {
                Some(pause) if may_retry(call, &failure) => sleep(pause).await,
                _ => return Err(self.unreachable(&failure)),
            }
        }
    }

    /// Sends a call with a body of this size, if it is known, from a stream. Not retried, and only
    /// the server limits its duration.
    pub(crate) async fn upload(
        &self,
        call: &Call,
        media_type: &'static str,
        body: reqwest::Body,
        size_bytes: Option<u64>,
    ) -> Result<ApiResponse, Error> {
        let mut request = self.request(call, None)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if let Some(size) = size_bytes {
            headers.insert(CONTENT_LENGTH, size.into());
        }
        *request.body_mut() = Some(body);
        let reply = self.attempt(request).await.map_err(|failure| self.unreachable(&failure))?;
        self.check_status(reply, call.needs_token)
    }

    /// Opens a stream of server-sent events, resuming after `last_event_id`.
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

    /// Opens a stream of JSON lines.
    pub(crate) async fn lines(&self, call: &Call) -> Result<Response, Error> {
        self.open(self.request(call, None)?, "application/x-ndjson", call.needs_token).await
    }

    /// Waits for the response headers; the timeout does not apply to the body.
    async fn open(
        &self,
        mut request: Request,
        accept: &'static str,
        with_token: bool,
    ) -> Result<Response, Error> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let response = timeout(self.timeout, self.http.execute(request))
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|failure| self.unreachable(&failure))?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let reply = read(response).await.map_err(|failure| self.unreachable(&failure))?;
        let refused = self.check_status(reply, with_token).err();
        Err(refused.unwrap_or_else(|| self.invalid_response()))
    }

    fn request(&self, call: &Call, timeout: Option<Duration>) -> Result<Request, Error> {
        let mut request = self.http.request(call.method.clone(), self.url(call));
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        if call.needs_token {
            let token = self.token.as_ref().ok_or_else(|| self.not_logged_in())?;
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
            Error::failed(format!("invalid request to {}: {}", self.address(), root_cause(&error)))
        })
    }

    fn url(&self, call: &Call) -> Url {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .expect("`config` accepts only http and https")
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

    fn check_status(&self, reply: Reply, with_token: bool) -> Result<ApiResponse, Error> {
        if reply.status.is_success() {
            let is_new = reply.status == StatusCode::CREATED;
            return Ok(ApiResponse { is_new, body: reply.body });
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

    fn not_logged_in(&self) -> Error {
        Error::NotLoggedIn { server: self.address() }
    }

    fn unreachable(&self, failure: &reqwest::Error) -> Error {
        if failure.is_timeout() && !failure.is_connect() {
            return self.timed_out();
        }
        Error::Unreachable { server: self.address(), why: root_cause(failure) }
    }

    fn timed_out(&self) -> Error {
        let why = format!("no response within {} s", self.timeout.as_secs());
        Error::Unreachable { server: self.address(), why }
    }

    fn moved(&self, location: Option<String>) -> Error {
        let location = location.unwrap_or_else(|| "another URL".into());
        Error::failed_with_hint(
            format!("{} redirects to {location}", self.address()),
            "use the final URL of the server with --server",
        )
    }

    /// The response is not one of a Paddock server.
    pub(crate) fn invalid_response(&self) -> Error {
        Error::failed_with_hint(
            format!("invalid response from {}", self.address()),
            "check that it is a Paddock server and not older than this client",
        )
    }

    /// Deserialises a response.
    pub(crate) fn read<T: DeserializeOwned>(&self, response: &ApiResponse) -> Result<T, Error> {
        serde_json::from_str(&response.body).map_err(|_| self.invalid_response())
    }
}

/// Whether to retry: always if the connection was never established, after a broken connection only
/// idempotent calls, and never after a timeout.
fn may_retry(call: &Call, failure: &reqwest::Error) -> bool {
    !failure.is_timeout() && (failure.is_connect() || call.is_idempotent())
}

async fn read(response: Response) -> reqwest::Result<Reply> {
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Reply { status, headers, body: response.text().await? })
}

/// Innermost cause without the OS error number: the outer errors only repeat the URL.
fn root_cause(error: &dyn std::error::Error) -> String {
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
    fn urls_are_joined_and_escaped() {
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
