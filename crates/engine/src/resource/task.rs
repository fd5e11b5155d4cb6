//! The task of a resource's step.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Invalid;
use model::environment::Environment;
use model::resource::Resource;
use model::template::{Context, fill, parameters};
use serde_json::{Map, Value};
use store::{Read, Tx};

use super::Resources;
use crate::held::Held;
use crate::{Error, Reconcile as _, environment};
use port::{Fault, Files, Task};

impl Resources {
    /// What the executor is told: with `with`, or with what it was last told.
    pub(super) async fn task(
        &self,
        one: &Resource,
        of: &Environment,
        with: Option<Map<String, Value>>,
    ) -> Result<Result<Task, Fault>, Error> {
        let mut read = self.db.read().await?;
        let files = files(&mut read, one, of).await?;
        drop(read);
        let kept = match self.operations.open(one.id.into()).await? {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let told = || one.applied.clone().or_else(|| one.tried.clone());
        let with = with.or_else(told).unwrap_or_else(|| one.node.with.clone());
        let environment =
            port::Environment { id: of.id, name: of.name.clone(), user: of.created_by };
        Ok(Ok(Task {
            organization: Some(of.organization_id),
            environment: Some(environment),
            with,
            applied: one.applied.clone(),
            outputs: one.outputs.clone(),
            link: one.link.clone(),
            files,
            kept,
            key: format!("{}-{}", one.id, one.generation),
            since: one.status_since,
            fence: one.fence,
            ..Task::new(one.id, &one.node.name)
        }))
    }

    /// What `with` comes to now.
    pub(super) async fn filled(
        &self,
        one: &Resource,
        of: &Environment,
    ) -> Result<Result<Map<String, Value>, Invalid>, Error> {
        let mut read = self.db.read().await?;
        let outputs = if one.node.outputs_of.is_empty() {
            BTreeMap::new()
        } else {
            store::resource::outputs(&mut read, of.id, &one.node.after).await?
        };
        let templates = environment::templates(&mut read, of).await?;
        drop(read);
        let parameters = match parameters(&environment::sources(&templates), &of.parameters) {
            Ok(parameters) => parameters,
            Err(invalid) => return Ok(Err(invalid)),
        };
        let context = Context {
            environment_id: of.id.to_string(),
            environment_name: of.name.clone(),
            parameters,
            outputs,
        };
        Ok(fill(&one.node, &context))
    }

    /// A transaction in which the resource is what it was and stays that; none if it no longer is.
    pub(super) async fn still(&self, seen: &Resource) -> Result<Option<(Tx, Resource)>, Error> {
        let held = Held::take(&self.db, Self::NAME, seen).await?;
        Ok(held.map(|held| (held.tx, held.now)))
    }
}

/// The files of the template that a resource comes from.
async fn files(read: &mut Read, one: &Resource, of: &Environment) -> Result<Files, Error> {
    if one.node.executor != model::template::Executor::Terraform {
        return Ok(Arc::default());
    }
    for template in environment::templates(read, of).await? {
        if template.reference() == one.node.template {
            return Ok(Arc::new(store::template::files(read, template.id).await?));
        }
    }
    // Its environment has moved on to another version, and it shall go: it came from the one before.
    let Some((name, version)) = one.node.template.split_once('@') else {
        return Ok(Arc::default());
    };
    let own = store::Scope::Organization(of.organization_id);
    match store::template::get(read, own, name, version).await {
        Ok(found) => Ok(Arc::new(store::template::files(read, found.id).await?)),
        Err(store::Error::NotFound { .. }) => Ok(Arc::default()),
        Err(error) => Err(error.into()),
    }
}
