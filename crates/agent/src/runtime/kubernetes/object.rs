//! Objects of any kind: found by discovery, applied, removed.

use kube::Api;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Kubernetes;
use super::fault::Refusal;
use super::names::MANAGER;
use super::seen::At;
use crate::Error;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    /// None for what belongs to the whole cluster.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl Place {
    /// One whose kind everybody knows.
    pub(super) fn known(
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

    /// Its kind, in watches.
    pub(super) fn shelf(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    pub(super) fn at(&self) -> At {
        (self.shelf(), self.namespace.clone().unwrap_or_default(), self.name.clone())
    }

    /// For sentences.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

impl Kubernetes {
    /// Where objects like this are, as the apiserver says; `home` is for those that name no namespace.
    pub(super) async fn place(&self, object: &Value, home: &str) -> Result<Place, Error> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let what = format!("find the kind {kind} of {group}/{version}");
        let found = self.connection.call(&what, |client| {
            let wanted = wanted.clone();
            async move { discovery::pinned_kind(&client, &wanted).await }
        });
        let (resource, capabilities) = match found.await {
            Ok(found) => found,
            Err(refusal) if refusal.code == 404 => {
                return Err(Error::Unavailable(format!(
                    "The Kubernetes does not know the kind {kind} of {group}/{version}: install what \
                     brings it."
                )));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let namespace = text("/metadata/namespace");
        let namespace = if namespace.is_empty() { home } else { namespace };
        let namespace = (capabilities.scope == Scope::Namespaced).then(|| namespace.to_owned());
        let (group, version, kind, plural) =
            (resource.group, resource.version, resource.kind, resource.plural);
        Ok(Place { group, version, kind, plural, namespace, name: name.to_owned() })
    }

    /// Has an object be so, whatever others have made of it.
    pub(super) async fn apply(
        &self,
        place: &Place,
        object: &Value,
    ) -> Result<DynamicObject, Refusal> {
        let params = PatchParams::apply(MANAGER).force();
        let what = format!("apply the {}", place.words());
        let apply = |client: Client| {
            let (api, params) = (place.api(client), &params);
            async move { api.patch(&place.name, params, &Patch::Apply(object)).await }
        };
        self.connection.call(&what, apply).await
    }

    pub(super) async fn get(&self, place: &Place) -> Result<Option<DynamicObject>, Refusal> {
        let what = format!("read the {}", place.words());
        let get = |client: Client| {
            let api = place.api(client);
            async move { api.get_opt(&place.name).await }
        };
        self.connection.call(&what, get).await
    }

    /// Has an object be removed, after all that it owns; it may take a while. What owns nothing goes at
    /// once.
    pub(super) async fn delete(&self, place: &Place) -> Result<(), Refusal> {
        let what = format!("remove the {}", place.words());
        let params = match place.group.as_str() {
            "" => DeleteParams::default(),
            _ => DeleteParams::foreground(),
        };
        let delete = |client: Client| {
            let (api, params) = (place.api(client), &params);
            async move { api.delete(&place.name, params).await }
        };
        match self.connection.call(&what, delete).await {
            Err(refusal) if refusal.code != 404 => Err(refusal),
            _ => Ok(()),
        }
    }
}
