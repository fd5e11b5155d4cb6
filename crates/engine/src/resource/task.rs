//! What an executor is told of a resource, and keeping what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Invalid;
use model::environment::Environment;
use model::event::Actor;
use model::resource::Resource;
use model::template::{Context, fill, parameters};
use serde_json::{Map, Value};
use store::resource::{log, secret};
use store::{Read, Tx};

use super::Resources;
use crate::held::Held;
use crate::{Error, Reconcile as _, environment};
use port::{Fault, Files, Log, Task};

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
        let sealed = secret::all(&mut read, one.id).await?;
        drop(read);
        let mut kept = BTreeMap::new();
        for (name, sealed) in sealed {
            match self.executors.seal.open(&secret::purpose(one.id, &name), &sealed).await {
                Ok(open) => kept.insert(name, open),
                Err(fault) => return Ok(Err(fault)),
            };
        }
        let told = || one.applied.clone().or_else(|| one.tried.clone());
        let with = with.or_else(told).unwrap_or_else(|| one.node.with.clone());
        Ok(Ok(Task {
            id: one.id,
            name: one.node.name.clone(),
            environment: of.id,
            environment_name: of.name.clone(),
            organization: of.organization_id,
            user: of.created_by,
            with,
            applied: one.applied.clone(),
            outputs: one.outputs.clone(),
            link: one.link.clone(),
            files,
            kept,
            key: format!("{}-{}", one.id, one.generation),
            since: one.status_since,
            fence: one.fence,
            log: Log::default(),
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

    /// Encrypts what the executor has us keep by now.
    pub(super) async fn sealed(
        &self,
        executor: &dyn port::Executor,
        task: &Task,
    ) -> Result<BTreeMap<String, String>, Fault> {
        let mut sealed = BTreeMap::new();
        for (name, secret) in executor.keep(task).await? {
            let purpose = secret::purpose(task.id, &name);
            sealed.insert(name, self.executors.seal.seal(&purpose, &secret).await?);
        }
        Ok(sealed)
    }

    /// Keeps what was said and what shall be kept, however the call ended.
    pub(super) async fn keep(
        &self,
        task: &Task,
        sealed: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let lines = task.log.take();
        if lines.is_empty() && sealed.is_empty() {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        secret::set(&mut tx, task.id, task.fence, sealed).await?;
        log::append(&mut tx, task.id, &lines).await?;
        Ok(tx.commit().await?)
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
