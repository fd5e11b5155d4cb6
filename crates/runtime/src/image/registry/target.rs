//! Where a registry may send the server: token services and redirects. Pure but for DNS.
//!
//! A registry is named by a tenant and may be hostile: without these rules it could make the server
//! send requests to any address, and read the answers of a token service.

use base::Resolver;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::is_loopback;

/// Docker Hub, and its token service on another host.
const DOCKER_HUB: [&str; 3] = ["index.docker.io", "registry-1.docker.io", "docker.io"];
const DOCKER_HUB_REALM: &str = "auth.docker.io";

/// Which addresses a connection may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of a host that the settings name: private ones too.
    Named,
    /// Those that the policy permits.
    Permitted,
}

/// Rules for one registry.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The registry: `HOST` or `HOST:PORT`.
    pub(super) registry: String,
    /// Other hosts that registries may refer to: `HOST` or `HOST:PORT`.
    pub(super) allowed: Vec<String>,
    /// Whether the settings name the registry.
    pub(super) is_named: bool,
}

impl Rules {
    /// Checks a token service: on the registry's host and port, or an allowed host.
    pub(super) fn token_service(&self, realm: &str) -> Result<(Url, Reach), String> {
        let url = self.url(realm)?;
        let is_docker_hub = DOCKER_HUB.contains(&self.registry.as_str())
            && url.host_str() == Some(DOCKER_HUB_REALM)
            && url.port().is_none();
        if is_docker_hub {
            return Ok((url, Reach::Permitted));
        }
        if self.is_allowed(&url) || self.is_own(&url) {
            let reach = self.reach(&url);
            return Ok((url, reach));
        }
        let (registry, host) = (&self.registry, authority(&url));
        Err(format!(
            "registry {registry} refers to token service {host}, which is on another host. If it is \
             trusted, allow it with --registry-realm {host}"
        ))
    }

    /// Checks the target of a redirect: a host that the settings name, or any permitted address.
    pub(super) fn redirect(&self, from: &Url, location: &str) -> Result<(Url, Reach), String> {
        let url = from.join(location).map_err(|_| self.invalid("a redirect"))?;
        let url = self.url(url.as_str())?;
        let reach = self.reach(&url);
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

    /// Which addresses the host of a URL may have.
    pub(super) fn reach(&self, url: &Url) -> Reach {
        let is_named = self.is_allowed(url) || (self.is_named && self.is_own(url));
        if is_named { Reach::Named } else { Reach::Permitted }
    }

    fn is_own(&self, url: &Url) -> bool {
        self.registry.eq_ignore_ascii_case(&authority(url))
    }

    fn is_allowed(&self, url: &Url) -> bool {
        self.allowed.iter().any(|name| name.eq_ignore_ascii_case(&authority(url)))
    }
}

/// Host and port of a URL, as users write them: without the scheme's default port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The resolver of a client.
pub(super) struct Checked(pub(super) Resolver);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(registry: &str) -> Rules {
        let allowed = vec!["login.example".to_owned()];
        Rules { registry: registry.to_owned(), allowed, is_named: false }
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
    fn redirect_reaches_permitted_addresses_unless_the_settings_name_its_host() {
        let from = Url::parse("https://reg.example/v2/x/blobs/y").unwrap();
        for (location, reach) in [
            ("/elsewhere", Some([Reach::Permitted, Reach::Named])),
            ("https://login.example/x", Some([Reach::Named; 2])),
            ("https://cdn.example/x", Some([Reach::Permitted; 2])),
            ("http://cdn.example/x", None),
            ("ftp://cdn.example/x", None),
        ] {
            let checked = [false, true].map(|is_named| {
                let rules = Rules { is_named, ..rules("reg.example") };
                rules.redirect(&from, location).ok().map(|(_, reach)| reach)
            });
            assert_eq!(checked, reach.map_or([None; 2], |both| both.map(Some)), "{location}");
        }
    }
}
