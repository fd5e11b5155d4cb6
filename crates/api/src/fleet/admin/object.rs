//! Instance object for administrators.

use model::instance;
use model::kind::{Kind, WireNames};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::fleet::object::Instance;
use crate::fleet::wire::Origin;

/// An instance with the fields that users see, and in addition: `organisation_id`,
/// `owner_account_id`, `quota_type`, `cluster_id`, `namespace`, `size_id`, `routes` (`domain` and
/// `router`), `routes_created`; and for each versioned component, under the kind's names,
/// `desired_…_version`, `actual_…_version` and `…_upgrading`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdminInstance {
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl AdminInstance {
    pub(crate) fn new(kind: &Kind, origin: &Origin, instance: instance::Instance) -> Self {
        let admin_fields = admin_fields(kind, &instance);
        let user_fields = serde_json::to_value(Instance::new(kind, origin, instance));
        let Value::Object(mut fields) = user_fields.expect("an instance is plain data") else {
            unreachable!("an instance is an object")
        };
        fields.extend(admin_fields);
        // Unknown values are omitted.
        fields.retain(|name, value| name == "status_reason" || !value.is_null() && value != "");
        Self { fields }
    }
}

fn admin_fields(kind: &Kind, instance: &instance::Instance) -> Map<String, Value> {
    let (detail, words) = (&instance.detail, &kind.words);
    let own = || instance.organization_id.to_string();
    let mut admin_fields = Map::new();
    let mut put = |name: String, value: Value| admin_fields.insert(name, value);
    put("organisation_id".into(), json!(detail.foreign_organization.clone().unwrap_or_else(own)));
    put("owner_account_id".into(), json!(detail.owner_account));
    put("quota_type".into(), json!("quota-management-list"));
    put("cluster_id".into(), json!(instance.cluster_id));
    put("namespace".into(), json!(instance.namespace()));
    put("size_id".into(), json!(instance.size));
    put("routes".into(), json!(detail.routes));
    put("routes_created".into(), json!(detail.routes_made));
    let parts = [
        ("operator", Some(&words.operator), &detail.desired.operator, &detail.actual.operator),
        ("service", Some(&words.version), &detail.desired.service, &detail.actual.service),
        ("protocol", words.ibp.as_ref(), &detail.desired.protocol, &detail.actual.protocol),
    ];
    for (part, word, desired, actual) in parts {
        let Some(word) = word.map(|word| WireNames::snake(word)) else { continue };
        put(format!("desired_{word}_version"), json!(desired));
        put(format!("actual_{word}_version"), json!(actual));
        put(
            format!("{word}_upgrading"),
            json!(detail.upgrading.iter().any(|component| component == part)),
        );
    }
    admin_fields
}
