//! The way to the server: its address, the cluster's token, and what answers mean.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use serde_json::Value;

const TOKEN: &str = "PADDOCK_AGENT_TOKEN";
const DEFAULT_SERVER: &str = "http://127.0.0.1:8001";
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Why a call did not do what it should.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server does not want us: trying again changes nothing.
    Refused(String),
    /// Later may work.
    Passing(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(why) | Self::Passing(why)) = self;
        f.write_str(why)
    }
}

/// The token, and where a newer one may be found. It is shown to the server and nobody else.
pub(super) struct Token {
    secret: Mutex<String>,
    file: Option<PathBuf>,
}

impl Token {
    /// From the file, or from the variable.
    pub(super) fn find(file: Option<PathBuf>) -> anyhow::Result<Self> {
        let secret = match &file {
            Some(path) => read(path)?,
            None => std::env::var(TOKEN).unwrap_or_default().trim().to_owned(),
        };
        if secret.is_empty() {
            bail!(
                "no token: name a file with --token-file, or set {TOKEN}; \"paddock cluster token\" \
                 makes one"
            );
        }
        Ok(Self { secret: Mutex::new(secret), file })
    }

    fn secret(&self) -> MutexGuard<'_, String> {
        self.secret.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what is in the file now; is it another than the one that was refused?
    fn renew(&self, refused: &str) -> bool {
        let Some(Ok(newer)) = self.file.as_deref().map(read) else { return false };
        let is_other = newer != refused;
        *self.secret() = newer;
        is_other
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--token-file: {} can't be read", path.display()))?;
    let secret = text.trim();
    if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic()) {
        bail!("--token-file: there is no token in {}", path.display());
    }
    Ok(secret.to_owned())
}

/// The server.
pub(super) struct Connection {
    http: reqwest::Client,
    server: Url,
    token: Token,
}

impl Connection {
    /// Prepares to talk; nothing is sent yet.
    pub(super) fn new(server: Option<&str>, token: Token) -> anyhow::Result<Self> {
        let text = server.unwrap_or(DEFAULT_SERVER);
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let server = url.filter(|url| url.host().is_some()).with_context(|| {
            format!("--server: {text:?} is no address, such as https://paddock.example.com")
        })?;
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("paddock-agent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .redirect(redirect::Policy::none());
        if server.scheme() == "http" {
            // Without TLS it must not matter that a small container has no certificates.
            http = http.tls_certs_only([]);
        }
        let http = http
            .build()
            .context("can't prepare TLS: name the certificates to trust in SSL_CERT_FILE")?;
        Ok(Self { http, server, token })
    }

    /// Where the server is.
    pub(super) fn address(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    /// Calls one of the agent's routes. A refused token is looked up once more: it may be a new one.
    pub(super) async fn call(
        &self,
        method: Method,
        route: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Response, Failure> {
        loop {
            let secret = self.token.secret().clone();
            let mut request = self
                .http
                .request(method.clone(), self.url(route))
                .query(query)
                .timeout(within)
                .bearer_auth(&secret);
            if let Some(body) = body {
                request = request.json(body);
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| Failure::Passing(root(&error)))?;
            match response.status() {
                status if status.is_success() => return Ok(response),
                StatusCode::UNAUTHORIZED if self.token.renew(&secret) => {}
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

/// What a refusal means. A server that is new, busy or in trouble may answer better later.
async fn failure(status: StatusCode, response: Response) -> Failure {
    let text = response.text().await.unwrap_or_default();
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = problem["detail"].as_str().unwrap_or("it does not say why");
    match status {
        StatusCode::UNAUTHORIZED => Failure::Refused(said.to_owned()),
        _ => Failure::Passing(format!("{status}: {said}")),
    }
}

/// The innermost cause: the outer ones only repeat the address.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
