//! Host names of instances.

use super::Kind;

/// How much of an instance's name is in its host name.
const NAME_PART: usize = 10;

impl Kind {
    /// The first label of an instance's host: the beginning of its name, and its id.
    ///
    /// The whole id is in it, at the end: no two instances have the same label.
    pub fn host_label(&self, name: &str, id: &str) -> String {
        let clean = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let start: String = name.chars().take(NAME_PART).map(clean).collect();
        let start = start.trim_start_matches(|c: char| !c.is_ascii_lowercase());
        let start = if start.is_empty() { "a" } else { start };
        format!("{start}-{}", id.to_ascii_lowercase())
    }

    /// The domain that hosts are in: the one of the settings, or the kind's own.
    pub fn base_domain<'a>(&'a self, of_settings: Option<&'a str>) -> &'a str {
        of_settings.unwrap_or(&self.needs.domain)
    }

    /// An instance's host.
    pub fn host(&self, name: &str, id: &str, domain: &str) -> String {
        format!("{}.{domain}", self.host_label(name, id))
    }

    /// All DNS names of the instance with this host.
    pub fn routes(&self, host: &str) -> Vec<String> {
        self.needs.dns.iter().map(|prefix| route(prefix, host)).collect()
    }
}

/// The name of one route of a host, as agents report them by prefix.
pub(crate) fn route(prefix: &str, host: &str) -> String {
    if prefix.is_empty() { host.to_owned() } else { format!("{prefix}-{host}") }
}
