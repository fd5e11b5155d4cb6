//! An instance as administrators see it.

use model::instance;
use model::kind::{Kind, Words};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::fleet::object::Instance;
use crate::fleet::wire::Origin;

/// An instance as its users see it, and also: `organisation_id`, `owner_account_id`, `quota_type`,
/// `cluster_id`, `namespace`, `size_id`, `routes` (`domain` and `router`), `routes_created`; and for each
/// part with a version, in the kind's words, `desired_…_version`, `actual_…_version` and `…_upgrading`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdminInstance {
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl AdminInstance {
    pub(crate) fn new(kind: &Kind, origin: &Origin, of: instance::Instance) -> Self {
        let more = more(kind, &of);
        let users = serde_json::to_value(Instance::new(kind, origin, of));
        let Value::Object(mut fields) = users.expect("an instance is plain data") else {
            unreachable!("an instance is an object")
        };
        fields.extend(more);
        // What is not known is left out.
        fields.retain(|name, value| name == "status_reason" || !value.is_null() && value != "");
        Self { fields }
    }
}

fn more(kind: &Kind, of: &instance::Instance) -> Map<String, Value> {
    let (detail, words) = (&of.detail, &kind.words);
    let own = || of.organization_id.to_string();
    let mut more = Map::new();
    let mut put = |name: String, value: Value| more.insert(name, value);
    put("organisation_id".into(), json!(detail.foreign_organization.clone().unwrap_or_else(own)));
    put("owner_account_id".into(), json!(detail.owner_account));
    put("quota_type".into(), json!("quota-management-list"));
    put("cluster_id".into(), json!(of.cluster_id));
    put("namespace".into(), json!(of.namespace()));
    put("size_id".into(), json!(of.size));
    put("routes".into(), json!(detail.routes));
    put("routes_created".into(), json!(detail.routes_made));
    let parts = [
        ("operator", Some(&words.operator), &detail.desired.operator, &detail.actual.operator),
        ("service", Some(&words.version), &detail.desired.service, &detail.actual.service),
        ("protocol", words.ibp.as_ref(), &detail.desired.protocol, &detail.actual.protocol),
    ];
    for (part, word, desired, actual) in parts {
        let Some(word) = word.map(|word| Words::snake(word)) else { continue };
        put(format!("desired_{word}_version"), json!(desired));
        put(format!("actual_{word}_version"), json!(actual));
        put(format!("{word}_upgrading"), json!(detail.upgrading.iter().any(|one| one == part)));
    }
    more
}
