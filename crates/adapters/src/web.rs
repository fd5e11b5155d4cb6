//! HTTP requests to URLs from users, restricted to permitted addresses (SSRF protection).
//!
//! The check applies to the resolved IP address at connection time ([`Resolver`]), so a DNS name
//! that changes its target gains nothing. Redirects and proxies are not used, because their targets
//! could not be checked. Endpoints of the organization's own deployments are permitted, by exact
//! address and port.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::Resolver;
use base::resolver::refusal;
use model::OrganizationId;
use model::address::Policy;
use port::{Endpoints, Fault, PortFuture};
use reqwest::{Client, Method, RequestBuilder, Url};

use crate::http::{self, Checked, root_of};

/// The timeout for connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Which addresses are permitted.
#[derive(Clone)]
pub struct Options {
    /// Resolves names to permitted addresses.
    pub resolver: Resolver,
    /// The endpoints of deployments, which are always permitted to their organization.
    pub endpoints: Arc<dyn Endpoints>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("resolver", &self.resolver).finish_non_exhaustive()
    }
}

impl Options {
    /// The addresses that the policy permits, and no endpoints of deployments.
    pub fn new(policy: Policy) -> Self {
        Self { resolver: Resolver::new(policy), endpoints: Arc::new(NoEndpoints) }
    }
}

/// A server without deployments.
struct NoEndpoints;

impl Endpoints for NoEndpoints {
    fn is_own<'a>(&'a self, _: OrganizationId, _: &'a str) -> PortFuture<'a, bool> {
        port::ready(Ok(false))
    }
}

/// Sends requests to URLs from users.
pub(crate) struct Web {
    options: Options,
    plain: Client,
    /// The client for TLS, or why it is missing: a minimal container may have no CA bundle.
    tls: Result<Client, Fault>,
}

impl Web {
    pub(crate) fn new(options: Options) -> Result<Self, Fault> {
        let client = |has_tls| {
            let client = http::builder(has_tls).connect_timeout(CONNECT_WITHIN).no_proxy();
            http::built(client.dns_resolver(Arc::new(Checked(options.resolver.clone()))))
        };
        Ok(Self { plain: client(false)?, tls: client(true), options })
    }

    /// Starts building a request on behalf of an organization.
    pub(crate) async fn request(
        &self,
        organization: Option<OrganizationId>,
        method: Method,
        url: &Url,
        limit: Duration,
    ) -> Result<RequestBuilder, Fault> {
        self.check(organization, url).await?;
        let client = if url.scheme() == "https" { self.tls.as_ref() } else { Ok(&self.plain) };
        let client = client.map_err(Clone::clone)?;
        Ok(client.request(method, url.clone()).timeout(limit))
    }

    /// Checks an address in a URL, which is never resolved.
    async fn check(&self, organization: Option<OrganizationId>, url: &Url) -> Result<(), Fault> {
        let host = url.host_str().unwrap_or_default();
        let Err(refused) = self.options.resolver.check_literal(host) else { return Ok(()) };
        if let (Some(organization), Some(port)) = (organization, url.port_or_known_default()) {
            let endpoint = format!("{host}:{port}");
            if self.options.endpoints.is_own(organization, &endpoint).await? {
                return Ok(());
            }
        }
        Err(Fault::Refused(refused.to_string()))
    }
}

/// The fault of a request without a response.
pub(crate) fn unreachable(url: &Url, error: reqwest::Error) -> Fault {
    if let Some(refused) = refusal(&error) {
        return Fault::Refused(refused.to_string());
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
