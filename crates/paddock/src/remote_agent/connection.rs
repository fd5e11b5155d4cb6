//! HTTP connection to the server: address, cluster token and classification of errors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use serde_json::Value;

const TOKEN: &str = "PADDOCK_AGENT_TOKEN";
const DEFAULT_SERVER: &str = "http://127.0.0.1:8001";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Error of a call.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server rejected the token: a retry cannot succeed.
    Rejected(String),
    /// A retry may succeed.
    Transient(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Rejected(message) | Self::Transient(message)) = self;
        f.write_str(message)
    }
}

/// The cluster's token and the file to reload it from. It is sent to the server only.
pub(super) struct Token {
    secret: Mutex<String>,
    file: Option<PathBuf>,
}

impl Token {
    /// Reads the token from the file or from the environment variable.
    pub(super) fn load(file: Option<PathBuf>) -> anyhow::Result<Self> {
        let secret = match &file {
            Some(path) => read(path)?,
            None => std::env::var(TOKEN).unwrap_or_default().trim().to_owned(),
        };
        if secret.is_empty() {
            bail!(
                "no token: use --token-file or set {TOKEN}; run \"paddock cluster token\" to create \
                 a token"
            );
        }
        Ok(Self { secret: Mutex::new(secret), file })
    }

    fn secret(&self) -> MutexGuard<'_, String> {
        self.secret.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads the file and returns whether its token differs from the rejected one.
    fn reload(&self, rejected: &str) -> bool {
        let Some(Ok(current)) = self.file.as_deref().map(read) else { return false };
        let is_different = current != rejected;
        *self.secret() = current;
        is_different
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--token-file: cannot read {}", path.display()))?;
    let secret = text.trim();
    if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic()) {
        bail!("--token-file: {} does not contain a token", path.display());
    }
    Ok(secret.to_owned())
}

/// Authenticated HTTP client of the server.
pub(super) struct Connection {
    http: reqwest::Client,
    server: Url,
    token: Token,
}

impl Connection {
    /// Creates the client; sends nothing yet.
    pub(super) fn new(server: Option<&str>, token: Token) -> anyhow::Result<Self> {
        let text = server.unwrap_or(DEFAULT_SERVER);
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let server = url.filter(|url| url.host().is_some()).with_context(|| {
            format!("--server: {text:?} is not a URL, such as https://paddock.example.com")
        })?;
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("paddock-agent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none());
        if server.scheme() == "http" {
            // Plain HTTP must work in minimal containers without CA certificates.
            http = http.tls_certs_only([]);
        }
        let http = http
            .build()
            .context("cannot set up TLS: set SSL_CERT_FILE to the trusted CA certificates")?;
        Ok(Self { http, server, token })
    }

    /// URL of the server.
    pub(super) fn address(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    /// Calls an agent route. If the token is rejected, reloads the token file and retries once.
    pub(super) async fn call(
        &self,
        method: Method,
        route: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        timeout: Duration,
    ) -> Result<Response, Failure> {
        loop {
            let secret = self.token.secret().clone();
            let mut request = self
                .http
                .request(method.clone(), self.url(route))
                .query(query)
                .timeout(timeout)
                .bearer_auth(&secret);
            if let Some(body) = body {
                request = request.json(body);
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| Failure::Transient(root_cause(&error)))?;
            match response.status() {
                status if status.is_success() => return Ok(response),
                StatusCode::UNAUTHORIZED if self.token.reload(&secret) => {}
                status => return Err(failure(status, response).await),
            }
        }
    }

    fn url(&self, route: &str) -> Url {
        let mut url = self.server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1", "agent", route]);
        }
        url
    }
}

/// Classifies an error response. All statuses but 401 are transient: the server may be starting,
/// overloaded or failing.
async fn failure(status: StatusCode, response: Response) -> Failure {
    let text = response.text().await.unwrap_or_default();
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    let detail = problem["detail"].as_str().unwrap_or("no details");
    match status {
        StatusCode::UNAUTHORIZED => Failure::Rejected(detail.to_owned()),
        _ => Failure::Transient(format!("{status}: {detail}")),
    }
}

/// Innermost cause: the outer errors only repeat the URL.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
