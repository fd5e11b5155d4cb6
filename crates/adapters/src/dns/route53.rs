//! Names at AWS Route53.
//!
//! A change counts when all of Route53's servers have it (`INSYNC`), which takes a minute at times:
//! its guard must allow for more than [`Options::sync_for`].

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
use port::{Answer, Dns, Fault};

use super::zone::{self, Zone};
use crate::http;

mod call;
mod connector;
mod fault;

/// How long one call may take. Waiting until all servers have a change takes many.
const ONE_CALL: Duration = Duration::from_secs(10);

/// Where names are made, and with whose rights.
#[derive(Debug, Clone)]
pub struct Options {
    /// The hosted zone, for example `kafka.example.com`.
    pub zone: String,
    /// Its id, needed only where several zones have this name.
    pub zone_id: Option<String>,
    /// The access key.
    pub keys: Keys,
    /// The region that requests are signed for; `us-east-1` outside of China and special clouds.
    pub region: String,
    /// Another address than that of the region.
    pub endpoint: Option<String>,
    /// For how long others may remember a name, in seconds.
    pub ttl_s: u32,
    /// How long to wait until all servers know of a change.
    pub sync_for: Duration,
}

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
    /// The token of a session, if it belongs to one.
    pub session: Option<Secret>,
}

impl Keys {
    /// The keys in the variables that AWS' own tools use, as `look` finds them.
    pub fn from_variables(look: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let look = |name| look(name).filter(|value| !value.is_empty());
        Some(Self {
            id: look("AWS_ACCESS_KEY_ID")?,
            secret: Secret::new(look("AWS_SECRET_ACCESS_KEY")?),
            session: look("AWS_SESSION_TOKEN").map(Secret::new),
        })
    }
}

/// A hosted zone.
pub struct Route53 {
    client: Client,
    zone: Zone,
    /// The zone's id, once it is known.
    zone_id: Mutex<Option<String>>,
    options: Options,
}

impl Route53 {
    /// Checks the options; asks nobody.
    pub fn new(options: Options) -> Result<Self, Fault> {
        let Keys { id, secret, session } = &options.keys;
        let session = session.as_ref().map(|session| session.reveal().to_owned());
        let keys = Credentials::new(id, secret.reveal(), session, None, "settings");
        let http = http::client(options.endpoint.as_deref().unwrap_or("https:"), ONE_CALL)?;
        let mut config = Config::builder();
        config.set_endpoint_url(options.endpoint.clone());
        let config = config
            .behavior_version(BehaviorVersion::latest())
            .http_client(connector::shared(http))
            .region(Region::new(options.region.clone()))
            .credentials_provider(keys)
            // Retries are the guard's.
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

    async fn have_point_to(&self, name: &str, target: &str) -> Result<(), Fault> {
        let (name, target) = (self.zone.below(name)?, zone::parse(target)?);
        let record = call::alias(&name, &target, self.options.ttl_s);
        self.change(vec![(ChangeAction::Upsert, record)]).await
    }

    async fn have_gone(&self, name: &str) -> Result<(), Fault> {
        let name = self.zone.below(name)?;
        let found = self.look(&name).await?;
        if found.is_empty() {
            return Ok(());
        }
        let deletions = found.into_iter().map(|record| (ChangeAction::Delete, record));
        let deleted = self.change(deletions.collect()).await;
        // Somebody else may have been faster: what counts is that it is gone.
        match (self.look(&name).await?.first(), deleted) {
            (None, _) => Ok(()),
            (Some(_), Err(fault)) => Err(fault),
            (Some(_), Ok(())) => {
                Err(Fault::Unavailable(format!("{name} was removed, but Route53 still has it")))
            }
        }
    }

    async fn find_target(&self, name: &str) -> Result<Option<String>, Fault> {
        let found = self.look(&self.zone.below(name)?).await?;
        let target = found.first().and_then(|record| record.resource_records().first());
        Ok(target.map(|target| target.value().trim_end_matches('.').to_owned()))
    }

    fn known_zone_id(&self) -> Option<String> {
        self.zone_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers the zone's id; what the options say can't be forgotten.
    fn remember_zone_id(&self, id: Option<String>) {
        let id = self.options.zone_id.clone().or(id);
        *self.zone_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }
}

impl Dns for Route53 {
    fn point<'a>(&'a self, name: &'a str, target: &'a str) -> Answer<'a, ()> {
        Box::pin(self.have_point_to(name, target))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(self.have_gone(name))
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>> {
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
    fn keys_come_from_the_usual_variables_and_do_not_show() {
        let all = [
            ("AWS_ACCESS_KEY_ID", "AKIA"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("AWS_SESSION_TOKEN", ""),
        ];
        let look = |name: &str| {
            all.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let keys = Keys::from_variables(look).unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.reveal()), ("AKIA", "hidden"));
        assert_eq!(keys.session, None);
        assert!(!format!("{keys:?}").contains("hidden"));
        assert_eq!(Keys::from_variables(|name| look(name).filter(|_| name.ends_with("ID"))), None);
    }
}
