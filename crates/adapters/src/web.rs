//! HTTP requests to URLs from users, restricted to permitted addresses (SSRF protection).
//!
//! A user could name an address that only this server reaches, such as a cloud's metadata service
//! with its credentials. The check applies to the resolved IP address at connection time, so a DNS
//! name that changes its target gains nothing. Redirects and proxies are not used, because their
//! targets could not be checked.

mod reach;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use port::Fault;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Method, RequestBuilder, Url};
use tokio::net::lookup_host;

use crate::http::{self, root_of};
use reach::Forbidden;

/// The timeout for connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Which addresses are permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Permits loopback and private addresses. Set it to false where template authors are not the
    /// operators of the network. Link-local addresses (`169.254.0.0/16`, `fe80::/10`) and the
    /// metadata services of clouds are never permitted.
    pub allow_private: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { allow_private: true }
    }
}

/// Sends requests to URLs from users.
pub(crate) struct Web {
    options: Options,
    plain: Client,
    /// The client for TLS, or why it is missing: a minimal container may have no CA bundle.
    tls: Result<Client, Fault>,
}

/// A DNS resolver that rejects addresses that are not permitted.
struct Checked(Options);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let options = self.0;
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                reach::check(options, address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Web {
    pub(crate) fn new(options: Options) -> Result<Self, Fault> {
        let client = |has_tls| {
            let client = http::builder(has_tls).connect_timeout(CONNECT_WITHIN).no_proxy();
            http::built(client.dns_resolver(Arc::new(Checked(options))))
        };
        Ok(Self { options, plain: client(false)?, tls: client(true) })
    }

    /// Starts building a request.
    pub(crate) fn request(
        &self,
        method: Method,
        url: &Url,
        limit: Duration,
    ) -> Result<RequestBuilder, Fault> {
        // IP literals are never resolved.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if let Ok(ip) = host.parse() {
            reach::check(self.options, ip).map_err(|no| Fault::Refused(no.to_string()))?;
        }
        let client = if url.scheme() == "https" { self.tls.as_ref() } else { Ok(&self.plain) };
        let client = client.map_err(Clone::clone)?;
        Ok(client.request(method, url.clone()).timeout(limit))
    }
}

/// The fault of a request without a response.
pub(crate) fn unreachable(url: &Url, error: reqwest::Error) -> Fault {
    if let Some(no) = forbidden(&error) {
        return Fault::Refused(no.to_string());
    }
    let (shown, cause) = (shown(url), root_of(&error.without_url()));
    Fault::Unavailable(format!("{shown} is unreachable: {cause}"))
}

/// Parses a URL from a user, or says what is wrong with it.
pub(crate) fn parse_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url {
        None => Err("must be a URL such as https://shop.example.com/hook"),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("must not contain a user name or password: templates are not secret")
        }
        Some(url) => Ok(url),
    }
}

/// A URL for messages, without its query, which may be secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

fn forbidden(error: &reqwest::Error) -> Option<&Forbidden> {
    let mut inner: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = inner {
        if let Some(no) = error.downcast_ref() {
            return Some(no);
        }
        inner = error.source();
    }
    None
}
