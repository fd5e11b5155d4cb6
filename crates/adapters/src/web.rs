//! Addresses that users name: asked directly, and only if they may be asked.
//!
//! A user could name an address that only this server reaches, such as that where a cloud gives a
//! machine its credentials. What is checked is where a name leads to, by whoever connects: a name that
//! leads elsewhere a moment later gains nothing. No redirect is followed and no proxy is asked, for
//! what they lead to could not be checked.

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

/// How long it may take to reach somebody.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// May addresses be asked that only this network has: loopback, and private ones? Where those who
    /// write templates are not those who run the network, that should be false. Addresses of the link
    /// (`169.254.0.0/16`, `fe80::/10`) and where clouds keep credentials are never asked.
    pub allow_private: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { allow_private: true }
    }
}

/// Asks addresses that users name.
pub(crate) struct Web {
    options: Options,
    plain: Client,
    /// Or why there is none: a small container may have no certificates.
    tls: Result<Client, Fault>,
}

/// Finds addresses that may be asked.
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

    /// Begins a request.
    pub(crate) fn request(
        &self,
        method: Method,
        url: &Url,
        limit: Duration,
    ) -> Result<RequestBuilder, Fault> {
        // What is no name is never looked up.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if let Ok(ip) = host.parse() {
            reach::check(self.options, ip).map_err(|no| Fault::Refused(no.to_string()))?;
        }
        let client = if url.scheme() == "https" { self.tls.as_ref() } else { Ok(&self.plain) };
        let client = client.map_err(Clone::clone)?;
        Ok(client.request(method, url.clone()).timeout(limit))
    }
}

/// Why there is no answer.
pub(crate) fn silent(url: &Url, error: reqwest::Error) -> Fault {
    if let Some(no) = forbidden(&error) {
        return Fault::Refused(no.to_string());
    }
    let (shown, cause) = (shown(url), root_of(&error.without_url()));
    Fault::Unavailable(format!("{shown} can't be reached: {cause}"))
}

/// An address that can be asked, or what is wrong with it.
pub(crate) fn address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url {
        None => Err("must be an address like https://shop.example.com/hook"),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("must have no name or password in it: templates are no place for secrets")
        }
        Some(url) => Ok(url),
    }
}

/// An address in a sentence: what follows a ? could be secret.
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
