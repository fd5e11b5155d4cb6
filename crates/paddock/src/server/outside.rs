//! The foreign systems that are set, each behind a guard.

use std::sync::Arc;
use std::time::Duration;

use adapters::dns::rfc2136::{self, Key, Rfc2136};
use adapters::dns::route53::{self, Route53};
use adapters::guard::{self, Guard, Guarded};
use adapters::seal::{local, vault};
use adapters::sso::{keycloak, registration};
use anyhow::Context;
use base::{Entropy as _, OsEntropy, entropy};
use engine::instance::Outside;
use model::Secret;
use port::{Dns, Seal, Sso, Watched};
use store::Db;

use crate::settings::{Settings, outside};

/// For how long others may remember a name, in seconds.
const TTL: u32 = 300;

/// Builds them; those with a guard are added to `watched`.
pub(super) fn build(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<Outside> {
    let set = &settings.outside;
    let dns = set.dns.as_ref().map(|dns| names(dns, db, watched)).transpose()?;
    let sso = set.sso.as_ref().map(|sso| clients(sso, watched)).transpose()?;
    let transit = set.vault.as_ref().and_then(|vault| Some((&vault.addr, vault.transit.as_ref()?)));
    let seal: Arc<dyn Seal> = match transit {
        Some((addr, (token, key))) => {
            let options = vault::Options::new(addr, token.clone(), key);
            let vault = vault::Vault::new(options).context("--vault-addr")?;
            Arc::new(Guarded::new(vault, guard("Vault", watched)))
        }
        None => {
            let path = settings.data_dir.join("seal.key");
            let fill = Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer));
            Arc::new(local::LocalKey::load_or_make(&path, fill).context("--data-dir")?)
        }
    };
    let (domain, rotate_every) = (set.domain.clone(), set.sso_rotate_every);
    Ok(Outside { dns, sso, seal, domain, rotate_every })
}

pub(super) fn guard(name: &str, watched: &mut Vec<Arc<dyn Watched>>) -> Arc<Guard> {
    guard_with(name, guard::Options::default(), watched)
}

fn guard_with(
    name: &str,
    options: guard::Options,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> Arc<Guard> {
    let guard = Arc::new(Guard::new(name, options, || entropy::noise(&OsEntropy)));
    watched.push(guard.clone());
    guard
}

fn names(
    set: &outside::Dns,
    db: &Db,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<Arc<dyn Dns>> {
    Ok(match set {
        outside::Dns::Updates { server, zone, key_file } => {
            let text = std::fs::read_to_string(key_file)
                .with_context(|| format!("--dns-key-file: {} can't be read", key_file.display()))?;
            let key = Key::from_bind(&text).context("--dns-key-file")?;
            let options = rfc2136::Options { server: *server, zone: zone.clone(), key, ttl_s: TTL };
            let (db, noise) = (db.clone(), || entropy::noise(&OsEntropy));
            let dns = Rfc2136::new(&options, move || db.now(), noise).context("--dns-zone")?;
            Arc::new(Guarded::new(dns, guard("the name server", watched)))
        }
        outside::Dns::Route53 { zone, zone_id, keys, endpoint } => {
            let options = route53::Options {
                zone: zone.clone(),
                zone_id: zone_id.clone(),
                keys: keys.clone(),
                region: "us-east-1".into(),
                endpoint: endpoint.clone(),
                ttl_s: TTL,
                sync_for: Duration::from_mins(2),
            };
            let dns = Route53::new(options).context("--route53-zone")?;
            // Longer than it takes until all servers know of a change.
            let patient =
                guard::Options { timeout: Duration::from_mins(3), ..guard::Options::default() };
            Arc::new(Guarded::new(dns, guard_with("Route 53", patient, watched)))
        }
    })
}

fn clients(
    set: &outside::Sso,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<Arc<dyn Sso>> {
    Ok(match set {
        outside::Sso::Registration { issuer, token } => {
            let token = token.clone().unwrap_or_else(|| Secret::new(""));
            let provider = registration::Provider::Issuer(issuer.clone());
            let options = registration::Options::new(provider, token);
            let sso = registration::Registration::new(options).context("--sso-issuer")?;
            // A registration whose answer was lost must not be repeated: nobody would know the first.
            let once = guard::Options {
                attempts: 1,
                timeout: Duration::from_secs(30),
                ..guard::Options::default()
            };
            Arc::new(Guarded::new(sso, guard_with("the OpenID provider", once, watched)))
        }
        outside::Sso::Keycloak { url, realm, client_id, client_secret } => {
            let secret = client_secret.clone();
            let options = keycloak::Options::new(url, realm, client_id, secret);
            let sso = keycloak::Keycloak::new(options).context("--keycloak-url")?;
            Arc::new(Guarded::new(sso, guard("Keycloak", watched)))
        }
    })
}
