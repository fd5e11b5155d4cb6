//! Builds the tasks of a resource's steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Invalid;
use model::environment::Environment;
use model::resource::Resource;
use model::template::{Context, fill, parameters};
use serde_json::{Map, Value};
use store::{Read, Tx};

use super::ResourceWorker;
use crate::credentials::for_executor;
use crate::locked::Locked;
use crate::{Error, Reconcile as _, environment};
use port::{Fault, Files, Task};

impl ResourceWorker {
    /// The executor's task, with `with` or the last applied configuration.
    pub(super) async fn task(
        &self,
        resource: &Resource,
        env: &Environment,
        with: Option<Map<String, Value>>,
    ) -> Result<Result<Task, Fault>, Error> {
        let mut read = self.db.read().await?;
        let files = files(&mut read, resource, env).await?;
        let (seal, executor) = (&*self.executors.seal, resource.node.executor);
        let own = for_executor(&mut read, seal, env.organization_id, executor).await?;
        drop(read);
        let credentials = match own {
            Ok(credentials) => credentials,
            Err(fault) => return Ok(Err(fault)),
        };
        let kept = match self.operations.open(resource.id.into()).await? {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let last = || resource.applied.clone().or_else(|| resource.tried.clone());
        let with = with.or_else(last).unwrap_or_else(|| resource.node.with.clone());
        let owner = port::Environment { id: env.id, name: env.name.clone(), user: env.created_by };
        Ok(Ok(Task {
            organization: Some(env.organization_id),
            environment: Some(owner),
            with,
            applied: resource.applied.clone(),
            outputs: resource.outputs.clone(),
            link: resource.link.clone(),
            files,
            persisted: kept,
            credentials,
            key: format!("{}-{}", resource.id, resource.generation),
            since: resource.status_since,
            fence: resource.fence,
            ..Task::new(resource.id, &resource.node.name)
        }))
    }

    /// Evaluates the expressions in `with`.
    pub(super) async fn resolved_config(
        &self,
        resource: &Resource,
        env: &Environment,
    ) -> Result<Result<Map<String, Value>, Invalid>, Error> {
        let mut read = self.db.read().await?;
        let outputs = if resource.node.outputs_of.is_empty() {
            BTreeMap::new()
        } else {
            store::resource::outputs(&mut read, env.id, &resource.node.after).await?
        };
        let templates = environment::templates(&mut read, env).await?;
        drop(read);
        let parameters = match parameters(&environment::sources(&templates), &env.parameters) {
            Ok(parameters) => parameters,
            Err(invalid) => return Ok(Err(invalid)),
        };
        let context = Context {
            environment_id: env.id.to_string(),
            environment_name: env.name.clone(),
            organization_id: env.organization_id.to_string(),
            parameters,
            outputs,
        };
        Ok(fill(&resource.node, &context))
    }

    /// Locks the resource; `None` if it changed since it was read.
    pub(super) async fn lock(&self, resource: &Resource) -> Result<Option<(Tx, Resource)>, Error> {
        let locked = Locked::lock(&self.db, Self::NAME, resource).await?;
        Ok(locked.map(|locked| (locked.tx, locked.now)))
    }
}

/// The files of the template that a resource comes from.
async fn files(read: &mut Read, resource: &Resource, env: &Environment) -> Result<Files, Error> {
    if resource.node.executor != model::template::Executor::Terraform {
        return Ok(Arc::default());
    }
    for template in environment::templates(read, env).await? {
        if template.reference() == resource.node.template {
            return Ok(Arc::new(store::template::files(read, template.id).await?));
        }
    }
    // The environment moved on to another version and this resource is to be destroyed: its files
    // come from the old version.
    let Some((name, version)) = resource.node.template.split_once('@') else {
        return Ok(Arc::default());
    };
    let scope = store::Scope::Organization(env.organization_id);
    match store::template::get(read, scope, name, version).await {
        Ok(found) => Ok(Arc::new(store::template::files(read, found.id).await?)),
        Err(store::Error::NotFound { .. }) => Ok(Arc::default()),
        Err(error) => Err(error.into()),
    }
}
