//! Where a registry may send the server: token services and redirects. Pure but for DNS.
//!
//! A registry is named by a tenant and may be hostile: without these rules it could make the server
//! send requests to any address, and read the answers of a token service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use super::is_loopback;

/// Docker Hub, and its token service on another host.
const DOCKER_HUB: [&str; 3] = ["index.docker.io", "registry-1.docker.io", "docker.io"];
const DOCKER_HUB_REALM: &str = "auth.docker.io";

/// Metadata and configuration services of clouds outside the link-local ranges.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// Which addresses a connection may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All but link-local, multicast and metadata addresses.
    Any,
    /// Public addresses only.
    Public,
}

/// Rules for one registry.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The registry: `HOST` or `HOST:PORT`.
    pub(super) registry: String,
    /// Other hosts that registries may refer to: `HOST` or `HOST:PORT`.
    pub(super) allowed: Vec<String>,
}

impl Rules {
    /// Checks a token service: on the registry's host and port, or an allowed host.
    pub(super) fn token_service(&self, realm: &str) -> Result<(Url, Reach), String> {
        let url = self.url(realm)?;
        let is_docker_hub = DOCKER_HUB.contains(&self.registry.as_str())
            && url.host_str() == Some(DOCKER_HUB_REALM)
            && url.port().is_none();
        if is_docker_hub {
            return Ok((url, Reach::Public));
        }
        if self.is_trusted(&url) {
            return Ok((url, Reach::Any));
        }
        let (registry, host) = (&self.registry, authority(&url));
        Err(format!(
            "registry {registry} refers to token service {host}, which is on another host. If it is \
             trusted, allow it with --registry-realm {host}"
        ))
    }

    /// Checks the target of a redirect: the registry's or an allowed host, or any public address.
    pub(super) fn redirect(&self, from: &Url, location: &str) -> Result<(Url, Reach), String> {
        let url = from.join(location).map_err(|_| self.invalid("a redirect"))?;
        let url = self.url(url.as_str())?;
        let reach = if self.is_trusted(&url) { Reach::Any } else { Reach::Public };
        Ok((url, reach))
    }

    /// Parses a URL from the registry: HTTPS, or HTTP for a registry on this host.
    fn url(&self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text).map_err(|_| self.invalid("a URL"))?;
        let is_plain = url.scheme() == "http" && is_loopback(&self.registry);
        if url.scheme() != "https" && !is_plain {
            let registry = &self.registry;
            return Err(format!("registry {registry} refers to a URL without https"));
        }
        if url.host_str().is_none() || !url.username().is_empty() || url.password().is_some() {
            return Err(self.invalid("a URL"));
        }
        Ok(url)
    }

    fn invalid(&self, what: &str) -> String {
        format!("registry {} sent {what} that is invalid", self.registry)
    }

    fn is_trusted(&self, url: &Url) -> bool {
        let mut trusted = self.allowed.iter().chain([&self.registry]);
        trusted.any(|name| name.eq_ignore_ascii_case(&authority(url)))
    }
}

/// Host and port of a URL, as users write them: without the scheme's default port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Checks an address literal in a URL; names are checked when they are resolved.
pub(super) fn check_literal(url: &Url, reach: Reach) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(ip) => check(ip, reach),
        Err(_) => Ok(()),
    }
}

fn check(ip: IpAddr, reach: Reach) -> Result<(), String> {
    if is_reserved(ip) || (reach == Reach::Public && is_private(ip)) {
        return Err(format!("{ip} is not permitted: it is not a public address"));
    }
    Ok(())
}

/// A DNS resolver that rejects addresses that are not permitted.
pub(super) struct Checked {
    reach: Reach,
    /// Names of the proxies in the environment, which may be anywhere.
    proxies: Vec<String>,
}

impl Checked {
    pub(super) fn new(reach: Reach) -> Self {
        let names = ["http_proxy", "https_proxy", "all_proxy"].map(str::to_owned);
        let names = names.iter().flat_map(|name| [name.clone(), name.to_uppercase()]);
        let urls = names.filter_map(|name| std::env::var(name).ok());
        Self { reach, proxies: urls.filter_map(|url| proxy_host(&url)).collect() }
    }
}

/// The host of a proxy's URL, which may lack its scheme.
fn proxy_host(url: &str) -> Option<String> {
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    Url::parse(&url).ok()?.host_str().map(str::to_owned)
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        let is_proxy = self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0)).await?.collect();
            for address in found.iter().filter(|_| !is_proxy) {
                check(address.ip(), reach)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The IPv4 address that an IPv6 address embeds (mapped, compatible, NAT64, 6to4), else itself.
fn canonical(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip.to_canonical() else { return ip.to_canonical() };
    let four = |a: u16, b: u16| Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into();
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0, 0, 0, 0, 0, 0, a, b] if (a, b) > (0, 1) => {
            four(a, b)
        }
        [0x2002, a, b, ..] => four(a, b),
        _ => ip,
    }
}

/// Link-local, multicast and metadata addresses.
fn is_reserved(ip: IpAddr) -> bool {
    let ip = canonical(ip);
    let is_local = match ip {
        IpAddr::V4(four) => four.is_link_local() || four.is_broadcast(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    is_local || ip.is_multicast() || METADATA.contains(&ip)
}

fn is_private(ip: IpAddr) -> bool {
    let ip = canonical(ip);
    let is_special = match ip {
        IpAddr::V4(four) => {
            let [a, b, ..] = four.octets();
            four.is_private() || a == 0 || a >= 240 || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(six) => six.is_unique_local(),
    };
    is_special || ip.is_loopback() || ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(registry: &str) -> Rules {
        Rules { registry: registry.to_owned(), allowed: vec!["login.example".to_owned()] }
    }

    #[test]
    fn token_service_is_on_the_registrys_host_or_allowed() {
        for (registry, realm, is_allowed) in [
            ("reg.example", "https://reg.example/token", true),
            ("reg.example", "https://REG.example:443/token", true),
            ("reg.example", "https://login.example/token", true),
            ("index.docker.io", "https://auth.docker.io/token", true),
            ("127.0.0.1:5000", "http://127.0.0.1:5000/token", true),
            ("reg.example", "https://auth.docker.io/token", false),
            ("reg.example", "http://reg.example/token", false),
            ("reg.example", "https://reg.example:8443/token", false),
            ("reg.example", "https://other.example/token", false),
            ("reg.example", "https://reg.example.evil.example/token", false),
            ("reg.example", "https://reg.example@evil.example/token", false),
            ("reg.example", "http://169.254.169.254/token", false),
            ("127.0.0.1:5000", "http://127.0.0.1:6000/token", false),
            ("127.0.0.1:5000", "http://10.0.0.1/token", false),
            ("reg.example", "file:///etc/passwd", false),
            ("reg.example", "token", false),
        ] {
            let checked = rules(registry).token_service(realm);
            assert_eq!(checked.is_ok(), is_allowed, "{registry} {realm}: {checked:?}");
        }
    }

    #[test]
    fn redirect_to_another_host_reaches_public_addresses_only() {
        let from = Url::parse("https://reg.example/v2/x/blobs/y").unwrap();
        for (location, reach) in [
            ("/elsewhere", Some(Reach::Any)),
            ("https://login.example/x", Some(Reach::Any)),
            ("https://cdn.example/x", Some(Reach::Public)),
            ("http://cdn.example/x", None),
            ("ftp://cdn.example/x", None),
        ] {
            let checked = rules("reg.example").redirect(&from, location).ok();
            assert_eq!(checked.map(|(_, reach)| reach), reach, "{location}");
        }
    }

    #[test]
    fn proxy_hosts_are_found_with_and_without_a_scheme() {
        for (url, host) in [
            ("http://proxy.corp:3128", Some("proxy.corp")),
            ("user:pw@proxy.corp:3128", Some("proxy.corp")),
            ("proxy.corp", Some("proxy.corp")),
            ("", None),
        ] {
            assert_eq!(proxy_host(url).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn addresses_are_classified() {
        for (ip, any, public) in [
            ("203.0.113.1", true, true),
            ("2001:db8::1", true, true),
            ("127.0.0.1", true, false),
            ("::ffff:10.0.0.1", true, false),
            ("fd12::1", true, false),
            ("0.0.0.0", true, false),
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("64:ff9b::a9fe:a9fe", false, false),
            ("fe80::1", false, false),
            ("fd00:ec2::254", false, false),
            ("224.0.0.1", false, false),
        ] {
            let ip = ip.parse().unwrap();
            let checked = [Reach::Any, Reach::Public].map(|reach| check(ip, reach).is_ok());
            assert_eq!(checked, [any, public], "{ip}");
        }
    }
}
