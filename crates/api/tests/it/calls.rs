//! Every endpoint with a valid body and the rule of each field.
//!
//! A new route without an entry here fails a test: the list is compared with the OpenAPI documents.

mod accounts;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use testing::Client;

use crate::bad_values::Rule;
use crate::world::Fixtures;

/// An endpoint.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// Path template, as in the OpenAPI document.
    pub(crate) template: String,
    /// Path with IDs of existing objects.
    pub(crate) path: String,
    /// A valid body; none if the endpoint takes none.
    pub(crate) body: Option<Value>,
    /// Fields of the body, by path.
    pub(crate) fields: Vec<(&'static str, Rule)>,
    /// Operation of the OpenAPI document.
    pub(crate) operation: Value,
}

impl Call {
    pub(crate) fn is_open(&self) -> bool {
        self.operation["security"] == json!([{}])
    }

    /// Whether the endpoint addresses a single object of an organization.
    pub(crate) fn is_single_object(&self) -> bool {
        ["{id}", "{reference}"].iter().any(|part| self.template.contains(part))
    }

    /// Whether the endpoint requires query parameters.
    pub(crate) fn needs_query(&self) -> bool {
        let parameters = self.operation["parameters"].as_array();
        let is_needed = |p: &Value| p["in"] == "query" && p["required"] == json!(true);
        parameters.is_some_and(|all| all.iter().any(is_needed))
    }

    pub(crate) fn is_platform(&self) -> bool {
        self.template.starts_with("/api/v1/")
    }

    /// Whether the endpoint belongs to the API of a kind.
    pub(crate) fn is_fleet(&self) -> bool {
        self.template.starts_with("/api/{api}")
    }

    /// Whether the endpoint only reads, by the action that it declares.
    pub(crate) fn is_read(&self) -> bool {
        let action = self.operation["x-paddock-access"]["action"].as_str();
        action.and_then(|action| action.split_once('.')).is_some_and(|(_, verb)| verb == "read")
    }

    /// Whether the endpoint is for agents only.
    pub(crate) fn is_for_agents(&self) -> bool {
        self.operation["security"] == json!([{"cluster_token": []}])
    }

    /// Whether the endpoint is for authenticated users.
    pub(crate) fn is_for_users(&self) -> bool {
        !self.is_open() && !self.is_for_agents()
    }

    /// Whether the endpoint is for the platform administrator only.
    pub(crate) fn is_for_admins(&self) -> bool {
        let action = self.operation["x-paddock-access"]["action"].as_str();
        action.is_some_and(|action| action.starts_with("platform."))
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.template)
    }

    /// Creates a request for this path, with the valid body if there is one.
    pub(crate) fn request(&self, client: &Client, path: &str) -> RequestBuilder {
        let request = client.request(&self.method, path);
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

type Entry = (&'static str, Value, Vec<(&'static str, Rule)>);

/// All endpoints except the fleet API, for these objects. Fails if the list and the documents
/// differ.
pub(crate) fn all(on: &Fixtures) -> Vec<Call> {
    let mut table: Vec<Entry> = kargo(on);
    table.extend(platform(on));
    checked(on, table, &documented(&["kargo", "platform"]))
}

/// All endpoints of the fleet API, for these objects. Their errors have another format.
pub(crate) fn fleet(on: &Fixtures) -> Vec<Call> {
    let none = [
        "GET /api/{api}",
        "GET /api/{api}/v1",
        "GET /api/{api}/v1/openapi",
        "GET /api/{api}/v1/errors",
        "GET /api/{api}/v1/errors/{id}",
        "GET /api/{api}/v1/status",
        "GET /api/{api}/v1/cloud_providers",
        "GET /api/{api}/v1/cloud_providers/{id}/regions",
        "GET /api/{api}/v1/instance_types/{cloud_provider}/{cloud_region}",
        "GET /api/{api}/v1/{plural}",
        "GET /api/{api}/v1/{plural}/{id}",
        "DELETE /api/{api}/v1/{plural}/{id}",
        "GET /api/{api}/v1/{plural}/{id}/metrics/query",
        "GET /api/{api}/v1/{plural}/{id}/metrics/query_range",
        "GET /api/{api}/v1/{plural}/{id}/metrics/federate",
        "GET /api/{api}/v1/agent-clusters/{id}",
        "GET /api/{api}/v1/agent-clusters/{id}/{plural}",
        "GET /api/{api}/v1/admin/{plural}",
        "GET /api/{api}/v1/admin/{plural}/{id}",
        "DELETE /api/{api}/v1/admin/{plural}/{id}",
        "GET /api/{api}/v1/service_accounts",
        "GET /api/{api}/v1/service_accounts/{id}",
        "DELETE /api/{api}/v1/service_accounts/{id}",
        "POST /api/{api}/v1/service_accounts/{id}/reset_credentials",
        "POST /api/{api}/v1/obs-proxy-verification/{external_id}",
        "GET /api/{api}/v1/sso_providers",
        "GET /api/{api}/v1/clusters",
        "GET /api/{api}/v1/clusters/{id}",
        "DELETE /api/{api}/v1/clusters/{id}",
        "GET /api/{api}/v1/clusters/{id}/addon_parameters",
    ];
    let mut table: Vec<Entry> = none.map(|name| (name, Value::Null, vec![])).into();
    let empty = [
        "PUT /api/{api}/v1/agent-clusters/{id}/status",
        "PUT /api/{api}/v1/agent-clusters/{id}/{plural}/status",
        "PATCH /api/{api}/v1/admin/{plural}/{id}",
        "POST /api/{api}/v1/admin/{plural}/{id}/revoke_tls_certificate",
        "POST /api/{api}/v1/clusters",
        "POST /auth/realms/paddock/protocol/openid-connect/token",
    ];
    table.extend(empty.map(|name| (name, json!({}), vec![])));
    table.extend([
        ("POST /api/{api}/v1/service_accounts", json!({"name": "robot"}), vec![]),
        ("POST /api/{api}/v1/{plural}", json!({"name": "new"}), vec![]),
        ("PATCH /api/{api}/v1/{plural}/{id}", json!({"reauthentication_enabled": false}), vec![]),
        (
            "POST /api/{api}/v1/{plural}/{id}/promote",
            json!({"desired_kafka_billing_model": "standard"}),
            vec![],
        ),
    ]);
    checked(on, table, &documented(&["fleet"]))
}

fn checked(on: &Fixtures, table: Vec<Entry>, documented: &[(String, Value)]) -> Vec<Call> {
    let known: Vec<&str> = table.iter().map(|(name, ..)| *name).collect();
    for (name, _) in documented {
        assert!(
            known.contains(&name.as_str()),
            "{name} is a new route: add it to tests/it/calls.rs"
        );
    }
    let calls = table.into_iter().map(|(name, body, fields)| {
        let found = documented.iter().find(|(documented, _)| documented == name);
        let (_, operation) = found.unwrap_or_else(|| panic!("{name} is in no document"));
        let (method, template) = name.split_once(' ').unwrap();
        let path = fill(template, on);
        let body = (!body.is_null()).then_some(body);
        let content = &operation["requestBody"]["content"];
        let structured = ["application/json", "application/x-www-form-urlencoded"];
        let is_structured = structured.iter().any(|media_type| content[media_type].is_object());
        assert_eq!(body.is_some(), is_structured, "{name}");
        let (method, template) = (method.to_owned(), template.to_owned());
        Call { method, template, path, body, fields, operation: operation.clone() }
    });
    calls.collect()
}

/// Operations of these documents.
fn documented(names: &[&str]) -> Vec<(String, Value)> {
    let mut operations = Vec::new();
    for (_, document) in api::documents().into_iter().filter(|(name, _)| names.contains(name)) {
        let document = serde_json::to_value(document).unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                operations.push((format!("{} {path}", method.to_uppercase()), operation.clone()));
            }
        }
    }
    operations
}

/// Fills a path template with the IDs of these objects.
pub(crate) fn fill(template: &str, on: &Fixtures) -> String {
    let names = [
        ("{api}", "kafkas_mgmt"),
        ("{cloud_provider}", "aws"),
        ("{cloud_region}", "us-east-1"),
        ("{system}", "registry"),
    ];
    let template =
        names.iter().fold(template.to_owned(), |t, (name, value)| t.replace(name, value));
    let template = template.replace("{plural}", "kafkas");
    let template = template.replace("{reference}", &on.template).replace("{name}", "base");
    let template = template.replace("{external_id}", "00000000-0000-4000-8000-000000000000");
    let template = template.as_str();
    let (parent, _) = template.split_once("/{id}").unwrap_or((template, ""));
    let id = match parent.rsplit('/').next().unwrap() {
        "organizations" => &on.organization,
        "users" => &on.user,
        "invites" => &on.invite,
        "tokens" => &on.token,
        "cluster" | "clusters" | "agent-clusters" => &on.cluster,
        "deployment" | "deployments" => &on.deployment,
        "instances" | "kafkas" => &on.instance,
        "environment" | "environments" => &on.environment,
        "resources" => &on.resource,
        "errors" => return template.replace("{id}", "7"),
        "cloud_providers" => return template.replace("{id}", "aws"),
        "service_accounts" => &on.service_account,
        _ => return template.to_owned(),
    };
    template.replace("{id}", id)
}

fn kargo(on: &Fixtures) -> Vec<Entry> {
    use Rule::*;
    let user = json!({"username": "new", "password": "secret", "display_name": "New"});
    let amounts = || json!({"resource": {"cpu": 1}});
    let amount_fields = || vec![("resource", Amounts)];
    vec![
        (
            "PUT /user/create/",
            json!({"user": user, "organization": {"name": "new"}}),
            vec![
                ("user", Object),
                ("user.username", Name(64)),
                ("user.password", Password),
                ("user.display_name", OptionalName(200)),
                ("organization", Object),
                ("organization.name", Name(100)),
            ],
        ),
        ("POST /user/login/", json!({"username": "nobody", "password": "x"}), credentials()),
        ("GET /user/", Value::Null, vec![]),
        ("GET /organization/", Value::Null, vec![]),
        (
            "PATCH /organization/invite/",
            json!({"expires_in": 60, "code": on.code}),
            vec![("expires_in", Whole(1, 2_592_000)), ("role", OneOf), ("code", Text)],
        ),
        ("GET /organization/invite/", Value::Null, vec![]),
        (
            "POST /organization/invite/",
            json!({"username": "new", "password": "x", "display_name": "New", "code": on.code}),
            redemption(),
        ),
        ("GET /cluster/", Value::Null, vec![]),
        (
            "PUT /cluster/",
            json!({"cluster_name": "new", "resource": {"cpu": 1}}),
            vec![("cluster_name", Name(100)), ("resource", Amounts)],
        ),
        ("GET /cluster/{id}/", Value::Null, vec![]),
        ("DELETE /cluster/{id}/", Value::Null, vec![]),
        ("PATCH /cluster/{id}/resource/", amounts(), amount_fields()),
        ("POST /cluster/{id}/resource/", amounts(), amount_fields()),
        ("DELETE /cluster/{id}/resource/", amounts(), amount_fields()),
        ("GET /deployment/", Value::Null, vec![]),
        (
            "PUT /deployment/",
            json!({"cluster_id": on.cluster, "resource": {"cpu": 1}, "image": "web:1"}),
            deployment_fields("resource")
                .into_iter()
                .filter(|(field, _)| !ONLY_PLATFORM.contains(field))
                .chain([("cluster_id", KargoId), ("docker_path", Image)])
                .collect(),
        ),
        ("DELETE /deployment/", Value::Null, vec![]),
        ("DELETE /deployment/{id}/", Value::Null, vec![]),
    ]
}

fn credentials() -> Vec<(&'static str, Rule)> {
    vec![("username", Rule::Text), ("password", Rule::Text)]
}

fn redemption() -> Vec<(&'static str, Rule)> {
    use Rule::*;
    let display_name = ("display_name", OptionalName(200));
    vec![("code", Text), ("username", Name(64)), ("password", Password), display_name]
}

/// Deployment fields that the Kargo API lacks.
const ONLY_PLATFORM: &[&str] = &["labels", "restart", "run_for", "node_selector", "anti_affinity"];

fn deployment_fields(resources: &'static str) -> Vec<(&'static str, Rule)> {
    use Rule::*;
    vec![
        (resources, SomeAmounts),
        ("image", Image),
        ("name", OptionalName(100)),
        ("priority", Whole(-1_000_000, 1_000_000)),
        ("replicas", Whole(1, 1000)),
        ("env", Env),
        ("command", Words),
        ("ports", Ports),
        ("labels", Labels),
        ("restart", OneOf),
        ("run_for", Whole(1, 4_294_967_295)),
        ("node_selector", Labels),
        ("anti_affinity", YesOrNo),
    ]
}

fn platform(on: &Fixtures) -> Vec<Entry> {
    let mut table = accounts::entries(on);
    table.extend(clusters_and_deployments(on));
    table.extend(agents());
    table.extend(instances(on));
    table.extend(environments(on));
    table.push((
        "PUT /api/v1/credentials/{system}/{name}",
        json!({"username": "ci", "secret": "s3cret"}),
        vec![("username", Rule::Text), ("secret", Rule::Text)],
    ));
    let none = [
        "POST /api/v1/logout",
        "GET /api/v1/credentials",
        "DELETE /api/v1/credentials/{system}/{name}",
        "GET /api/v1/organizations",
        "GET /api/v1/organizations/{id}",
        "DELETE /api/v1/organizations/{id}",
        "POST /api/v1/users/{id}/password-reset",
        "GET /api/v1/tokens",
        "GET /api/v1/tokens/{id}",
        "DELETE /api/v1/tokens/{id}",
        "GET /api/v1/users",
        "GET /api/v1/users/{id}",
        "DELETE /api/v1/users/{id}",
        "GET /api/v1/invites",
        "GET /api/v1/invites/{id}",
        "DELETE /api/v1/invites/{id}",
        "GET /api/v1/clusters",
        "GET /api/v1/clusters/{id}",
        "DELETE /api/v1/clusters/{id}",
        "POST /api/v1/clusters/{id}/drain",
        "DELETE /api/v1/clusters/{id}/drain",
        "POST /api/v1/clusters/{id}/retry",
        "POST /api/v1/clusters/{id}/cancel",
        "GET /api/v1/clusters/{id}/logs",
        "GET /api/v1/deployments",
        "GET /api/v1/deployments/{id}",
        "DELETE /api/v1/deployments/{id}",
        "GET /api/v1/deployments/{id}/history",
        "GET /api/v1/deployments/{id}/explain",
        "GET /api/v1/deployments/{id}/logs",
        "GET /api/v1/queue",
        "GET /api/v1/instances",
        "GET /api/v1/instances/{id}",
        "DELETE /api/v1/instances/{id}",
        "GET /api/v1/kinds",
        "GET /api/v1/images",
        "POST /api/v1/images",
        "DELETE /api/v1/images",
        "GET /api/v1/templates",
        "GET /api/v1/templates/{reference}",
        "DELETE /api/v1/templates/{reference}",
        "GET /api/v1/templates/{reference}/source",
        "GET /api/v1/templates/{reference}/diff",
        "GET /api/v1/templates/{reference}/impact",
        "DELETE /api/v1/templates/{reference}/deprecate",
        "GET /api/v1/environments",
        "GET /api/v1/environments/{id}",
        "DELETE /api/v1/environments/{id}",
        "POST /api/v1/environments/{id}/retry",
        "POST /api/v1/environments/{id}/cancel",
        "POST /api/v1/environments/{id}/observe",
        "GET /api/v1/environments/{id}/drift",
        "GET /api/v1/environments/{id}/resources/{name}",
        "GET /api/v1/environments/{id}/resources/{name}/logs",
        "GET /api/v1/environment",
        "GET /api/v1/environment/{id}",
        "DELETE /api/v1/environment/{id}",
        "GET /api/v1/resources",
        "GET /api/v1/resources/{id}",
        "GET /api/v1/executors",
        "GET /api/v1/organizations/{id}/quotas",
        "GET /api/v1/quota",
        "GET /api/v1/admin/quota",
        "DELETE /api/v1/admin/quota/{id}",
        "GET /api/v1/admin/denied-owners",
        "DELETE /api/v1/admin/denied-owners/{id}",
        "GET /api/v1/fleet/scaling",
        "GET /api/v1/admin/encryption",
        "GET /api/v1/agent/desired",
        "GET /api/v1/agent/logs",
        "GET /api/v1/events",
        "GET /api/v1/self/info",
        "GET /api/v1/self/liveliness",
        "GET /api/v1/self/readiness",
        "GET /api/v1/self/started",
        "GET /api/v1/self/ping",
        "GET /api/v1/search",
        "GET /api/v1/graph",
    ];
    table.extend(none.map(|name| (name, Value::Null, vec![])));
    table
}

fn instances(on: &Fixtures) -> Vec<Entry> {
    use Rule::*;
    vec![
        (
            "POST /api/v1/instances",
            json!({"kind": "kafka", "name": "new"}),
            vec![
                ("kind", OneOf),
                ("name", InstanceName),
                ("plan", OneOf),
                ("cloud_provider", OneOf),
                ("region", OneOf),
                ("billing_model", OneOf),
                ("marketplace", Text),
                ("billing_cloud_account_id", Text),
                ("cluster_id", Text),
                ("reauthentication", YesOrNo),
            ],
        ),
        (
            "PATCH /api/v1/instances/{id}",
            json!({"reauthentication": true}),
            vec![("owner", Name(64)), ("reauthentication", YesOrNo)],
        ),
        (
            "POST /api/v1/admin/quota",
            json!({"organization_id": on.organization, "instance_type": "standard"}),
            vec![
                ("organization_id", OneOf),
                ("username", Text),
                ("kind", OneOf),
                ("instance_type", OneOf),
                ("billing_model", OneOf),
                ("limit", Whole(0, 1_000_000)),
                ("expires_at", Time),
            ],
        ),
        (
            "POST /api/v1/admin/denied-owners",
            json!({"owner": "nobody", "reason": "none"}),
            vec![("owner", Name(255)), ("reason", OptionalName(500))],
        ),
        (
            "POST /api/v1/admin/encryption/rekey",
            json!({"prepare": false}),
            vec![("prepare", YesOrNo)],
        ),
    ]
}

fn agents() -> Vec<Entry> {
    use Rule::*;
    vec![
        ("POST /api/v1/agent/reports", json!({"reports": []}), vec![("reports", Reports)]),
        (
            "POST /api/v1/agent/logs",
            json!({"id": 1, "lines": [], "end": true}),
            vec![("id", Whole(0, 4_294_967_295)), ("lines", LogLines), ("end", YesOrNo)],
        ),
        (
            "POST /api/v1/agent/heartbeat",
            json!({"version": "1", "runtime": "simulated"}),
            vec![
                ("version", Name(100)),
                ("runtime", Name(100)),
                ("capacity", Amounts),
                ("nodes", Nodes),
            ],
        ),
    ]
}

fn environments(on: &Fixtures) -> Vec<Entry> {
    use Rule::*;
    let spec = || json!({"name": "new", "templates": [on.template]});
    let change_fields = || {
        vec![
            ("templates", References),
            ("parameters", Object),
            ("tags", Labels),
            ("description", OptionalName(1000)),
            ("destroy_at", Time),
            ("ttl", Life),
            ("on_drift", OneOf),
            ("adopt", Object),
            ("plan_hash", Text),
        ]
    };
    let spec_fields = || [vec![("name", Label)], change_fields()].concat();
    vec![
        (
            "POST /api/v1/templates",
            json!({"name": "new", "version": "1", "description": "New"}),
            vec![("tags", Object), ("parameters", Object)],
        ),
        (
            "POST /api/v1/templates/{reference}/deprecate",
            json!({"why": "Superseded."}),
            vec![("why", Name(500))],
        ),
        ("POST /api/v1/environments", spec(), spec_fields()),
        ("POST /api/v1/environments/plan", spec(), spec_fields()),
        ("PUT /api/v1/environment", spec(), spec_fields()),
        (
            "PATCH /api/v1/environments/{id}",
            json!({"description": "New"}),
            vec![("description", OptionalName(1000)), ("tags", Labels), ("on_drift", OneOf)],
        ),
        (
            "POST /api/v1/environments/{id}/plan",
            json!({"parameters": {}}),
            vec![("templates", References), ("parameters", Object), ("destroy", YesOrNo)],
        ),
        ("POST /api/v1/environments/{id}/apply", json!({"parameters": {}}), change_fields()),
        ("POST /api/v1/environments/{id}/extend", json!({"ttl": "1h"}), vec![("ttl", Life)]),
        (
            "POST /api/v1/environments/{id}/repair",
            json!({"resources": ["base"]}),
            vec![("resources", Words)],
        ),
        (
            "POST /api/v1/environments/{id}/resources/{name}/adopt",
            json!({"what": "something"}),
            vec![("what", Name(1024))],
        ),
    ]
}

fn clusters_and_deployments(on: &Fixtures) -> Vec<Entry> {
    use Rule::*;
    let amounts = || json!({"resources": {"cpu": 1}});
    let amount_fields = || vec![("resources", Amounts)];
    vec![
        (
            "POST /api/v1/clusters",
            json!({"name": "new", "capacity": {"cpu": 1}}),
            vec![
                ("name", Name(100)),
                ("provider", OneOf),
                ("capacity", Amounts),
                ("nodes", Nodes),
                ("labels", Labels),
                ("cloud_provider", Name(63)),
                ("region", Name(63)),
            ],
        ),
        (
            "PATCH /api/v1/clusters/{id}",
            json!({"name": "new"}),
            vec![("name", Name(100)), ("labels", Labels), ("capacity", Amounts), ("nodes", Nodes)],
        ),
        (
            "POST /api/v1/clusters/{id}/token",
            json!({"overlap_secs": 60}),
            vec![("overlap_secs", Whole(0, 604_800))],
        ),
        ("POST /api/v1/clusters/{id}/capacity/check", amounts(), amount_fields()),
        ("POST /api/v1/clusters/{id}/capacity/take", amounts(), amount_fields()),
        ("POST /api/v1/clusters/{id}/capacity/give-back", amounts(), amount_fields()),
        (
            "POST /api/v1/deployments",
            json!({"cluster_id": on.cluster, "resources": {"cpu": 1}, "image": "web:1"}),
            deployment_fields("resources").into_iter().chain([("cluster_id", Text)]).collect(),
        ),
        (
            "PATCH /api/v1/deployments/{id}",
            json!({"priority": 1}),
            vec![
                ("name", Name(100)),
                ("priority", Whole(-1_000_000, 1_000_000)),
                ("labels", Labels),
                ("replicas", Whole(1, 1000)),
            ],
        ),
    ]
}
