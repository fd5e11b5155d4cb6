//! Objects of any kind: discovery, apply, delete.

use std::fmt;

use kube::Api;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Kubernetes;
use super::cache::ObjectKey;
use super::fault::Refusal;
use super::names::MANAGER;
use crate::Error;

/// Reference to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectRef {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    /// None for cluster-scoped objects.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl ObjectRef {
    /// Reference to a namespaced object of a well-known kind.
    pub(super) fn new(
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self { group, version, kind, plural, namespace: Some(namespace.into()), name: name.into() }
    }

    pub(super) fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    pub(super) fn api(&self, client: Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource()),
            None => Api::all_with(client, &self.resource()),
        }
    }

    /// Resource name, such as `deployments.apps`.
    pub(super) fn resource_name(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    pub(super) fn key(&self) -> ObjectKey {
        (self.resource_name(), self.namespace.clone().unwrap_or_default(), self.name.clone())
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Kubernetes {
    /// Resolves the reference of an object by discovery.
    pub(super) async fn resolve(
        &self,
        object: &Value,
        default_namespace: &str,
    ) -> Result<ObjectRef, Error> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let what = format!("discover kind {kind} of {group}/{version}");
        let found = self.connection.call(&what, |client| {
            let gvk = gvk.clone();
            async move { discovery::pinned_kind(&client, &gvk).await }
        });
        let (resource, capabilities) = match found.await {
            Ok(found) => found,
            Err(refusal) if refusal.code == 404 => {
                return Err(Error::Unavailable(format!(
                    "Kubernetes has no kind {kind} of {group}/{version}: install its operator or CRD."
                )));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let namespace = text("/metadata/namespace");
        let namespace = if namespace.is_empty() { default_namespace } else { namespace };
        let namespace = (capabilities.scope == Scope::Namespaced).then(|| namespace.to_owned());
        let (group, version, kind, plural) =
            (resource.group, resource.version, resource.kind, resource.plural);
        Ok(ObjectRef { group, version, kind, plural, namespace, name: name.to_owned() })
    }

    /// Applies an object, overriding other field managers.
    pub(super) async fn apply(
        &self,
        object_ref: &ObjectRef,
        object: &Value,
    ) -> Result<DynamicObject, Refusal> {
        let params = PatchParams::apply(MANAGER).force();
        let what = format!("apply {object_ref}");
        let apply = |client: Client| {
            let (api, params) = (object_ref.api(client), &params);
            async move { api.patch(&object_ref.name, params, &Patch::Apply(object)).await }
        };
        self.connection.call(&what, apply).await
    }

    pub(super) async fn get(
        &self,
        object_ref: &ObjectRef,
    ) -> Result<Option<DynamicObject>, Refusal> {
        let what = format!("read {object_ref}");
        let get = |client: Client| {
            let api = object_ref.api(client);
            async move { api.get_opt(&object_ref.name).await }
        };
        self.connection.call(&what, get).await
    }

    /// Deletes an object, after its dependents, which may take a while. Objects of the core group
    /// have none and are deleted at once.
    pub(super) async fn delete(&self, object_ref: &ObjectRef) -> Result<(), Refusal> {
        let what = format!("delete {object_ref}");
        let params = match object_ref.group.as_str() {
            "" => DeleteParams::default(),
            _ => DeleteParams::foreground(),
        };
        let delete = |client: Client| {
            let (api, params) = (object_ref.api(client), &params);
            async move { api.delete(&object_ref.name, params).await }
        };
        match self.connection.call(&what, delete).await {
            Err(refusal) if refusal.code != 404 => Err(refusal),
            _ => Ok(()),
        }
    }
}
