//! Names and numbers that differ between the APIs of kinds.

/// Names and numbers of a kind on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireNames {
    /// `kind` of an instance: `Postgres`.
    pub object: String,
    /// `kind` of a user's list: `PostgresRequestList`.
    pub list: String,
    /// `kind` of an administrator's list: `PostgresList`.
    pub admin_list: String,
    /// The field with the instance's host.
    pub host: String,
    /// The port appended to the host in that field.
    pub host_port: Option<u16>,
    /// `kind` of an instance in the API of third-party agents: `ManagedPostgres`.
    pub agent_object: String,
    /// `kind` of the list in the API of third-party agents: `ManagedPostgresList`.
    pub agent_list: String,
    /// The prefix of annotations and labels: `example.org` in `example.org/id`.
    pub agent_domain: String,
    /// The field of `spec.endpoint` with the host.
    pub agent_host: String,
    /// The agent's name for the operator's version and for the list of operators.
    pub operator: String,
    /// The agent's name for the service's version.
    pub version: String,
    /// The agent's name for the inter-broker protocol version, if the service has one.
    pub ibp: Option<String>,
    /// The status of a cluster whose agent has not reported ready yet.
    pub waiting: String,
    /// The prefix of administrator roles, followed by `-read`, `-write` or `-full`.
    pub admin_role: String,
    /// The maximum length of an instance's name, in characters.
    pub name_max: usize,
}

impl WireNames {
    /// The names derived from the kind's name.
    pub(super) fn defaults(name: &str) -> WireNames {
        let object = pascal(name);
        WireNames {
            list: format!("{object}RequestList"),
            admin_list: format!("{object}List"),
            host: "host".to_owned(),
            host_port: None,
            agent_object: format!("Managed{object}"),
            agent_list: format!("Managed{object}List"),
            agent_domain: "mas".to_owned(),
            agent_host: "host".to_owned(),
            operator: format!("{}Operator", camel(name)),
            version: camel(name),
            ibp: None,
            waiting: "waiting_for_fleetshard_operator".to_owned(),
            admin_role: "fleet-manager-admin".to_owned(),
            name_max: 32,
            object,
        }
    }

    /// The agent's field with the service versions of an operator: `postgresVersions`.
    pub fn versions(&self) -> String {
        format!("{}Versions", self.version)
    }

    /// The agent's field with the protocol versions of an operator, if the service has one.
    pub fn ibps(&self) -> Option<String> {
        self.ibp.as_ref().map(|word| format!("{word}Versions"))
    }

    /// The agent's condition reason while `word`'s version changes: `PostgresUpdating`.
    pub fn updating(&self, word: &str) -> String {
        format!("{}Updating", pascal(word))
    }

    /// Converts a name of the agents' API to that of the users' API: `bigCat` to `big_cat`.
    pub fn snake(word: &str) -> String {
        let mut snake = String::new();
        for c in word.chars() {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        }
        snake
    }
}

/// `big-cat` as `BigCat`.
fn pascal(name: &str) -> String {
    name.split(['-', '_']).map(capital).collect()
}

/// `big-cat` as `bigCat`.
fn camel(name: &str) -> String {
    let mut parts = name.split(['-', '_']);
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(capital).collect::<String>()
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_default_to_the_kind_name() {
        let words = WireNames::defaults("big-cat");
        assert_eq!(words.object, "BigCat");
        assert_eq!(words.list, "BigCatRequestList");
        assert_eq!(words.operator, "bigCatOperator");
        assert_eq!(words.versions(), "bigCatVersions");
        assert_eq!(words.updating(&words.operator), "BigCatOperatorUpdating");
        assert_eq!(WireNames::snake(&words.operator), "big_cat_operator");
    }
}
