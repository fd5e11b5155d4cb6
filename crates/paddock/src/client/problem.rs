//! The server's problem documents (RFC 9457), with request fields translated to flags. The error
//! format of service kinds, with a code and a reason, is read as well.

use serde::Deserialize;

/// Error document of the server.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    errors: Vec<Field>,
    /// The exceeded quota of the organization.
    #[serde(default)]
    pub(crate) quota: Option<wire::quota::QuotaExceeded>,
    /// Used by the APIs of service kinds instead of title and detail.
    #[serde(default)]
    reason: String,
    /// Whether the fields are those of a document written by the user, not of flags.
    #[serde(skip)]
    pub(crate) is_in_document: bool,
    #[serde(default, alias = "operation_id")]
    pub(crate) request_id: Option<String>,
}

/// An invalid field of the request.
#[derive(Debug, Deserialize)]
struct Field {
    #[serde(default)]
    field: String,
    #[serde(default)]
    detail: String,
}

impl Problem {
    /// Parses an error response. A response that is not a problem document, for example from a
    /// proxy, becomes one that names the status.
    pub(crate) fn read(status: reqwest::StatusCode, body: &str) -> Self {
        let mut problem: Self = serde_json::from_str(body).unwrap_or_default();
        if problem.detail.is_empty() {
            problem.detail = std::mem::take(&mut problem.reason);
        }
        if problem.title.is_empty() && problem.detail.is_empty() {
            problem.title = format!("server responded with {status}");
        }
        problem
    }

    /// Whether this field of the request is invalid.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        self.fields().any(|invalid| invalid == field)
    }

    /// Invalid fields of the request.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|error| error.field.as_str())
    }

    /// Message on one line, with flags instead of request fields.
    pub(crate) fn message(&self) -> String {
        let main = if self.detail.is_empty() { &self.title } else { &self.detail };
        let message = |field: &Field| field.message(self.is_in_document);
        let fields = self.errors.iter().map(message).collect::<Vec<_>>().join("; ");
        match self.errors.as_slice() {
            [] => main.clone(),
            // The detail repeats the field's error, but names the request field.
            [field] if main.contains(&field.detail) => fields,
            _ => format!("{main} ({fields})"),
        }
    }
}

impl Field {
    fn message(&self, is_in_document: bool) -> String {
        let field = if is_in_document { self.field.clone() } else { flag(&self.field) };
        format!("{field}: {}", self.detail)
    }
}

/// Command-line flag or argument of a request field.
fn flag(field: &str) -> String {
    let field = field.trim_start_matches('/').replace('/', ".");
    let (head, rest) = field.split_once('.').unwrap_or((&field, ""));
    match (head, rest) {
        ("owner" | "user", rest) if !rest.is_empty() => flag(rest),
        ("capacity" | "resources", "cpu") => "--cpu".into(),
        ("capacity" | "resources", "ram") => "--ram".into(),
        ("capacity" | "resources", "") => "--cpu, --ram, --resource".into(),
        ("capacity" | "resources", kind) => format!("--resource {kind}"),
        ("labels", "") => "--label".into(),
        ("labels", key) => format!("--label {key}"),
        ("env", "") => "--env".into(),
        ("env", key) => format!("--env {key}"),
        ("tags", "") => "--tag".into(),
        ("tags", key) => format!("--tag {key}"),
        ("parameters", "") => "--set, --parameters".into(),
        ("parameters", name) => format!("--set {name}"),
        ("adopt", "") => "--adopt".into(),
        ("adopt", resource) => format!("--adopt {resource}"),
        ("plan_hash", _) => "--plan".into(),
        ("cluster_id", _) => "--cluster".into(),
        ("kubernetes", "") => "--kubeconfig".into(),
        ("terraform", "") => "--module".into(),
        ("kubernetes" | "terraform", field) => {
            let field = field.split('.').next().unwrap_or(field);
            format!("--{}", field.replace('_', "-"))
        }
        ("billing_cloud_account_id", _) => "--billing-account".into(),
        ("organization_id", _) => "--org".into(),
        ("instance_type", _) => "--type".into(),
        ("node_selector", "") => "--on-label".into(),
        ("node_selector", key) => format!("--on-label {key}"),
        ("anti_affinity", _) => "--spread".into(),
        (head, _) if head.starts_with("ports") => "--port".into(),
        (head, _) if head.starts_with("templates") => "--template".into(),
        (head, "") if head.starts_with("nodes") => "--node".into(),
        (head, rest) if head.starts_with("nodes") => {
            format!("--node ({})", rest.replace('.', " "))
        }
        (
            "username" | "display_name" | "expires_in" | "priority" | "replicas" | "provider"
            | "cloud_provider" | "region" | "status" | "kind" | "subject" | "type" | "since"
            | "limit" | "restart" | "run_for" | "replica" | "tail" | "plan" | "billing_model"
            | "marketplace" | "reauthentication" | "expires_at" | "reason" | "description" | "ttl"
            | "destroy_at" | "on_drift" | "why" | "commit" | "shared",
            _,
        ) => format!("--{}", head.replace('_', "-")),
        _ => field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_translated_to_flags() {
        for (field, want) in [
            ("owner.username", "--username"),
            ("kubernetes.namespace", "--namespace"),
            ("kubernetes.quota.cpu", "--quota"),
            ("terraform", "--module"),
            ("user.password", "password"),
            ("capacity.cpu", "--cpu"),
            ("resources.ram", "--ram"),
            ("resources.gpu", "--resource gpu"),
            ("resources", "--cpu, --ram, --resource"),
            ("/capacity/ram", "--ram"),
            ("labels.team", "--label team"),
            ("env", "--env"),
            ("ports[0]", "--port"),
            ("ports.0", "--port"),
            ("name", "name"),
            ("expires_in", "--expires-in"),
            ("cluster_id", "--cluster"),
            ("image", "image"),
            ("run_for", "--run-for"),
            ("node_selector", "--on-label"),
            ("node_selector.zone", "--on-label zone"),
            ("nodes", "--node"),
            ("nodes[1].capacity.cpu", "--node (capacity cpu)"),
            ("owner", "owner"),
            ("plan", "--plan"),
            ("billing_model", "--billing-model"),
            ("billing_cloud_account_id", "--billing-account"),
            ("instance_type", "--type"),
            ("organization_id", "--org"),
            ("templates[1]", "--template"),
            ("parameters.replicas", "--set replicas"),
            ("tags.team", "--tag team"),
            ("adopt.web", "--adopt web"),
            ("destroy_at", "--destroy-at"),
            ("plan_hash", "--plan"),
            ("something.new", "something.new"),
            ("", ""),
        ] {
            assert_eq!(flag(field), want, "{field}");
        }
    }

    #[test]
    fn fields_of_a_document_keep_their_names() {
        let body = r#"{"detail":"Invalid request.","errors":[{"field":"parameters.size","detail":"no type"}]}"#;
        let mut problem = Problem::read(reqwest::StatusCode::BAD_REQUEST, body);
        assert_eq!(problem.message(), "Invalid request. (--set size: no type)");
        problem.is_in_document = true;
        assert_eq!(problem.message(), "Invalid request. (parameters.size: no type)");
    }

    #[test]
    fn any_error_response_has_a_message() {
        let bad_gateway = reqwest::StatusCode::BAD_GATEWAY;
        for (body, message) in [
            (r#"{"title":"Not Found","detail":"no such cluster"}"#, "no such cluster"),
            (r#"{"title":"Not Found"}"#, "Not Found"),
            (
                r#"{"detail":"fix this","errors":[{"field":"capacity.cpu","detail":"must be more than 0"},{"field":"name","detail":"too long"}]}"#,
                "fix this (--cpu: must be more than 0; name: too long)",
            ),
            (
                r#"{"detail":"capacity.cpu: no number.","errors":[{"field":"capacity.cpu","detail":"no number"}]}"#,
                "--cpu: no number",
            ),
            (r#"{"kind":"Error","code":"X-MGMT-7","reason":"no such x"}"#, "no such x"),
            ("<html>", "server responded with 502 Bad Gateway"),
            ("", "server responded with 502 Bad Gateway"),
            ("[]", "server responded with 502 Bad Gateway"),
        ] {
            assert_eq!(Problem::read(bad_gateway, body).message(), message, "{body}");
        }
    }
}
