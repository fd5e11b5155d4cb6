//! DNS records in AWS Route 53.
//!
//! A change is complete once all Route 53 servers have it (`INSYNC`), which may take a minute: the
//! timeout of its guard must exceed [`Options::sync_timeout`].

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_route53::Client;
use aws_sdk_route53::config::retry::RetryConfig;
use aws_sdk_route53::config::{
    BehaviorVersion, Config, Credentials, Region, StalledStreamProtectionConfig,
};
use aws_sdk_route53::types::ChangeAction;
use model::Secret;
use port::{Dns, Fault, PortFuture};

use super::zone::{self, Zone};
use crate::http;

mod call;
mod connector;
mod fault;

/// The timeout of one call. Waiting for `INSYNC` takes many calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The hosted zone in which records are created, and the credentials.
#[derive(Debug, Clone)]
pub struct Options {
    /// The hosted zone, for example `kafka.example.com`.
    pub zone: String,
    /// Its id, needed only if several zones have this name.
    pub zone_id: Option<String>,
    /// The access key.
    pub credentials: AccessKey,
    /// The region that requests are signed for; `us-east-1` outside of China and special clouds.
    pub region: String,
    /// An endpoint other than that of the region.
    pub endpoint: Option<String>,
    /// TTL of records, in seconds.
    pub ttl_s: u32,
    /// How long to wait until all servers have a change.
    pub sync_timeout: Duration,
}

/// An AWS access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
    /// The session token of temporary credentials.
    pub session: Option<Secret>,
}

impl AccessKey {
    /// The key from the environment variables of the AWS CLI, read with `get`.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let get = |name| get(name).filter(|value| !value.is_empty());
        Some(Self {
            id: get("AWS_ACCESS_KEY_ID")?,
            secret: Secret::new(get("AWS_SECRET_ACCESS_KEY")?),
            session: get("AWS_SESSION_TOKEN").map(Secret::new),
        })
    }
}

/// A hosted zone.
pub struct Route53 {
    client: Client,
    zone: Zone,
    /// The zone's id, once known.
    zone_id: Mutex<Option<String>>,
    options: Options,
}

impl Route53 {
    /// Checks the options; sends nothing.
    pub fn new(options: Options) -> Result<Self, Fault> {
        let AccessKey { id, secret, session } = &options.credentials;
        let session = session.as_ref().map(|session| session.reveal().to_owned());
        let keys = Credentials::new(id, secret.reveal(), session, None, "settings");
        let http = http::client(options.endpoint.as_deref().unwrap_or("https:"), CALL_TIMEOUT)?;
        let mut config = Config::builder();
        config.set_endpoint_url(options.endpoint.clone());
        let config = config
            .behavior_version(BehaviorVersion::latest())
            .http_client(connector::shared(http))
            .region(Region::new(options.region.clone()))
            .credentials_provider(keys)
            // The guard retries.
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Ok(Self {
            client: Client::from_conf(config),
            zone: Zone::new(&options.zone)?,
            zone_id: Mutex::new(options.zone_id.clone()),
            options,
        })
    }

    async fn set_cname(&self, name: &str, target: &str) -> Result<(), Fault> {
        let (name, target) = (self.zone.below(name)?, zone::parse(target)?);
        let record = call::alias(&name, &target, self.options.ttl_s);
        self.change(vec![(ChangeAction::Upsert, record)]).await
    }

    async fn delete_cname(&self, name: &str) -> Result<(), Fault> {
        let name = self.zone.below(name)?;
        let found = self.records(&name).await?;
        if found.is_empty() {
            return Ok(());
        }
        let deletions = found.into_iter().map(|record| (ChangeAction::Delete, record));
        let deleted = self.change(deletions.collect()).await;
        // A concurrent deletion may have been faster: only the absence matters.
        match (self.records(&name).await?.first(), deleted) {
            (None, _) => Ok(()),
            (Some(_), Err(fault)) => Err(fault),
            (Some(_), Ok(())) => Err(Fault::Unavailable(format!(
                "{name} was deleted, but Route 53 still returns it"
            ))),
        }
    }

    async fn find_target(&self, name: &str) -> Result<Option<String>, Fault> {
        let found = self.records(&self.zone.below(name)?).await?;
        let target = found.first().and_then(|record| record.resource_records().first());
        Ok(target.map(|target| target.value().trim_end_matches('.').to_owned()))
    }

    fn cached_zone_id(&self) -> Option<String> {
        self.zone_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Caches the zone's id; the configured id always wins.
    fn cache_zone_id(&self, id: Option<String>) {
        let id = self.options.zone_id.clone().or(id);
        *self.zone_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }
}

impl Dns for Route53 {
    fn set_cname<'a>(&'a self, name: &'a str, target: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.set_cname(name, target))
    }

    fn delete_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.delete_cname(name))
    }

    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>> {
        Box::pin(self.find_target(name))
    }
}

impl fmt::Debug for Route53 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route53").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_usual_variables_and_are_not_printed() {
        let all = [
            ("AWS_ACCESS_KEY_ID", "AKIA"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("AWS_SESSION_TOKEN", ""),
        ];
        let get = |name: &str| {
            all.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let keys = AccessKey::from_variables(get).unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.reveal()), ("AKIA", "hidden"));
        assert_eq!(keys.session, None);
        assert!(!format!("{keys:?}").contains("hidden"));
        assert_eq!(
            AccessKey::from_variables(|name| get(name).filter(|_| name.ends_with("ID"))),
            None
        );
    }
}
