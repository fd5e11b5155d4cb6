//! Parses `WWW-Authenticate`. Pure.

/// What a registry demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password.
    Basic,
    /// A token from a token service.
    Bearer {
        /// URL of the token service.
        realm: String,
        /// Name by which the token service knows the registry.
        service: Option<String>,
    },
}

impl Challenge {
    /// Parses the value of a header; none if it demands something else.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters_of(parameters);
        let value = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        Some(Self::Bearer { realm: value("realm")?, service: value("service") })
    }
}

/// Parses `key="value",key=value`.
fn parameters_of(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some((key, rest)) = text.split_once('=') {
        let key = key.trim_matches([' ', ',']).to_owned();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        found.push((key, value.trim().to_owned()));
        text = rest;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.into(), service: service.map(str::to_owned) })
        };
        for (header, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/token\",service=\"a\",scope=\"repository:x:pull,push\"",
                bearer("https://a/token", Some("a")),
            ),
            ("bearer service=a, realm=https://a/token", bearer("https://a/token", Some("a"))),
            ("Bearer realm=\"https://a", bearer("https://a", None)),
            ("Bearer service=\"a\"", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }
}
