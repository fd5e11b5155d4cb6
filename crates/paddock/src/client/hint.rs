//! Commands that help on from an error or a status. The server's messages name none: it does not know
//! what its clients call their commands.

/// What to run after the server refused this field of a request.
pub(crate) fn of_field(field: &str) -> Option<String> {
    let hint = match field {
        field if field.starts_with("templates[") => {
            r#""paddock template list" shows all templates"#
        }
        field if field.ends_with(".with.source") => {
            r#"publish the folder with its modules: "paddock template publish DIR""#
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What to run for a cluster in this status.
pub(crate) fn of_cluster(id: &str, status: &str, provider: Option<&str>) -> Option<String> {
    match (status, provider) {
        ("failed", _) => Some(format!(r#"fix the cause, then run "paddock cluster retry {id}""#)),
        ("waiting_for_agent", Some("agent")) => Some(format!(
            r#"create a token with "paddock cluster token {id}" and start "paddock agent" with it"#
        )),
        ("unreachable", _) => Some(format!(
            r#"check that "paddock agent" runs there; "paddock cluster token {id}" prints another token"#
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_command_that_helps() {
        for (hint, command) in [
            (of_field("templates[0]"), "paddock template list"),
            (of_field("resources[2].with.source"), "paddock template publish DIR"),
            (of_cluster("c1", "failed", Some("terraform")), "paddock cluster retry c1"),
            (of_cluster("c1", "waiting_for_agent", Some("agent")), "paddock cluster token c1"),
            (of_cluster("c1", "unreachable", None), "paddock cluster token c1"),
        ] {
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(command)), "{hint:?}");
        }
        assert_eq!(of_field("name"), None);
        assert_eq!(of_cluster("c1", "ready", Some("agent")), None);
        assert_eq!(of_cluster("c1", "waiting_for_agent", Some("local")), None);
    }
}
