//! Credentials of image registries, and what they are used for.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base::Resolver;
use base::resolver::Unresolved;
use model::address::{Policy, Refused};
use serde::{Deserialize, Serialize};

use crate::image::Reference;

/// Credentials of an image registry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The password, or a token used as one.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, •••)", self.username)
    }
}

/// Credentials of registries, and rules for them.
#[derive(Debug, Clone, Default)]
pub struct Registries {
    /// Credentials by registry, as written in image references: `registry.local:5000`.
    pub credentials: BTreeMap<String, Credentials>,
    /// Repositories for which the credentials are used: any owner of a container can pull them.
    pub repositories: Vec<RepositoryPattern>,
    /// Hosts to which registries may refer, besides their own, for tokens and redirects.
    pub realms: Vec<RegistryHost>,
    /// Addresses of registries that none of the other rules names.
    pub addresses: Policy,
}

impl Registries {
    /// Whether a rule names the registry of an image: it may then have a private address.
    pub fn is_named(&self, image: &Reference) -> bool {
        let names = [image.registry(), image.resolve_registry()];
        let is_host = |host: &str| names.iter().any(|name| name.eq_ignore_ascii_case(host));
        self.credentials.keys().any(|host| is_host(host))
            || self.repositories.iter().any(|pattern| is_host(pattern.registry()))
            || self.realms.iter().any(|host| is_host(&host.0))
    }

    /// Checks the addresses of an image's registry, for a program that pulls it itself. A name that
    /// can't be resolved here is left to that program.
    pub async fn check_address(&self, image: &Reference) -> Result<(), Refused> {
        let policy =
            if self.is_named(image) { self.addresses.for_named() } else { self.addresses.clone() };
        let registry = image.resolve_registry();
        let host = match registry.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => registry,
        };
        let host = host.trim_matches(['[', ']']);
        policy.check_literal(host)?;
        match Resolver::new(policy).resolve(host).await {
            Err(Unresolved::Refused(refused)) => Err(refused),
            Ok(_) | Err(Unresolved::Failed(_)) => Ok(()),
        }
    }

    /// The credentials for an image; none unless its repository may be pulled with them.
    pub fn credentials_for(&self, image: &Reference) -> Option<&Credentials> {
        let names = [image.registry(), image.resolve_registry()];
        let found = names.into_iter().find_map(|name| self.credentials.get(name))?;
        if self.repositories.iter().any(|pattern| pattern.matches(image)) {
            return Some(found);
        }
        let repository = format!("{}/{}", image.registry(), image.repository());
        tracing::info!(repository, "registry credentials are not used for this repository");
        None
    }
}

/// A repository such as `registry.local/base/web`, or all below a path: `registry.local/base/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryPattern(String);

impl RepositoryPattern {
    fn registry(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    fn matches(&self, image: &Reference) -> bool {
        let repository = format!("{}/{}", image.registry(), image.repository());
        match self.0.strip_suffix('*') {
            Some(prefix) => repository.starts_with(prefix),
            None => repository == self.0,
        }
    }
}

impl FromStr for RepositoryPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_suffix("/*").unwrap_or(text);
        let is_host = |host: &str| host.parse::<RegistryHost>().is_ok();
        let has_host = path.split('/').next().is_some_and(is_host);
        let has_path = path.contains('/') || path != text;
        if !has_host
            || !has_path
            || path.contains('*')
            || path.contains("//")
            || path.ends_with('/')
        {
            return Err(format!(
                "{text:?} is not a repository with its registry, such as registry.local:5000/base/web \
                 or registry.local:5000/base/*"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A host of a registry or a token service: `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryHost(String);

impl FromStr for RegistryHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if text.is_empty() || !text.chars().all(allowed) {
            return Err(format!(
                "{text:?} is not a host, such as login.example.com or login.example.com:8443"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_serve_listed_repositories_only() {
        let credentials = Credentials { username: "u".into(), password: "p".into() };
        let patterns = ["reg.example/base/*", "reg.example/tools/cli", "docker.io/team/*"];
        let registries = Registries {
            credentials: ["reg.example", "docker.io"]
                .map(|registry| (registry.to_owned(), credentials.clone()))
                .into(),
            repositories: patterns.map(|pattern| pattern.parse().unwrap()).to_vec(),
            ..Registries::default()
        };
        for (image, is_served) in [
            ("reg.example/base/web:1", true),
            ("reg.example/base/deep/web", true),
            ("reg.example/tools/cli:2", true),
            ("team/web:1", true),
            ("reg.example/basement/web", false),
            ("reg.example/tools/cli2", false),
            ("reg.example/secret", false),
            ("other.example/base/web", false),
            ("web", false),
        ] {
            let image: Reference = image.parse().unwrap();
            assert_eq!(registries.credentials_for(&image).is_some(), is_served, "{image}");
        }
    }

    #[test]
    fn registries_of_the_settings_are_named() {
        let credentials = Credentials { username: "u".into(), password: "p".into() };
        let registries = Registries {
            credentials: [("a.example".to_owned(), credentials)].into(),
            repositories: vec!["b.example:5000/base/*".parse().unwrap()],
            realms: vec!["c.example".parse().unwrap()],
            ..Registries::default()
        };
        for (image, is_named) in [
            ("a.example/web", true),
            ("b.example:5000/other", true),
            ("c.example/web", true),
            ("b.example/base/web", false),
            ("d.example/web", false),
            ("web", false),
        ] {
            assert_eq!(registries.is_named(&image.parse().unwrap()), is_named, "{image}");
        }
    }

    #[tokio::test]
    async fn registry_at_a_private_address_is_refused_unless_named() {
        let strict = Registries::default();
        let named = Registries {
            repositories: vec!["127.0.0.1:5000/*".parse().unwrap()],
            ..Registries::default()
        };
        let image: Reference = "127.0.0.1:5000/web".parse().unwrap();
        let why = strict.check_address(&image).await.unwrap_err().to_string();
        assert!(why.contains("loopback") && why.contains("allow_address"), "{why}");
        assert_eq!(named.check_address(&image).await, Ok(()));
        let image: Reference = "169.254.169.254/web".parse().unwrap();
        assert!(named.check_address(&image).await.is_err());
        let image: Reference = "no-such-host.invalid/web".parse().unwrap();
        assert_eq!(strict.check_address(&image).await, Ok(()));
    }

    #[test]
    fn patterns_name_a_registry_and_a_path() {
        for (text, is_valid) in [
            ("reg.example/*", true),
            ("reg.example:5000/a/b", true),
            ("reg.example", false),
            ("*", false),
            ("/*", false),
            ("reg.example/a*", false),
            ("reg.example/*/b", false),
            ("https://reg.example/a", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<RepositoryPattern>().is_ok(), is_valid, "{text}");
        }
    }
}
