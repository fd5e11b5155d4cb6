//! HTTP health checks.
//!
//! Probes have no guard: each URL is another system, and one that is down must not block the
//! others.

use std::time::Duration;

use model::OrganizationId;
use port::{Fault, PortFuture, Probe};
use reqwest::Method;

use crate::web::{self, Web};

/// The default timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Probes over HTTP.
pub struct HttpProbe {
    web: Web,
    timeout: Duration,
}

impl HttpProbe {
    /// Prepares the clients; sends nothing.
    pub fn new(options: web::Options) -> Result<Self, Fault> {
        Self::with_timeout(options, TIMEOUT)
    }

    /// The same with another timeout.
    pub fn with_timeout(options: web::Options, timeout: Duration) -> Result<Self, Fault> {
        Ok(Self { web: Web::new(options)?, timeout })
    }

    async fn probe(&self, organization: OrganizationId, url: &str) -> Result<u16, Fault> {
        let invalid = |why| Fault::Refused(format!("invalid health check URL “{url}”: {why}"));
        let url = web::parse_url(url).map_err(invalid)?;
        let request = self.web.request(Some(organization), Method::GET, &url, self.timeout).await?;
        match request.send().await {
            // The body is not read.
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_timeout() => {
                let (shown, timeout) = (web::shown(&url), self.timeout);
                Err(Fault::Unavailable(format!("{shown} did not answer within {timeout:?}")))
            }
            Err(error) => Err(web::unreachable(&url, error)),
        }
    }
}

impl Probe for HttpProbe {
    fn get<'a>(&'a self, organization: OrganizationId, url: &'a str) -> PortFuture<'a, u16> {
        Box::pin(self.probe(organization, url))
    }
}
