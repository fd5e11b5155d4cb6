//! Allowed values of the `Host` header: a page of another site cannot call this server under its own
//! name (DNS rebinding).

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version, header};

use crate::Problem;

/// Endpoints for load balancers and orchestrators, which call the server by any name. They reveal
/// nothing but health.
const PROBES: [&str; 4] = [
    "/api/v1/self/liveliness",
    "/api/v1/self/readiness",
    "/api/v1/self/started",
    "/api/v1/self/ping",
];
/// Maximum length of a host in an error.
const MAX_SHOWN: usize = 64;

/// Hosts under which the server may be called. Loopback addresses and `localhost` are always
/// allowed; ports are ignored.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    /// Listen address. An unspecified one allows every address, but no name.
    listen: Option<IpAddr>,
    /// Names and addresses, in lower case.
    names: Vec<String>,
    /// Parents of allowed names, each with a leading dot.
    parents: Vec<String>,
    /// Whether every host is allowed.
    any: bool,
}

impl AllowedHosts {
    /// Allows the address that the server listens on.
    pub fn listening_on(listen: IpAddr) -> Self {
        Self { listen: Some(listen), ..Self::default() }
    }

    /// Allows another host: a name, an address, `*.parent` for every name below it, or `*`. Returns
    /// false if the text is none of these.
    #[must_use]
    pub fn allow(&mut self, text: &str) -> bool {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            self.any = true;
            return true;
        }
        let (name, is_parent) = match text.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (text.as_str(), false),
        };
        let Some(name) = host_of(name).filter(|name| !name.is_empty()) else { return false };
        if is_parent {
            self.parents.push(format!(".{name}"));
        } else {
            self.names.push(name);
        }
        true
    }

    /// Whether the server may be called under this host, which may have a port.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let Some(host) = host_of(host) else { return false };
        if let Ok(address) = host.parse::<IpAddr>() {
            let is_listening = match self.listen {
                Some(listen) => listen.is_unspecified() || listen == address,
                None => false,
            };
            let is_loopback = address.to_canonical().is_loopback();
            return self.any || is_loopback || is_listening || self.names.contains(&host);
        }
        let is_local = host == "localhost" || host.ends_with(".localhost");
        let is_child = self.parents.iter().any(|parent| host.ends_with(parent.as_str()));
        self.any || is_local || is_child || self.names.contains(&host)
    }

    /// Rejects a request for another host.
    pub(super) fn check(&self, request: &Request) -> Result<(), Problem> {
        if PROBES.contains(&request.uri().path()) {
            return Ok(());
        }
        let headers = request.headers();
        let mut hosts: Vec<&str> = Vec::new();
        for value in headers.get_all(header::HOST) {
            hosts.push(value.to_str().unwrap_or_default());
        }
        if hosts.len() > 1 {
            let detail = "The request has several Host headers; send one.";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        hosts.extend(request.uri().authority().map(Authority::as_str));
        if hosts.is_empty() && request.version() == Version::HTTP_11 {
            let detail = "The request has no Host header; send one.";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        match hosts.into_iter().find(|host| !self.allows(host)) {
            None => Ok(()),
            Some(host) => Err(refused(host)),
        }
    }
}

fn refused(host: &str) -> Problem {
    let shown: String = host.chars().take(MAX_SHOWN).collect();
    let detail = format!(
        "The host {shown:?} is not allowed. Call the server by its listen address, localhost or the host \
         of --public-url, or add the host to the server's setting --allowed-host."
    );
    Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)
}

/// Host without its port, in lower case, without the brackets of an IPv6 address.
fn host_of(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let is_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_number);
        return (is_port && address.parse::<IpAddr>().is_ok()).then(|| address.to_owned());
    }
    if text.parse::<IpAddr>().is_ok() {
        return Some(text);
    }
    let host = match text.rsplit_once(':') {
        Some((host, port)) if is_number(port) => host,
        Some(_) => return None,
        None => &text,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    host.chars().all(is_name).then(|| host.to_owned())
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str, more: &[&str]) -> AllowedHosts {
        let mut hosts = AllowedHosts::listening_on(listen.parse().unwrap());
        assert!(more.iter().all(|text| hosts.allow(text)), "{more:?}");
        hosts
    }

    #[test]
    fn only_own_hosts_are_allowed() {
        let local = hosts("127.0.0.1", &[]);
        let public = hosts("0.0.0.0", &["Paddock.Example", "*.apps.example", "[2001:db8::1]"]);
        for (host, is_local, is_public) in [
            ("127.0.0.1:8001", true, true),
            ("127.9.9.9", true, true),
            ("[::1]:8001", true, true),
            ("localhost", true, true),
            ("LOCALHOST.:80", true, true),
            ("paddock.localhost", true, true),
            ("192.0.2.7:8001", false, true),
            ("[2001:db8::2]:1", false, true),
            ("paddock.example:443", false, true),
            ("a.apps.example", false, true),
            ("apps.example", false, false),
            ("evil.example", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("localhost.evil.example", false, false),
            ("localhost:80@evil.example", false, false),
            ("", false, false),
        ] {
            assert_eq!(local.allows(host), is_local, "{host}");
            assert_eq!(public.allows(host), is_public, "{host}");
        }
        assert!(hosts("127.0.0.1", &["*"]).allows("evil.example"));
    }

    #[test]
    fn invalid_host_cannot_be_allowed() {
        for text in ["", " ", "http://a.example", "a b", "a/b", "*.", "[::1", "a:b"] {
            assert!(!AllowedHosts::default().allow(text), "{text:?}");
        }
    }
}
