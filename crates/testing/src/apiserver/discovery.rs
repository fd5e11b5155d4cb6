//! Discovery documents.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kind::Kind;

/// `/version`
pub(super) fn version() -> Value {
    json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "0", "gitTreeState": "clean",
        "buildDate": "2025-01-01T00:00:00Z", "goVersion": "go1.24", "compiler": "gc", "platform": "linux/amd64"})
}

/// `/api`
pub(super) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`
pub(super) fn groups(kinds: &[Kind]) -> Value {
    let names: BTreeSet<_> =
        kinds.iter().map(|kind| &kind.group).filter(|g| !g.is_empty()).collect();
    let groups: Vec<Value> = names.into_iter().filter_map(|name| group(kinds, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/apps`
pub(super) fn group(kinds: &[Kind], name: &str) -> Option<Value> {
    let versions: BTreeSet<_> =
        kinds.iter().filter(|kind| kind.group == name).map(|kind| &kind.version).collect();
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions,
        "preferredVersion": preferred}))
}

/// `/apis/apps/v1`
pub(super) fn resources(kinds: &[Kind], group: &str, version: &str) -> Option<Value> {
    let of = |kind: &&Kind| kind.group == group && kind.version == version;
    let found: Vec<Value> = kinds.iter().filter(of).flat_map(resource).collect();
    let group_version =
        if group.is_empty() { version.into() } else { format!("{group}/{version}") };
    (!found.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found})
    })
}

fn resource(kind: &Kind) -> [Value; 2] {
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let singular = kind.kind.to_lowercase();
    let of = |name: String, verbs: &[&str]| {
        json!({"name": name, "singularName": singular, "namespaced": kind.is_namespaced,
            "kind": kind.kind, "verbs": verbs})
    };
    [
        of(kind.plural.clone(), &verbs),
        of(format!("{}/status", kind.plural), &["get", "patch", "update"]),
    ]
}
