//! Settings of the catalog, quota, autoscaling and external systems.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use adapters::confined::PrefixTemplate;
use adapters::dns::route53::AccessKey;
use adapters::vault::Auth;
use anyhow::{Context, bail};
use api::{Adopters, Publishers};
use model::Secret;
use model::address::Policy;

use super::Args;

/// Validated settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) rules: RuleFiles,
    pub(crate) domain: Option<String>,
    pub(crate) dns: Option<Dns>,
    pub(crate) sso: Option<Sso>,
    pub(crate) sso_rotate_every: Option<Duration>,
    pub(crate) consul: Option<Consul>,
    pub(crate) vault: Option<Vault>,
    /// Who may adopt objects of external systems.
    pub(crate) adopt: Adopters,
    /// Addresses to which the server connects on behalf of users.
    pub(crate) addresses: Policy,
    pub(crate) observe_every: Duration,
    pub(crate) oidc: Option<Oidc>,
    pub(crate) metrics_url: Option<String>,
    pub(crate) agents: Option<Agents>,
    pub(crate) terraform: Terraform,
}

/// Terraform settings, for clusters and resources of environments.
#[derive(Debug)]
pub(crate) struct Terraform {
    /// `None` if neither Terraform nor OpenTofu is installed.
    pub(crate) program: Option<PathBuf>,
    /// Directory of modules that create clusters.
    pub(crate) modules: Option<PathBuf>,
    pub(crate) work: Option<PathBuf>,
    pub(crate) pass: Vec<String>,
    pub(crate) publishers: Publishers,
}

/// Image and server URL of agents that Paddock installs.
#[derive(Debug)]
pub(crate) struct Agents {
    pub(crate) server: String,
    pub(crate) image: String,
}

/// Files of the catalog, quota, denied owners and autoscaling pools.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleFiles {
    pub(crate) catalog_dir: Option<PathBuf>,
    pub(crate) quota: Option<PathBuf>,
    pub(crate) denied: Option<PathBuf>,
    pub(crate) scaling: Option<PathBuf>,
}

/// DNS server for records of instances.
#[derive(Debug)]
pub(crate) enum Dns {
    Updates { server: SocketAddr, zone: String, key_file: PathBuf },
    Route53 { zone: String, zone_id: Option<String>, keys: AccessKey, endpoint: Option<String> },
}

/// Identity provider that holds the SSO clients of instances.
#[derive(Debug)]
pub(crate) enum Sso {
    Registration { issuer: String, token: Option<Secret> },
    Keycloak { url: String, realm: String, client_id: String, client_secret: Secret },
}

/// Consul server for keys of environments.
#[derive(Debug)]
pub(crate) struct Consul {
    pub(crate) addr: String,
    pub(crate) token: Option<Secret>,
    pub(crate) datacenter: Option<String>,
    pub(crate) prefix: Option<PrefixTemplate>,
}

/// Vault server for secrets of environments.
#[derive(Debug)]
pub(crate) struct Vault {
    pub(crate) addr: String,
    pub(crate) sign_in: Auth,
    pub(crate) namespace: Option<String>,
    pub(crate) prefix: Option<PrefixTemplate>,
    /// Token and key name of the transit engine that encrypts stored secrets.
    pub(crate) transit: Option<(Secret, String)>,
}

/// OIDC issuer whose tokens the API accepts.
#[derive(Debug)]
pub(crate) struct Oidc {
    pub(crate) issuer: String,
    pub(crate) audience: String,
}

impl Args {
    /// Validates the settings of external systems.
    pub(super) fn external(&self) -> anyhow::Result<Settings> {
        let rules = RuleFiles {
            catalog_dir: self.catalog_dir.clone().map(PathBuf::from),
            quota: self.quota_file.clone().map(PathBuf::from),
            denied: self.denied_owners_file.clone().map(PathBuf::from),
            scaling: self.scaling_file.clone().map(PathBuf::from),
        };
        if let Some(domain) = &self.domain {
            model::name::dns_name("--domain", domain)?;
        }
        let metrics_url = self.metrics_url.as_deref().map(|text| url("--metrics-url", text));
        Ok(Settings {
            dns: self.dns()?,
            sso: self.sso()?,
            sso_rotate_every: self.sso_rotate_every()?,
            consul: self.consul()?,
            vault: self.vault()?,
            adopt: self.adopters()?,
            addresses: self.addresses()?,
            observe_every: self.observe_every()?,
            oidc: self.oidc()?,
            metrics_url: metrics_url.transpose()?,
            agents: self.agents()?,
            terraform: self.terraform()?,
            domain: self.domain.clone(),
            rules,
        })
    }

    fn oidc(&self) -> anyhow::Result<Option<Oidc>> {
        let audience = self.oidc_audience.as_deref().map(str::trim).filter(|text| !text.is_empty());
        match (self.oidc_issuer.as_deref(), audience) {
            (None, None) => Ok(None),
            (None, Some(_)) => bail!("--oidc-issuer: required with --oidc-audience"),
            (Some(issuer), audience) => {
                let issuer = url("--oidc-issuer", issuer)?;
                let audience = audience.context(
                    "--oidc-audience: required with --oidc-issuer, otherwise tokens for other \
                     applications of the issuer would be accepted. Set it to the audience (aud) of \
                     the tokens for Paddock",
                )?;
                Ok(Some(Oidc { issuer, audience: audience.to_owned() }))
            }
        }
    }

    fn dns(&self) -> anyhow::Result<Option<Dns>> {
        match (&self.dns_server, &self.route53_zone) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                bail!("--route53-zone: cannot be combined with --dns-server")
            }
            (None, Some(zone)) => {
                let endpoint = self.route53_endpoint.as_deref();
                let endpoint = endpoint.map(|text| url("--route53-endpoint", text)).transpose()?;
                let (zone, zone_id) = (zone.clone(), self.route53_zone_id.clone());
                Ok(Some(Dns::Route53 { zone, zone_id, keys: self.keys()?, endpoint }))
            }
            (Some(server), None) => {
                let server = server.parse().with_context(|| {
                    format!("--dns-server: {server:?} is not an ADDRESS:PORT, such as 127.0.0.1:53")
                })?;
                let zone = self.dns_zone.clone();
                let zone = zone.context("--dns-zone: required with --dns-server")?;
                let key_file = self.dns_key_file.as_deref().map(PathBuf::from);
                let key_file = key_file.context("--dns-key-file: required with --dns-server")?;
                Ok(Some(Dns::Updates { server, zone, key_file }))
            }
        }
    }

    fn agents(&self) -> anyhow::Result<Option<Agents>> {
        match (&self.public_url, &self.agent_image) {
            (None, None) => Ok(None),
            (Some(server), Some(image)) => {
                let server = url("--public-url", server)?;
                let image = image.trim();
                if image.is_empty() || image.contains(char::is_whitespace) {
                    bail!("--agent-image: {image:?} is not an image, such as registry/paddock:1");
                }
                Ok(Some(Agents { server, image: image.into() }))
            }
            // Also the host under which clients call the server.
            (Some(server), None) => url("--public-url", server).map(|_| None),
            (None, Some(_)) => bail!("--public-url: required with --agent-image"),
        }
    }

    fn terraform(&self) -> anyhow::Result<Terraform> {
        let modules = self.terraform_modules.as_deref().map(PathBuf::from);
        if let Some(modules) = &modules {
            if self.public_url.is_none() {
                bail!("--public-url: required with --terraform-modules");
            }
            if self.agent_image.is_none() {
                bail!("--agent-image: required with --terraform-modules");
            }
            if !modules.is_dir() {
                bail!("--terraform-modules: {} is not a directory", modules.display());
            }
        }
        let publishers = match self.terraform_templates.as_deref() {
            None | Some("admin") => Publishers::Admin,
            Some("everyone") => Publishers::Everyone,
            Some(other) => {
                bail!("--terraform-templates: must be admin or everyone, not {other:?}")
            }
        };
        let names = self.terraform_pass.iter().flat_map(|names| names.split(','));
        Ok(Terraform {
            program: self.terraform_program()?,
            modules,
            work: self.terraform_work.as_deref().map(PathBuf::from),
            pass: names.map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect(),
            publishers,
        })
    }

    /// Path of the named program, or of the first one found in `PATH`.
    fn terraform_program(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(named) = self.terraform_program.as_deref() else {
            return Ok(["terraform", "tofu"].into_iter().find_map(on_path));
        };
        let path = PathBuf::from(named);
        let found = if named.contains('/') {
            Some(path).filter(|path| path.is_file())
        } else {
            on_path(named)
        };
        let found = found.with_context(|| format!("--terraform-program: {named} not found"))?;
        Ok(Some(found))
    }

    fn consul(&self) -> anyhow::Result<Option<Consul>> {
        let Some(addr) = self.consul_addr.as_deref() else { return Ok(None) };
        let token = self.consul_token.as_deref().map(Secret::new);
        let datacenter = self.consul_datacenter.clone();
        if let Some(name) = &datacenter {
            model::name::line("--consul-datacenter", name, 64)?;
        }
        let prefix = prefix("--consul-prefix", self.consul_prefix.as_deref())?;
        Ok(Some(Consul { addr: url("--consul-addr", addr)?, token, datacenter, prefix }))
    }

    fn vault(&self) -> anyhow::Result<Option<Vault>> {
        let Some(addr) = self.vault_addr.as_deref() else {
            // Ignoring one of these would silently disable what the operator relies on.
            let dependent = [&self.vault_transit_key, &self.vault_role_id, &self.vault_secret_id];
            if dependent.into_iter().any(Option::is_some) {
                bail!("--vault-addr: required with --vault-transit-key and --vault-role-id");
            }
            return Ok(None);
        };
        let addr = url("--vault-addr", addr)?;
        let token = self.vault_token.as_deref().map(Secret::new);
        let sign_in = match (&token, &self.vault_role_id, &self.vault_secret_id) {
            (Some(token), None, None) => Auth::Token(token.clone()),
            (None, Some(role_id), Some(secret_id)) => Auth::AppRole {
                role_id: role_id.clone(),
                secret_id: Secret::new(secret_id),
                mount: match self.vault_approle_mount.as_deref() {
                    Some(mount) => path("--vault-approle-mount", mount)?,
                    None => "approle".into(),
                },
            },
            (None, Some(_), None) => bail!("--vault-secret-id: required with --vault-role-id"),
            (None, None, _) => bail!(
                "--vault-token: required with --vault-addr; set PADDOCK_VAULT_TOKEN, or use \
                 --vault-role-id and --vault-secret-id"
            ),
            (Some(_), ..) => bail!("--vault-token: cannot be combined with --vault-role-id"),
        };
        let transit = match (&self.vault_transit_key, token) {
            (None, _) => None,
            (Some(key), Some(token)) => Some((token, key.clone())),
            (Some(_), None) => bail!(
                "--vault-transit-key: needs --vault-token; not supported with --vault-role-id"
            ),
        };
        let namespace = self.vault_namespace.as_deref();
        let namespace = namespace.map(|text| path("--vault-namespace", text)).transpose()?;
        let prefix = prefix("--vault-prefix", self.vault_prefix.as_deref())?;
        Ok(Some(Vault { addr, sign_in, namespace, prefix, transit }))
    }

    fn adopters(&self) -> anyhow::Result<Adopters> {
        match self.adopt.as_deref() {
            None | Some("admin") => Ok(Adopters::Admin),
            Some("owners") => Ok(Adopters::Owners),
            Some("off") => Ok(Adopters::Off),
            Some(other) => bail!("--adopt: must be owners, admin or off, not {other:?}"),
        }
    }

    fn observe_every(&self) -> anyhow::Result<Duration> {
        let secs = self.observe_secs.as_deref();
        super::number("--observe-secs", secs, 600, 1..=7 * 24 * 60 * 60).map(Duration::from_secs)
    }

    fn keys(&self) -> anyhow::Result<AccessKey> {
        let required = |value: &Option<String>, name: &str| {
            value.clone().with_context(|| format!("{name}: required with --route53-zone"))
        };
        Ok(AccessKey {
            id: required(&self.aws_access_key_id, "--aws-access-key-id")?,
            secret: Secret::new(required(&self.aws_secret_access_key, "--aws-secret-access-key")?),
            session: self.aws_session_token.as_deref().map(Secret::new),
        })
    }

    fn sso_rotate_every(&self) -> anyhow::Result<Option<Duration>> {
        let Some(text) = self.sso_rotate_days.as_deref() else { return Ok(None) };
        let days: u32 = super::number("--sso-rotate-days", Some(text), 1, 1..=3650)?;
        Ok(Some(Duration::from_hours(24) * days))
    }

    fn sso(&self) -> anyhow::Result<Option<Sso>> {
        match (&self.sso_issuer, &self.keycloak_url) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                bail!("--keycloak-url: cannot be combined with --sso-issuer")
            }
            (Some(issuer), None) => {
                let token = self.sso_registration_token.as_deref().map(Secret::new);
                Ok(Some(Sso::Registration { issuer: url("--sso-issuer", issuer)?, token }))
            }
            (None, Some(at)) => {
                let required = |value: &Option<String>, name: &str| {
                    value.clone().with_context(|| format!("{name}: required with --keycloak-url"))
                };
                let secret = required(&self.keycloak_client_secret, "--keycloak-client-secret")?;
                Ok(Some(Sso::Keycloak {
                    url: url("--keycloak-url", at)?,
                    realm: required(&self.keycloak_realm, "--keycloak-realm")?,
                    client_id: required(&self.keycloak_client_id, "--keycloak-client-id")?,
                    client_secret: Secret::new(secret),
                }))
            }
        }
    }
}

/// Searches `PATH` for a program.
fn on_path(name: &str) -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH")?;
    std::env::split_paths(&dirs).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Validates an HTTP URL and removes trailing slashes.
fn url(name: &str, text: &str) -> anyhow::Result<String> {
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    if !is_http || text.contains(char::is_whitespace) || text.contains('@') {
        bail!("{name}: must be an http:// or https:// URL without user and password");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Validates a prefix template; the default is the organization's id.
fn prefix(name: &str, text: Option<&str>) -> anyhow::Result<Option<PrefixTemplate>> {
    let text = text.unwrap_or("{organization}/");
    PrefixTemplate::parse(text).map_err(|rule| anyhow::anyhow!("{name}: {rule}, not {text:?}"))
}

/// Validates a Vault path and removes leading and trailing slashes.
fn path(name: &str, text: &str) -> anyhow::Result<String> {
    let path = text.trim_matches('/');
    let is_plain =
        |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(|c| c.is_ascii_graphic());
    if !path.split('/').all(is_plain) || path.contains(['?', '#', '%']) {
        bail!("{name}: {text:?} is not a path, such as team or team/shop");
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app_role() -> Args {
        let set = |value: &str| Some(value.to_owned());
        let (vault_role_id, vault_secret_id) = (set("r"), set("s"));
        Args { vault_addr: set("http://v"), vault_role_id, vault_secret_id, ..Args::default() }
    }

    #[test]
    fn vault_mount_and_namespace_and_consul_datacenter_are_configurable() {
        let set = |value: &str| Some(value.to_owned());
        let mount = |args: Args| match args.external().unwrap().vault.unwrap().sign_in {
            Auth::AppRole { mount, .. } => mount,
            Auth::Token(_) => panic!("expected an AppRole"),
        };
        assert_eq!(mount(app_role()), "approle");
        let custom = Args { vault_approle_mount: set("team/roles/"), ..app_role() };
        assert_eq!(mount(custom), "team/roles");
        let args = Args {
            vault_namespace: set("/team/shop"),
            consul_addr: set("http://c"),
            consul_datacenter: set("dc2"),
            ..app_role()
        };
        let Settings { vault, consul, .. } = args.external().unwrap();
        assert_eq!(vault.unwrap().namespace.as_deref(), Some("team/shop"));
        assert_eq!(consul.unwrap().datacenter.as_deref(), Some("dc2"));
    }

    #[test]
    fn private_addresses_are_refused_by_default() {
        for (policy, networks, permitted) in [
            (None, None, [false, false, false]),
            (Some("refuse"), None, [false, false, false]),
            (Some("allow"), None, [true, true, false]),
            (None, Some("10.0.0.0/8, 192.168.0.7"), [true, false, false]),
            (None, Some("169.254.169.254"), [false, false, true]),
        ] {
            let [private_addresses, allow_address] =
                [policy, networks].map(|text| text.map(str::to_owned));
            let args = Args { private_addresses, allow_address, ..Args::default() };
            let addresses = args.external().unwrap().addresses;
            let found = ["10.1.2.3", "127.0.0.1", "169.254.169.254"]
                .map(|ip| addresses.check(ip.parse().unwrap()).is_ok());
            assert_eq!(found, permitted, "{policy:?} {networks:?}");
        }
    }

    #[test]
    fn invalid_setting_is_reported_by_name() {
        let set = |value: &str| Some(value.to_owned());
        let bad = vec![
            (Args { domain: set("not a domain"), ..Args::default() }, "--domain"),
            (Args { dns_server: set("here"), ..Args::default() }, "--dns-server"),
            (Args { dns_server: set("127.0.0.1:53"), ..Args::default() }, "--dns-zone"),
            (Args { vault_addr: set("http://v"), ..Args::default() }, "--vault-token"),
            (Args { vault_addr: set("ftp://v"), ..Args::default() }, "--vault-addr"),
            (
                Args { vault_addr: set("http://v"), vault_role_id: set("r"), ..Args::default() },
                "--vault-secret-id",
            ),
            (Args { consul_addr: set("consul:8500"), ..Args::default() }, "--consul-addr"),
            (
                Args {
                    consul_addr: set("http://c"),
                    consul_datacenter: set(""),
                    ..Args::default()
                },
                "--consul-datacenter",
            ),
            (
                Args {
                    vault_addr: set("http://v"),
                    vault_token: set("t"),
                    vault_namespace: set("a//b"),
                    ..Args::default()
                },
                "--vault-namespace",
            ),
            (
                Args {
                    vault_addr: set("http://v"),
                    vault_token: set("t"),
                    vault_prefix: set("shop/"),
                    ..Args::default()
                },
                "--vault-prefix",
            ),
            (
                Args {
                    consul_addr: set("http://c"),
                    consul_prefix: set("{organization}"),
                    ..Args::default()
                },
                "--consul-prefix",
            ),
            (Args { adopt: set("everyone"), ..Args::default() }, "--adopt"),
            (Args { vault_approle_mount: set("a?b"), ..app_role() }, "--vault-approle-mount"),
            (Args { vault_transit_key: set("k"), ..app_role() }, "--vault-transit-key: needs"),
            (Args { vault_transit_key: set("k"), ..Args::default() }, "--vault-addr"),
            (Args { vault_addr: None, ..app_role() }, "--vault-addr"),
            (Args { vault_secret_id: set("s"), ..Args::default() }, "--vault-addr"),
            (Args { terraform_templates: set("me"), ..Args::default() }, "--terraform-templates"),
            (
                Args { terraform_program: set("/not/there"), ..Args::default() },
                "--terraform-program",
            ),
            (Args { private_addresses: set("no"), ..Args::default() }, "--private-addresses"),
            (Args { observe_secs: set("0"), ..Args::default() }, "--observe-secs"),
            (Args { oidc_issuer: set("https://u:secret@h"), ..Args::default() }, "--oidc-issuer"),
            (Args { oidc_issuer: set("https://sso"), ..Args::default() }, "--oidc-audience"),
            (
                Args {
                    oidc_issuer: set("https://sso"),
                    oidc_audience: set(" "),
                    ..Args::default()
                },
                "--oidc-audience",
            ),
            (Args { oidc_audience: set("paddock"), ..Args::default() }, "--oidc-issuer"),
            (Args { keycloak_url: set("http://k"), ..Args::default() }, "--keycloak-client-secret"),
            (
                Args {
                    keycloak_url: set("http://k"),
                    sso_issuer: set("http://s"),
                    ..Args::default()
                },
                "--keycloak-url",
            ),
            (
                Args {
                    route53_zone: set("Z1"),
                    dns_server: set("127.0.0.1:53"),
                    ..Args::default()
                },
                "--route53-zone",
            ),
            (Args { route53_zone: set("z"), ..Args::default() }, "--aws-access-key-id"),
            (Args { sso_rotate_days: set("0"), ..Args::default() }, "--sso-rotate-days"),
            (Args { metrics_url: set("prometheus"), ..Args::default() }, "--metrics-url"),
        ];
        for (args, name) in bad {
            let error = format!("{:#}", args.external().unwrap_err());
            assert!(error.starts_with(name), "{error}");
            assert!(!error.contains("secret@"), "{error}");
        }
    }
}
