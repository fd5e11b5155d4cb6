//! Settings of sign-up, hosts, proxies and limits of the HTTP server.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use api::{AllowedHosts, EdgeSettings, Limit, Network, SignUp};

use super::{Args, boolean, number};

/// Largest limit of anything.
const MAX: u32 = 1_000_000;

/// Validated settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) sign_up: SignUp,
    pub(crate) member_invites: bool,
    pub(crate) invite_max_life: Duration,
    pub(crate) http: EdgeSettings,
}

impl Args {
    /// Validates the settings for a server that listens on this address.
    pub(super) fn edge(&self, listen: SocketAddr) -> anyhow::Result<Settings> {
        let year = model::invite::MAX_LIFETIME.as_secs();
        let life = self.invite_max_life_secs.as_deref();
        let life = number("--invite-max-life-secs", life, 30 * 24 * 60 * 60, 1..=year)?;
        Ok(Settings {
            sign_up: self.sign_up(listen)?,
            member_invites: boolean("--member-invites", self.member_invites.as_deref(), false)?,
            invite_max_life: Duration::from_secs(life),
            http: self.http(listen)?,
        })
    }

    fn sign_up(&self, listen: SocketAddr) -> anyhow::Result<SignUp> {
        match self.sign_up.as_deref() {
            // On this machine, everyone who reaches the server is its user.
            None if listen.ip().is_loopback() => Ok(SignUp::Open),
            None | Some("invite") => Ok(SignUp::Invite),
            Some("open") => Ok(SignUp::Open),
            Some("closed") => Ok(SignUp::Closed),
            Some(other) => bail!("--sign-up: must be open, invite or closed, not {other:?}"),
        }
    }

    fn http(&self, listen: SocketAddr) -> anyhow::Result<EdgeSettings> {
        let default = EdgeSettings::default();
        let limit = |name, text: &Option<String>, default: usize| {
            let default = u32::try_from(default).unwrap_or(MAX);
            let limit = number(name, text.as_deref(), default, 0..=MAX)?;
            Ok::<_, anyhow::Error>(usize::try_from(limit).unwrap_or(usize::MAX))
        };
        let streams = default.max_streams;
        let max_streams = Limit {
            user: limit("--max-streams-per-user", &self.max_streams_per_user, streams.user)?,
            organization: limit(
                "--max-streams-per-organization",
                &self.max_streams_per_organization,
                streams.organization,
            )?,
            address: limit(
                "--max-streams-per-address",
                &self.max_streams_per_address,
                streams.address,
            )?,
        };
        let connections = self.max_connections.as_deref();
        let life = self.max_stream_secs.as_deref();
        let life = number("--max-stream-secs", life, 3600, 1..=24 * 60 * 60)?;
        Ok(EdgeSettings {
            hosts: self.hosts(listen)?,
            trusted_proxies: self.trusted_proxies()?,
            max_connections: number(
                "--max-connections",
                connections,
                default.max_connections,
                16..=1_000_000,
            )?,
            max_connections_per_address: limit(
                "--max-connections-per-address",
                &self.max_connections_per_address,
                default.max_connections_per_address,
            )?,
            requests_per_second: self.requests_per_second(&default)?,
            max_streams,
            stream_life: Duration::from_secs(life),
            limit_loopback: boolean("--limit-loopback", self.limit_loopback.as_deref(), false)?,
            ..default
        })
    }

    fn requests_per_second(&self, default: &EdgeSettings) -> anyhow::Result<Limit<u32>> {
        let rate =
            |name, text: &Option<String>, default| number(name, text.as_deref(), default, 0..=MAX);
        let default = default.requests_per_second;
        Ok(Limit {
            user: rate("--user-requests-per-sec", &self.user_requests_per_sec, default.user)?,
            organization: rate(
                "--organization-requests-per-sec",
                &self.organization_requests_per_sec,
                default.organization,
            )?,
            address: rate(
                "--address-requests-per-sec",
                &self.address_requests_per_sec,
                default.address,
            )?,
        })
    }

    fn hosts(&self, listen: SocketAddr) -> anyhow::Result<AllowedHosts> {
        let mut hosts = AllowedHosts::listening_on(listen.ip());
        for text in list(self.allowed_host.as_deref()) {
            if !hosts.allow(text) {
                bail!(
                    "--allowed-host: {text:?} is not a host, such as paddock.example, *.example.com or *"
                );
            }
        }
        if let Some(url) = self.public_url.as_deref() {
            let host = url.parse::<reqwest::Url>().ok();
            let host = host.and_then(|url| url.host_str().map(str::to_owned));
            let host = host.context("--public-url: is not a URL with a host")?;
            if !hosts.allow(&host) {
                bail!("--public-url: its host {host:?} is not valid");
            }
        }
        Ok(hosts)
    }

    fn trusted_proxies(&self) -> anyhow::Result<Vec<Network>> {
        let networks = list(self.trusted_proxy.as_deref()).map(|text| {
            text.parse::<Network>()
                .map_err(|why| anyhow::anyhow!("--trusted-proxy: {text:?} {why}"))
        });
        networks.collect()
    }
}

/// Elements of a comma-separated list.
fn list(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_up_is_open_by_default_only_on_loopback() {
        for (listen, given, expected) in [
            ("127.0.0.1:1", None, SignUp::Open),
            ("[::1]:1", None, SignUp::Open),
            ("0.0.0.0:1", None, SignUp::Invite),
            ("192.0.2.1:1", None, SignUp::Invite),
            ("0.0.0.0:1", Some("open"), SignUp::Open),
            ("127.0.0.1:1", Some("closed"), SignUp::Closed),
            ("127.0.0.1:1", Some("invite"), SignUp::Invite),
        ] {
            let args = Args { sign_up: given.map(Into::into), ..Args::default() };
            let settings = args.edge(listen.parse().unwrap()).unwrap();
            assert_eq!(settings.sign_up, expected, "{listen} {given:?}");
        }
    }
}
