//! `--node`: a node of a cluster, such as `name=a,cpu=4,ram=8Gi,label.zone=x`.

use std::collections::BTreeMap;

use serde::Serialize;

/// A node of a new cluster. Quantities are sent unparsed; the server validates them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Node {
    name: String,
    capacity: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

/// Parses a node.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut node = Node::default();
    for part in text.split(',') {
        let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
        let (key, value) = pair.ok_or_else(|| {
            format!("{part:?} is not KEY=VALUE; use for example name=a,cpu=4,ram=8Gi,label.zone=x")
        })?;
        let is_new = match (key, key.strip_prefix("label.")) {
            ("name", _) => std::mem::replace(&mut node.name, value.into()).is_empty(),
            (_, Some(label)) => node.labels.insert(label.into(), value.into()).is_none(),
            (kind, None) => node.capacity.insert(kind.into(), value.into()).is_none(),
        };
        if !is_new {
            return Err(format!("{key} is given twice"));
        }
    }
    if node.name.is_empty() {
        return Err("no name; add name=NAME".into());
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn node_is_parsed_into_name_capacity_and_labels() {
        for (text, want) in [
            (
                "name=a,cpu=4,ram=8Gi,label.zone=x=1,gpu=1",
                json!({ "name": "a", "capacity": { "cpu": "4", "gpu": "1", "ram": "8Gi" },
                        "labels": { "zone": "x=1" } }),
            ),
            ("cpu=500m,name=b", json!({ "name": "b", "capacity": { "cpu": "500m" } })),
            // The server rejects empty capacity.
            ("name=c", json!({ "name": "c", "capacity": {} })),
        ] {
            assert_eq!(json!(parse(text).unwrap()), want, "{text}");
        }
    }

    #[test]
    fn invalid_nodes_are_rejected() {
        for (text, part) in [
            ("", "is not KEY=VALUE"),
            ("a", "\"a\" is not KEY=VALUE"),
            ("name=a,cpu", "\"cpu\" is not KEY=VALUE"),
            ("name=a,,cpu=1", "\"\" is not KEY=VALUE"),
            ("cpu=4", "no name"),
            ("name=", "is not KEY=VALUE"),
            ("name=a,name=b", "name is given twice"),
            ("name=a,cpu=1,cpu=2", "cpu is given twice"),
            ("name=a,label.z=1,label.z=2", "label.z is given twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
