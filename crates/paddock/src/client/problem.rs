//! The server's problem documents (RFC 9457), put in the words of the command line. The APIs of kinds of
//! service say no in another form, with a code and a reason; both are read alike.

use serde::Deserialize;

/// What the server says when it says no.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    errors: Vec<Field>,
    /// What the APIs of kinds say instead of a title and a detail.
    #[serde(default)]
    reason: String,
    /// Are its fields those of a document that the user wrote, and not of flags?
    #[serde(skip)]
    pub(crate) is_of_document: bool,
    #[serde(default, alias = "operation_id")]
    pub(crate) request_id: Option<String>,
}

/// One field of the request that is at fault.
#[derive(Debug, Deserialize)]
struct Field {
    #[serde(default)]
    field: String,
    #[serde(default)]
    detail: String,
}

impl Problem {
    /// Reads an answer. Whatever stands between us and the server may answer in its own way,
    /// so anything else than a problem document becomes one that names the status.
    pub(crate) fn read(status: reqwest::StatusCode, body: &str) -> Self {
        let mut problem: Self = serde_json::from_str(body).unwrap_or_default();
        if problem.detail.is_empty() {
            problem.detail = std::mem::take(&mut problem.reason);
        }
        if problem.title.is_empty() && problem.detail.is_empty() {
            problem.title = format!("the server answered {status}");
        }
        problem
    }

    /// Whether this field of the request is at fault.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        self.errors.iter().any(|one| one.field == field)
    }

    /// The fields of the request that are at fault.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|one| one.field.as_str())
    }

    /// All of it in one line, with the flags of the command line instead of fields.
    pub(crate) fn sentence(&self) -> String {
        let main = if self.detail.is_empty() { &self.title } else { &self.detail };
        let sentence = |field: &Field| field.sentence(self.is_of_document);
        let fields = self.errors.iter().map(sentence).collect::<Vec<_>>().join("; ");
        match self.errors.as_slice() {
            [] => main.clone(),
            // The sentence says what the field says, but in the words of the request.
            [field] if main.contains(&field.detail) => fields,
            _ => format!("{main} ({fields})"),
        }
    }
}

impl Field {
    fn sentence(&self, is_of_document: bool) -> String {
        let field = if is_of_document { self.field.clone() } else { flag(&self.field) };
        format!("{field}: {}", self.detail)
    }
}

/// What the user typed to set a field of the request.
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
        ("name" | "password" | "command" | "code" | "image" | "owner", _) => format!("the {head}"),
        (head, _) if head.starts_with("ports") => "--port".into(),
        (head, _) if head.starts_with("templates") => "--template".into(),
        (head, "") if head.starts_with("nodes") => "--node".into(),
        (head, rest) if head.starts_with("nodes") => {
            format!("--node, its {}", rest.replace('.', " "))
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
    fn fields_are_named_as_they_were_typed() {
        for (field, typed) in [
            ("owner.username", "--username"),
            ("kubernetes.namespace", "--namespace"),
            ("kubernetes.quota.cpu", "--quota"),
            ("terraform", "--module"),
            ("user.password", "the password"),
            ("capacity.cpu", "--cpu"),
            ("resources.ram", "--ram"),
            ("resources.gpu", "--resource gpu"),
            ("resources", "--cpu, --ram, --resource"),
            ("/capacity/ram", "--ram"),
            ("labels.team", "--label team"),
            ("env", "--env"),
            ("ports[0]", "--port"),
            ("ports.0", "--port"),
            ("name", "the name"),
            ("expires_in", "--expires-in"),
            ("cluster_id", "--cluster"),
            ("image", "the image"),
            ("run_for", "--run-for"),
            ("node_selector", "--on-label"),
            ("node_selector.zone", "--on-label zone"),
            ("nodes", "--node"),
            ("nodes[1].capacity.cpu", "--node, its capacity cpu"),
            ("owner", "the owner"),
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
            assert_eq!(flag(field), typed, "{field}");
        }
    }

    #[test]
    fn fields_of_a_document_keep_their_names() {
        let body = r#"{"detail":"It can't be taken.","errors":[{"field":"parameters.size","detail":"no type"}]}"#;
        let mut problem = Problem::read(reqwest::StatusCode::BAD_REQUEST, body);
        assert_eq!(problem.sentence(), "It can't be taken. (--set size: no type)");
        problem.is_of_document = true;
        assert_eq!(problem.sentence(), "It can't be taken. (parameters.size: no type)");
    }

    #[test]
    fn any_answer_becomes_one_sentence() {
        let bad_gateway = reqwest::StatusCode::BAD_GATEWAY;
        for (body, sentence) in [
            (r#"{"title":"Not Found","detail":"no such cluster"}"#, "no such cluster"),
            (r#"{"title":"Not Found"}"#, "Not Found"),
            (
                r#"{"detail":"fix this","errors":[{"field":"capacity.cpu","detail":"must be more than 0"},{"field":"name","detail":"too long"}]}"#,
                "fix this (--cpu: must be more than 0; the name: too long)",
            ),
            (
                r#"{"detail":"capacity.cpu: no number.","errors":[{"field":"capacity.cpu","detail":"no number"}]}"#,
                "--cpu: no number",
            ),
            (r#"{"kind":"Error","code":"X-MGMT-7","reason":"no such x"}"#, "no such x"),
            ("<html>", "the server answered 502 Bad Gateway"),
            ("", "the server answered 502 Bad Gateway"),
            ("[]", "the server answered 502 Bad Gateway"),
        ] {
            assert_eq!(Problem::read(bad_gateway, body).sentence(), sentence, "{body}");
        }
    }
}
