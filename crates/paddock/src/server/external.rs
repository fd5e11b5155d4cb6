//! Builds clients of the configured external systems, each behind a guard.

use std::sync::Arc;
use std::time::Duration;

use adapters::dns::rfc2136::{self, Key, Rfc2136};
use adapters::dns::route53::{self, Route53};
use adapters::guard::{self, Guard, Guarded};
use adapters::sso::{keycloak, registration};
use anyhow::Context;
use base::{OsEntropy, entropy};
use engine::instance::ExternalSystems;
use model::Secret;
use model::address::Policy;
use port::{Dns, Encryption, Monitored, Sso};
use store::Db;

use crate::settings::{Settings, external};

/// TTL of DNS records in seconds.
const TTL: u32 = 300;

/// Builds the clients and adds their guards to `watched`.
pub(super) fn build(
    settings: &Settings,
    db: &Db,
    seal: Arc<dyn Encryption>,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<ExternalSystems> {
    let set = &settings.external;
    let dns = set.dns.as_ref().map(|set| dns(set, db, watched)).transpose()?;
    let addresses = &set.addresses;
    let sso = set.sso.as_ref().map(|set| sso(set, addresses, watched)).transpose()?;
    let (domain, rotate_every) = (set.domain.clone(), set.sso_rotate_every);
    Ok(ExternalSystems { dns, sso, seal, domain, rotate_every })
}

pub(super) fn guard(name: &str, watched: &mut Vec<Arc<dyn Monitored>>) -> Arc<Guard> {
    guard_with(name, guard::Options::default(), watched)
}

fn guard_with(
    name: &str,
    options: guard::Options,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> Arc<Guard> {
    let guard = Arc::new(Guard::new(name, options, || entropy::random_u64(&OsEntropy)));
    watched.push(guard.clone());
    guard
}

fn dns(
    set: &external::Dns,
    db: &Db,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Arc<dyn Dns>> {
    Ok(match set {
        external::Dns::Updates { server, zone, key_file } => {
            let text = std::fs::read_to_string(key_file)
                .with_context(|| format!("--dns-key-file: cannot read {}", key_file.display()))?;
            let key = Key::from_bind(&text).context("--dns-key-file")?;
            let options = rfc2136::Options { server: *server, zone: zone.clone(), key, ttl_s: TTL };
            let (db, noise) = (db.clone(), || entropy::random_u64(&OsEntropy));
            let dns = Rfc2136::new(&options, move || db.now(), noise).context("--dns-zone")?;
            Arc::new(Guarded::new(dns, guard("the name server", watched)))
        }
        external::Dns::Route53 { zone, zone_id, keys, endpoint } => {
            let options = route53::Options {
                zone: zone.clone(),
                zone_id: zone_id.clone(),
                credentials: keys.clone(),
                region: "us-east-1".into(),
                endpoint: endpoint.clone(),
                ttl_s: TTL,
                sync_timeout: Duration::from_mins(2),
            };
            let dns = Route53::new(options).context("--route53-zone")?;
            // Longer than Route 53 takes to propagate a change to all name servers.
            let patient =
                guard::Options { timeout: Duration::from_mins(3), ..guard::Options::default() };
            Arc::new(Guarded::new(dns, guard_with("Route 53", patient, watched)))
        }
    })
}

fn sso(
    set: &external::Sso,
    addresses: &Policy,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Arc<dyn Sso>> {
    Ok(match set {
        external::Sso::Registration { issuer, token } => {
            let token = token.clone().unwrap_or_else(|| Secret::new(""));
            let provider = registration::Provider::Issuer(issuer.clone());
            let options = registration::Options::new(provider, token);
            let options = registration::Options { addresses: addresses.clone(), ..options };
            let sso = registration::Registration::new(options).context("--sso-issuer")?;
            // No retries: if a response is lost, a retry would leave an orphaned client.
            let once = guard::Options {
                attempts: 1,
                timeout: Duration::from_secs(30),
                ..guard::Options::default()
            };
            Arc::new(Guarded::new(sso, guard_with("the OpenID provider", once, watched)))
        }
        external::Sso::Keycloak { url, realm, client_id, client_secret } => {
            let secret = client_secret.clone();
            let options = keycloak::Options::new(url, realm, client_id, secret);
            let sso = keycloak::Keycloak::new(options).context("--keycloak-url")?;
            Arc::new(Guarded::new(sso, guard("Keycloak", watched)))
        }
    })
}
