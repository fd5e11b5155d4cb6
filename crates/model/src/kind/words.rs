//! What differs between the APIs of kinds and is only a name or a number.

/// Names and numbers of one kind on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// `kind` of an instance: `Postgres`.
    pub object: String,
    /// `kind` of a user's list: `PostgresRequestList`.
    pub list: String,
    /// `kind` of an administrator's list: `PostgresList`.
    pub admin_list: String,
    /// The field with the instance's host.
    pub host: String,
    /// What is added to the host in that field, after a colon.
    pub host_port: Option<u16>,
    /// `kind` of an instance in front of foreign agents: `ManagedPostgres`.
    pub agent_object: String,
    /// `kind` of their list: `ManagedPostgresList`.
    pub agent_list: String,
    /// The prefix of annotations and labels: `example.org` in `example.org/id`.
    pub agent_domain: String,
    /// The field of `spec.endpoint` with the host.
    pub agent_host: String,
    /// What an agent calls the operator's version, and its list of operators.
    pub operator: String,
    /// What an agent calls the service's version.
    pub version: String,
    /// What an agent calls the version of the service's inner protocol, if it has one.
    pub ibp: Option<String>,
    /// The status of a cluster whose agent has not yet said that it is ready.
    pub waiting: String,
    /// What an administrator's roles begin with; `-read`, `-write` and `-full` follow.
    pub admin_role: String,
    /// The longest name of an instance, in characters.
    pub name_max: usize,
}

impl Words {
    /// What they are for a kind that says nothing of its own.
    pub(super) fn of(name: &str) -> Words {
        let object = pascal(name);
        Words {
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

    /// The agent's list of service versions of an operator: `postgresVersions`.
    pub fn versions(&self) -> String {
        format!("{}Versions", self.version)
    }

    /// The agent's list of protocol versions of an operator, if there is such a thing.
    pub fn ibps(&self) -> Option<String> {
        self.ibp.as_ref().map(|word| format!("{word}Versions"))
    }

    /// The reason by which an agent says that it changes `word`'s version: `PostgresUpdating`.
    pub fn updating(&self, word: &str) -> String {
        format!("{}Updating", pascal(word))
    }

    /// A word of the agents' API as the users' API writes it: `bigCat` is `big_cat`.
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
    fn a_kind_that_says_nothing_gets_words_from_its_name() {
        let words = Words::of("big-cat");
        assert_eq!(words.object, "BigCat");
        assert_eq!(words.list, "BigCatRequestList");
        assert_eq!(words.operator, "bigCatOperator");
        assert_eq!(words.versions(), "bigCatVersions");
        assert_eq!(words.updating(&words.operator), "BigCatOperatorUpdating");
        assert_eq!(Words::snake(&words.operator), "big_cat_operator");
    }
}
