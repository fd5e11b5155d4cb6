//! Looks whether addresses answer.
//!
//! It has no guard: each address is another system, and one that is down must not keep others from
//! being looked at.

use std::time::Duration;

use port::{Answer, Fault, Probe};
use reqwest::Method;

use crate::web::{self, Web};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Looks over HTTP.
pub struct HttpProbe {
    web: Web,
    limit: Duration,
}

impl HttpProbe {
    /// Prepares; asks nobody.
    pub fn new(options: web::Options) -> Result<Self, Fault> {
        Self::within(options, LIMIT)
    }

    /// The same with another limit.
    pub fn within(options: web::Options, limit: Duration) -> Result<Self, Fault> {
        Ok(Self { web: Web::new(options)?, limit })
    }

    async fn ask(&self, url: &str) -> Result<u16, Fault> {
        let no = |why| Fault::Refused(format!("“{url}” can't be looked at: it {why}"));
        let url = web::address(url).map_err(no)?;
        let request = self.web.request(Method::GET, &url, self.limit)?;
        match request.send().await {
            // What it says beside its status is not read.
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_timeout() => {
                let (shown, limit) = (web::shown(&url), self.limit);
                Err(Fault::Unavailable(format!("{shown} did not answer within {limit:?}")))
            }
            Err(error) => Err(web::silent(&url, error)),
        }
    }
}

impl Probe for HttpProbe {
    fn get<'a>(&'a self, url: &'a str) -> Answer<'a, u16> {
        Box::pin(self.ask(url))
    }
}
