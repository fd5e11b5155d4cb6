//! Templates in a kind's strings: `{{ names }}` are replaced for each instance.

use crate::Secret;

/// The values for an instance's templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// The instance's id.
    pub id: String,
    /// The instance's name.
    pub name: String,
    /// The instance's namespace.
    pub namespace: String,
    /// The instance's host.
    pub host: String,
    /// The service's version.
    pub version: String,
    /// The id of the size.
    pub size: String,
    /// The owner's user name.
    pub owner: String,
    /// The organization.
    pub organization: String,
    /// The SSO client, if any.
    pub sso: Option<Sso>,
}

/// An SSO client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sso {
    /// The client's id.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
}

/// The name whose value must not appear in process lists.
pub(super) const SECRET: &str = "sso.client_secret";

/// All names.
pub(super) const NAMES: [&str; 10] = [
    "id",
    "name",
    "namespace",
    "host",
    "version",
    "size",
    "owner",
    "organization",
    "sso.client_id",
    SECRET,
];

impl Values {
    fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "id" => &self.id,
            "name" => &self.name,
            "namespace" => &self.namespace,
            "host" => &self.host,
            "version" => &self.version,
            "size" => &self.size,
            "owner" => &self.owner,
            "organization" => &self.organization,
            "sso.client_id" => self.sso.as_ref().map_or("", |sso| &sso.client_id),
            SECRET => self.sso.as_ref().map_or("", |sso| sso.client_secret.reveal()),
            _ => return None,
        })
    }
}

/// Renders a template. Inserted values are not interpreted as templates.
pub fn fill(template: &str, values: &Values) -> String {
    let mut filled = String::new();
    for part in parts(template) {
        match part {
            Part::Text(text) => filled += text,
            Part::Name(name) => filled += values.get(name).unwrap_or_default(),
            Part::Open => filled += "{{",
        }
    }
    filled
}

/// Does a template contain a secret?
pub fn is_secret(template: &str) -> bool {
    parts(template).any(|part| matches!(part, Part::Name(SECRET)))
}

/// The names in a template, or an error.
pub(super) fn names(template: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    for part in parts(template) {
        match part {
            Part::Text(_) => {}
            Part::Name(name) if NAMES.contains(&name) => names.push(name),
            Part::Name(name) => {
                let name = name.escape_default();
                return Err(format!(
                    "unknown name {{{{ {name} }}}}; expected one of {}",
                    NAMES.join(", ")
                ));
            }
            Part::Open => return Err("unclosed {{".to_owned()),
        }
    }
    Ok(names)
}

enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
    /// An unclosed `{{`.
    Open,
}

fn parts(template: &str) -> impl Iterator<Item = Part<'_>> {
    let mut chunks = template.split("{{");
    let first = chunks.next().map(Part::Text);
    first.into_iter().chain(chunks.flat_map(|chunk| match chunk.split_once("}}") {
        Some((name, text)) => [Part::Name(name.trim()), Part::Text(text)],
        None => [Part::Open, Part::Text(chunk)],
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn values() -> Values {
        Values {
            id: "cv0000000000000000g0".to_owned(),
            name: "orders".to_owned(),
            namespace: "kind-cv0".to_owned(),
            host: "orders-cv0.example.org".to_owned(),
            version: "1.2.3".to_owned(),
            size: "x1".to_owned(),
            owner: "ann".to_owned(),
            organization: "acme".to_owned(),
            sso: Some(Sso { client_id: "c".to_owned(), client_secret: Secret::new("s3cret") }),
        }
    }

    #[test]
    fn names_are_replaced() {
        for (template, filled) in [
            ("", ""),
            ("plain", "plain"),
            ("{{ id }}", "cv0000000000000000g0"),
            ("{{id}}", "cv0000000000000000g0"),
            ("a-{{ size }}-{{ owner }}.", "a-x1-ann."),
            ("{{ sso.client_id }}:{{ sso.client_secret }}", "c:s3cret"),
            ("{ not } }} a {name}", "{ not } }} a {name}"),
        ] {
            assert_eq!(fill(template, &values()), filled, "{template}");
            assert!(names(template).is_ok());
        }
    }

    #[test]
    fn inserted_values_are_not_interpreted() {
        let values = Values { owner: "{{ sso.client_secret }}".to_owned(), ..values() };
        assert_eq!(fill("{{ owner }}", &values), "{{ sso.client_secret }}");
    }

    #[test]
    fn unknown_names_are_rejected() {
        for bad in ["{{ ids }}", "{{ }}", "{{ id", "{{ a {{ id }}", "{{ Id }}"] {
            assert!(names(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        assert!(!format!("{:?}", values()).contains("s3cret"));
    }

    proptest! {
        #[test]
        fn no_input_panics_and_text_without_braces_is_unchanged(text: String) {
            let filled = fill(&text, &values());
            if !text.contains("{{") {
                prop_assert_eq!(filled, text);
            }
        }
    }
}
