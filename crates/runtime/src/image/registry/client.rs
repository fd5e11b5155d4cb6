//! HTTP client of one registry: authentication and redirects.
//!
//! Credentials go to the registry and to its token service, never along a redirect. Responses of
//! the registry decide where requests go only within the rules in `target.rs`.

use std::sync::Arc;
use std::time::Duration;

use base::Resolver;
use base::resolver::refusal;
use futures_util::StreamExt;
use model::address::Policy;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url, redirect};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::challenge::Challenge;
use super::target::{Checked, Reach, Rules};
use super::{MAX_DOCUMENT, innermost};
use crate::Credentials;

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;
/// Maximum size of a token service's response.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not found.
    Missing,
    /// Credentials are missing or wrong.
    Denied,
    /// The registry did not respond in time.
    TimedOut,
    /// The registry failed; a message without subject.
    Unavailable(String),
    /// The registry wants something that is not permitted.
    Refused(String),
    /// The response is invalid.
    Invalid(String),
}

/// A client that connects to the addresses of one policy.
struct Route {
    client: reqwest::Client,
    resolver: Resolver,
}

impl Route {
    fn new(addresses: Policy, read_timeout: Duration) -> Result<Self, Failure> {
        let resolver = Resolver::new(addresses).with_proxies();
        let client = reqwest::Client::builder()
            .user_agent("paddock")
            .redirect(redirect::Policy::none())
            .read_timeout(read_timeout)
            .connect_timeout(read_timeout.min(Duration::from_secs(10)))
            .dns_resolver(Arc::new(Checked(resolver.clone())))
            .build()
            .map_err(|error| Failure::Unavailable(innermost(&error)))?;
        Ok(Self { client, resolver })
    }
}

/// A client of one registry, for one repository.
pub(super) struct Client {
    /// For hosts that the settings name, and for others.
    named: Route,
    permitted: Route,
    rules: Rules,
    /// Beginning of all URLs.
    base: String,
    repository: String,
    credentials: Option<Credentials>,
    /// The header that the registry accepted.
    authorization: Mutex<Option<HeaderValue>>,
}

impl Client {
    pub(super) fn new(
        rules: Rules,
        repository: &str,
        credentials: Option<Credentials>,
        addresses: &Policy,
        read_timeout: Duration,
    ) -> Result<Self, Failure> {
        let scheme = if super::is_loopback(&rules.registry) { "http" } else { "https" };
        Ok(Self {
            named: Route::new(addresses.for_named(), read_timeout)?,
            permitted: Route::new(addresses.clone(), read_timeout)?,
            base: format!("{scheme}://{}/v2/{repository}", rules.registry),
            rules,
            repository: repository.to_owned(),
            credentials,
            authorization: Mutex::default(),
        })
    }

    /// Sends a request for a path of the repository, and authenticates if the registry demands it.
    pub(super) async fn get(&self, path: &str, headers: HeaderMap) -> Result<Response, Failure> {
        let url = format!("{}/{path}", self.base);
        let url = Url::parse(&url).map_err(|_| Failure::Invalid("invalid URL".to_owned()))?;
        let known = self.authorization.lock().await.clone();
        let is_known = known.is_some();
        let reach = self.rules.reach(&url);
        let response = self.send(&url, reach, &headers, known).await?;
        if response.status() != StatusCode::UNAUTHORIZED || is_known {
            return self.follow(url, response, &headers).await;
        }
        let authorization = self.authenticate(&response).await?;
        *self.authorization.lock().await = Some(authorization.clone());
        let response = self.send(&url, reach, &headers, Some(authorization)).await?;
        self.follow(url, response, &headers).await
    }

    async fn send(
        &self,
        url: &Url,
        reach: Reach,
        headers: &HeaderMap,
        authorization: Option<HeaderValue>,
    ) -> Result<Response, Failure> {
        let route = if reach == Reach::Named { &self.named } else { &self.permitted };
        let checked = route.resolver.check_literal(url.host_str().unwrap_or_default());
        checked.map_err(|refused| Failure::Refused(refused.to_string()))?;
        let mut request = route.client.get(url.clone()).headers(headers.clone());
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.send().await.map_err(|error| failure(&error))
    }

    /// Follows redirects, without credentials, and checks the status.
    async fn follow(
        &self,
        mut url: Url,
        mut response: Response,
        headers: &HeaderMap,
    ) -> Result<Response, Failure> {
        for _ in 0..MAX_REDIRECTS {
            if !response.status().is_redirection() {
                return checked(response);
            }
            let location = response.headers().get(LOCATION).and_then(|text| text.to_str().ok());
            let location = location.unwrap_or_default();
            let (next, reach) = self.rules.redirect(&url, location).map_err(Failure::Refused)?;
            response = self.send(&next, reach, headers, None).await?;
            url = next;
        }
        Err(Failure::Invalid(format!("more than {MAX_REDIRECTS} redirects")))
    }

    /// The `Authorization` header for a registry that demands one.
    async fn authenticate(&self, response: &Response) -> Result<HeaderValue, Failure> {
        let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let mut challenges = challenges.filter_map(|text| Challenge::parse(text.to_str().ok()?));
        match (challenges.next(), &self.credentials) {
            (Some(Challenge::Basic), Some(credentials)) => secret(&basic(credentials)),
            (Some(Challenge::Bearer { realm, service }), _) => {
                let token = self.token(&realm, service.as_deref()).await?;
                secret(&format!("Bearer {token}"))
            }
            _ => Err(Failure::Denied),
        }
    }

    async fn token(&self, realm: &str, service: Option<&str>) -> Result<String, Failure> {
        let (mut url, reach) = self.rules.token_service(realm).map_err(Failure::Refused)?;
        let scope = format!("repository:{}:pull", self.repository);
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let credentials = self.credentials.as_ref().map(|c| secret(&basic(c))).transpose()?;
        let response = self.send(&url, reach, &headers, credentials).await?;
        match response.status() {
            StatusCode::OK => {}
            status if status.is_server_error() => return Err(failed_with(status)),
            _ => return Err(Failure::Denied),
        }
        let body = read(response, MAX_TOKEN_BYTES).await?;
        let token: Token = serde_json::from_slice(&body)
            .map_err(|_| Failure::Invalid("token service sent no token".to_owned()))?;
        token.token.or(token.access_token).ok_or(Failure::Denied)
    }
}

/// Response of a token service.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

fn basic(credentials: &Credentials) -> String {
    let plain = format!("{}:{}", credentials.username, credentials.password);
    format!("Basic {}", data_encoding::BASE64.encode(plain.as_bytes()))
}

/// A header that is not logged.
fn secret(text: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(text).map_err(|_| Failure::Denied)?;
    value.set_sensitive(true);
    Ok(value)
}

fn checked(response: Response) -> Result<Response, Failure> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::NOT_FOUND => Err(Failure::Missing),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::Denied),
        status => Err(failed_with(status)),
    }
}

fn failed_with(status: StatusCode) -> Failure {
    Failure::Unavailable(format!("failed with status {}", status.as_u16()))
}

fn failure(error: &reqwest::Error) -> Failure {
    if let Some(refused) = refusal(error) {
        return Failure::Refused(refused.to_string());
    }
    match error {
        error if error.is_timeout() => Failure::TimedOut,
        error if error.is_connect() => {
            Failure::Unavailable(format!("is unreachable: {}", innermost(error)))
        }
        error => Failure::Unavailable(format!("failed: {}", innermost(error))),
    }
}

/// Reads a whole response, up to a limit.
pub(super) async fn read(response: Response, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let (mut body, mut stream) = (Vec::new(), response.bytes_stream());
    while let Some(part) = stream.next().await {
        body.extend_from_slice(&part.map_err(|error| failure(&error))?);
        if body.len() > max_bytes {
            return Err(Failure::Invalid(format!("more than {max_bytes} bytes")));
        }
    }
    Ok(body)
}

/// Reads a document of a registry.
pub(super) async fn read_document(response: Response) -> Result<Vec<u8>, Failure> {
    read(response, usize::try_from(MAX_DOCUMENT).unwrap_or(usize::MAX)).await
}
