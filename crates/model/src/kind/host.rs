//! Host names of instances.

use super::Kind;

/// The number of characters of an instance's name in its host name.
const NAME_PART: usize = 10;

impl Kind {
    /// The first label of an instance's host: the start of its name, and its full id, which makes
    /// the label unique.
    pub fn host_label(&self, name: &str, id: &str) -> String {
        let clean = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let start: String = name.chars().take(NAME_PART).map(clean).collect();
        let start = start.trim_start_matches(|c: char| !c.is_ascii_lowercase());
        let start = if start.is_empty() { "a" } else { start };
        format!("{start}-{}", id.to_ascii_lowercase())
    }

    /// The domain of hosts: from the settings, or the kind's default.
    pub fn base_domain<'a>(&'a self, from_settings: Option<&'a str>) -> &'a str {
        from_settings.unwrap_or(&self.needs.domain)
    }

    /// The host of an instance.
    pub fn host(&self, name: &str, id: &str, domain: &str) -> String {
        format!("{}.{domain}", self.host_label(name, id))
    }

    /// All DNS names of an instance with this host.
    pub fn routes(&self, host: &str) -> Vec<String> {
        self.needs.dns.iter().map(|prefix| route(prefix, host)).collect()
    }
}

/// The DNS name of a route, which agents report by prefix.
pub(crate) fn route(prefix: &str, host: &str) -> String {
    if prefix.is_empty() { host.to_owned() } else { format!("{prefix}-{host}") }
}
