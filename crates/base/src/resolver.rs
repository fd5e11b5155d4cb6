//! DNS resolution for connections on behalf of users: returns permitted addresses only.
//!
//! A client must connect to the returned addresses and resolve nothing itself, so that the address
//! that was checked is the one connected to: a name that changes its target gains nothing.
//! Addresses in URLs are never resolved; check them with [`Policy::check_literal`].

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use model::address::{Policy, Refused};

/// A pending lookup.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of a name; tests replace it.
pub type LookupFn = Arc<dyn Fn(String) -> Lookup + Send + Sync>;

/// A DNS resolver that returns permitted addresses only.
#[derive(Clone)]
pub struct Resolver {
    policy: Policy,
    /// Names that may have any address, in lower case.
    exempt: Vec<String>,
    lookup: LookupFn,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Why a name was not resolved.
#[derive(Debug)]
pub enum Unresolved {
    /// None of its addresses is permitted.
    Refused(Refused),
    /// The lookup failed.
    Failed(io::Error),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresolved::Refused(refused) => refused.fmt(f),
            Unresolved::Failed(error) => error.fmt(f),
        }
    }
}

impl Error for Unresolved {}

impl Resolver {
    /// The operating system's resolver, restricted to permitted addresses.
    pub fn new(policy: Policy) -> Self {
        let lookup: LookupFn = Arc::new(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        });
        Self { policy, exempt: Vec::new(), lookup }
    }

    /// Replaces the lookup, for tests.
    pub fn with_lookup(self, lookup: LookupFn) -> Self {
        Self { lookup, ..self }
    }

    /// Permits any address of a host that the server's settings name.
    pub fn with_exempt(mut self, host: &str) -> Self {
        self.exempt.push(host.to_ascii_lowercase());
        self
    }

    /// Permits any address of the proxies in the environment.
    pub fn with_proxies(self) -> Self {
        let names = ["http_proxy", "https_proxy", "all_proxy"];
        let values = names.iter().flat_map(|name| {
            [std::env::var(name).ok(), std::env::var(name.to_ascii_uppercase()).ok()]
        });
        let hosts: Vec<String> = values.flatten().filter_map(|url| proxy_host(&url)).collect();
        hosts.iter().fold(self, |resolver, host| resolver.with_exempt(host))
    }

    /// Checks the host of a URL before a connection: a name is checked when it is resolved.
    pub fn check_literal(&self, host: &str) -> Result<(), Refused> {
        if self.is_exempt(host) { Ok(()) } else { self.policy.check_literal(host) }
    }

    /// The permitted addresses of a name, with port 0.
    pub async fn resolve(&self, name: &str) -> Result<Vec<SocketAddr>, Unresolved> {
        let is_exempt = self.is_exempt(name);
        let found = (self.lookup)(name.to_owned()).await.map_err(Unresolved::Failed)?;
        let (mut permitted, mut refused) = (Vec::new(), None);
        for ip in found {
            match self.policy.check(ip) {
                Err(class) if !is_exempt => refused = refused.or(Some(class)),
                _ => permitted.push(SocketAddr::new(ip, 0)),
            }
        }
        match refused {
            Some(class) if permitted.is_empty() => {
                Err(Unresolved::Refused(Refused::name(name, class)))
            }
            _ => Ok(permitted),
        }
    }

    fn is_exempt(&self, host: &str) -> bool {
        self.exempt.iter().any(|exempt| exempt.eq_ignore_ascii_case(host))
    }
}

/// The refusal in the chain of an error's sources, if it is the cause.
pub fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refused> {
    let mut inner = Some(error);
    while let Some(error) = inner {
        if let Some(Unresolved::Refused(refused)) = error.downcast_ref() {
            return Some(refused);
        }
        inner = error.source();
    }
    None
}

/// The host of a proxy's URL, which may lack its scheme.
fn proxy_host(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(six) => six.split_once(']')?.0,
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn fake(policy: &Policy, answers: &[&[&str]]) -> Resolver {
        let answers: Vec<Vec<IpAddr>> = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        let answers = Mutex::new(answers.into_iter());
        Resolver::new(policy.clone()).with_lookup(Arc::new(move |_| {
            let answer = answers.lock().unwrap().next().unwrap();
            Box::pin(async move { Ok(answer) })
        }))
    }

    async fn resolved(resolver: &Resolver) -> Vec<String> {
        match resolver.resolve("shop.example").await {
            Ok(found) => found.iter().map(|address| address.ip().to_string()).collect(),
            Err(error) => {
                assert!(refusal(&error).is_some());
                vec![error.to_string()]
            }
        }
    }

    #[tokio::test]
    async fn each_resolution_is_checked_and_returns_permitted_addresses_only() {
        let answers: [&[&str]; 4] =
            [&["203.0.113.1"], &["10.0.0.1"], &["10.0.0.1", "203.0.113.1"], &["169.254.169.254"]];
        let resolver = fake(&Policy::default(), &answers);
        assert_eq!(resolved(&resolver).await, ["203.0.113.1"]);
        let why = resolved(&resolver).await.remove(0);
        assert!(why.contains("shop.example is not permitted: it resolves to a private"), "{why}");
        assert!(why.contains("allow_address") && !why.contains("10.0.0.1"), "{why}");
        assert_eq!(resolved(&resolver).await, ["203.0.113.1"]);
        assert!(resolved(&resolver).await[0].contains("a link-local address"));
    }

    #[tokio::test]
    async fn named_systems_may_have_any_address() {
        let resolver = fake(&Policy::default(), &[&["10.0.0.1"]]).with_exempt("SHOP.example");
        assert_eq!(resolved(&resolver).await, ["10.0.0.1"]);
        let resolver = Resolver::new(Policy::default()).with_exempt("127.0.0.1");
        assert!(resolver.check_literal("127.0.0.1").is_ok());
        assert!(resolver.check_literal("127.0.0.2").is_err());
    }

    #[test]
    fn proxy_hosts_are_found_with_and_without_a_scheme() {
        for (url, host) in [
            ("http://proxy.corp:3128", Some("proxy.corp")),
            ("user:pw@proxy.corp:3128", Some("proxy.corp")),
            ("http://[fd12::1]:3128/", Some("fd12::1")),
            ("proxy.corp", Some("proxy.corp")),
            ("", None),
        ] {
            assert_eq!(proxy_host(url).as_deref(), host, "{url}");
        }
    }
}
