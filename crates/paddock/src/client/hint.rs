//! Suggested commands for errors and statuses. The server's messages name no commands, because they
//! are shared by all clients.

use super::error::Error;

/// Hint after a request exceeded a quota.
pub(crate) const QUOTA: &str = r#"run "paddock quota" to see your quota and usage"#;

/// Adds what to do if the server lets nobody create an organization.
pub(crate) fn for_sign_up(error: Error) -> Error {
    match error.status() {
        Some(403) => error.or_hint(
            r#"run "paddock org join CODE --username NAME" with an invite code, or "paddock login --username admin" first"#,
        ),
        _ => error,
    }
}

/// Hint after the server rejected a field of a request.
pub(crate) fn for_field(field: &str) -> Option<String> {
    let hint = match field {
        field if field.starts_with("templates[") => {
            r#"run "paddock template list" to see all templates"#
        }
        field if field.ends_with(".with.source") => {
            r#"publish the directory with its modules: run "paddock template publish DIR""#
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Hint for a failed deployment of an image.
pub(crate) fn for_deployment(id: &str, reason_code: &str, image: Option<&str>) -> String {
    let is_local = image.is_some_and(|image| image.starts_with("localhost/"));
    if reason_code == "ImagePullFailed" && is_local {
        let load = r#"load the image: run "paddock image load FILE""#;
        return format!(r#"{load}, or see the loaded ones with "paddock image list""#);
    }
    format!(r#"check the logs: run "paddock deployment logs {id}""#)
}

/// Hint for a cluster in this status.
pub(crate) fn for_cluster(id: &str, status: &str, provider: Option<&str>) -> Option<String> {
    match (status, provider) {
        ("failed", _) => Some(format!(r#"fix the cause, then run "paddock cluster retry {id}""#)),
        ("waiting_for_agent", Some("agent")) => Some(format!(
            r#"create a token with "paddock cluster token {id}" and start "paddock agent" with it"#
        )),
        ("unreachable", _) => Some(format!(
            r#"check that "paddock agent" is running; create a new token with "paddock cluster token {id}""#
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_a_command() {
        for (hint, command) in [
            (for_field("templates[0]"), "paddock template list"),
            (for_field("resources[2].with.source"), "paddock template publish DIR"),
            (
                Some(for_deployment("d1", "ImagePullFailed", Some("localhost/web:1"))),
                "paddock image load FILE",
            ),
            (Some(for_deployment("d1", "ImagePullFailed", Some("web:1"))), "deployment logs d1"),
            (Some(for_deployment("d1", "Exited", None)), "paddock deployment logs d1"),
            (for_cluster("c1", "failed", Some("terraform")), "paddock cluster retry c1"),
            (for_cluster("c1", "waiting_for_agent", Some("agent")), "paddock cluster token c1"),
            (for_cluster("c1", "unreachable", None), "paddock cluster token c1"),
        ] {
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(command)), "{hint:?}");
        }
        assert_eq!(for_field("name"), None);
        assert_eq!(for_cluster("c1", "ready", Some("agent")), None);
        assert_eq!(for_cluster("c1", "waiting_for_agent", Some("local")), None);
    }
}
