//! Stored objects of any kind, their versions and their history.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::apply::Owners;

/// Key of an object: group and plural, namespace (empty if cluster-scoped), name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A change, as reported to watches.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) what: &'static str,
    pub(super) key: Key,
    pub(super) object: Value,
}

#[derive(Default)]
pub(super) struct Objects {
    all: BTreeMap<Key, Value>,
    owners: BTreeMap<Key, Owners>,
    version: u64,
    history: Vec<Change>,
    /// Changes up to this version are dropped.
    compacted: u64,
}

impl Objects {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(super) fn compact(&mut self) {
        // As if time had passed: the newest version is too old, as well.
        self.version += 1;
        self.compacted = self.version;
        self.history.clear();
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.all.get(key)
    }

    pub(super) fn owners(&self, key: &Key) -> Owners {
        self.owners.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn set_owners(&mut self, key: &Key, owners: Owners) {
        self.owners.insert(key.clone(), owners);
    }

    /// The objects of one collection.
    pub(super) fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<&Value> {
        let of = |key: &&Key| {
            key.group == group
                && key.plural == plural
                && namespace.is_none_or(|namespace| key.namespace == namespace)
        };
        self.all.iter().filter(|(key, _)| of(key)).map(|(_, object)| object).collect()
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.all.keys().cloned().collect()
    }

    /// Changes after a version.
    pub(super) fn since(&self, version: u64) -> Vec<Change> {
        self.history.iter().filter(|change| change.version > version).cloned().collect()
    }

    /// Stores an object with server-set metadata. Without a change, nothing happens.
    pub(super) fn put(&mut self, key: &Key, mut object: Value) -> Value {
        let before = self.all.get(key).cloned();
        let uid = format!("{:08x}-0000-4000-8000-000000000000", self.version + 1);
        let meta = &mut object["metadata"];
        meta["name"] = json!(key.name);
        if !key.namespace.is_empty() {
            meta["namespace"] = json!(key.namespace);
        }
        let old = |field: &str| before.as_ref().map(|old| old["metadata"][field].clone());
        meta["uid"] = old("uid").unwrap_or_else(|| json!(uid));
        meta["creationTimestamp"] =
            old("creationTimestamp").unwrap_or_else(|| json!("2025-01-01T00:00:00Z"));
        if let Some(version) = old("resourceVersion") {
            meta["resourceVersion"] = version;
        }
        let generation = before.as_ref().and_then(|old| old["metadata"]["generation"].as_i64());
        let is_same_spec = before.as_ref().is_some_and(|old| old["spec"] == object["spec"]);
        let generation = generation.unwrap_or(0) + i64::from(!is_same_spec);
        object["metadata"]["generation"] = json!(generation);
        if before.as_ref() == Some(&object) {
            return object;
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let what = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.all.insert(key.clone(), object.clone());
        self.record(what, key, &object);
        object
    }

    /// Deletes an object and, optionally, its dependents.
    pub(super) fn remove(&mut self, key: &Key, with_owned: bool) -> Option<Value> {
        let mut object = self.all.remove(key)?;
        self.owners.remove(key);
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.record("DELETED", key, &object);
        let uid = object["metadata"]["uid"].clone();
        let is_owned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
        };
        if with_owned {
            let owned = self.all.iter().filter(|(_, object)| is_owned(object));
            let owned: Vec<Key> = owned.map(|(key, _)| key.clone()).collect();
            for key in owned {
                self.remove(&key, true);
            }
        }
        Some(object)
    }

    fn record(&mut self, what: &'static str, key: &Key, object: &Value) {
        let (version, key, object) = (self.version, key.clone(), object.clone());
        self.history.push(Change { version, what, key, object });
    }
}
