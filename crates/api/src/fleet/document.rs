//! OpenAPI document of one kind's API: the common document with the kind's names.

use std::sync::OnceLock;

use axum::Json as Answer;
use model::kind::{Kind, LimitValue, Shown};
use serde_json::{Map, Value, json};

use super::Error;
use super::error::ApiPath;
use super::tenant::ApiKind;

/// Returns the OpenAPI document of this API.
#[utoipa::path(get, path = "/api/{api}/v1/openapi", tag = "API", params(ApiPath), security(()),
    responses((status = 200, body = Value, description = "OpenAPI document"), Error))]
pub(crate) async fn openapi_get(ApiKind(kind): ApiKind) -> Answer<Value> {
    static FAMILY: OnceLock<Value> = OnceLock::new();
    let family = FAMILY.get_or_init(|| {
        let document = crate::fleet_family().split_for_parts().1;
        serde_json::to_value(document).expect("documents are plain data")
    });
    Answer(for_kind(family, &kind))
}

fn for_kind(family: &Value, kind: &Kind) -> Value {
    let mut document = family.clone();
    document["info"]["title"] = json!(kind.display_name);
    let paths = family["paths"].as_object().cloned().unwrap_or_default();
    let offered = paths.into_iter().filter(|(path, _)| is_offered(path, kind));
    let named = offered.map(|(path, item)| {
        let path = path.replace("{api}", &kind.api).replace("{plural}", &kind.plural);
        (path, without_names(item))
    });
    document["paths"] = Value::Object(named.collect());
    let kind_properties = own_properties(kind);
    if let Some(properties) =
        document["components"]["schemas"]["Instance"]["properties"].as_object_mut()
    {
        properties.extend(kind_properties);
    }
    document
}

fn is_offered(path: &str, kind: &Kind) -> bool {
    let offers = &kind.offers;
    let is_available = |word: &str, is_offered: bool| is_offered || !path.contains(word);
    is_available("/promote", offers.promotion)
        && is_available("/instance_types/", offers.instance_types)
        && is_available("/service_accounts", offers.service_accounts)
        && is_available("/v1/clusters", offers.enterprise_clusters)
        && is_available("/metrics/", offers.metrics)
        && is_available("/v1/status", offers.status)
}

/// Removes the parameters that the kind's names replace.
fn without_names(mut item: Value) -> Value {
    for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters
                .retain(|parameter| parameter["name"] != "api" && parameter["name"] != "plural");
        }
    }
    item
}

/// Properties that only instances of this kind have.
fn own_properties(kind: &Kind) -> Map<String, Value> {
    let mut kind_properties = Map::new();
    let host = json!({"type": "string", "description": "DNS name."});
    kind_properties.insert(kind.words.host.clone(), host);
    let sizes = kind.types.iter().flat_map(|instance_type| &instance_type.sizes);
    for limit in sizes.flat_map(|size| &size.limits) {
        let shape = match (limit.shown, &limit.value) {
            (Shown::Hidden, _) => continue,
            (Shown::Bytes, _) => {
                json!({"type": "object", "properties": {"bytes": {"type": "integer"}}})
            }
            (_, LimitValue::Number(_)) => json!({"type": "integer"}),
            _ => json!({"type": "string"}),
        };
        kind_properties.insert(limit.name.clone(), shape);
    }
    kind_properties
}
