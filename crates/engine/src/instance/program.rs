//! What Paddock's own agent shall run for an instance: the kind's container, or its Kubernetes
//! objects, with the instance's values.

use std::collections::BTreeMap;

use model::deployment::{Probe, Restart, Spec};
use model::instance::{External, Instance};
use model::kind::template::{self, Sso, Values};
use model::kind::{Kind, Ready};
use model::{DeploymentId, Secret};

use super::Instances;
use super::sign_in::{self, Trouble};
use crate::sealed::{manifests_purpose, purpose};
use port::Client;

/// What the agent of an instance says it runs things with when it is Kubernetes.
const KUBERNETES: &str = "kubernetes";

/// The program of an instance. What is secret in it is encrypted for its deployment.
pub(super) async fn of(
    all: &Instances,
    kind: &Kind,
    instance: &Instance,
    deployment: DeploymentId,
    client: Option<&Client>,
) -> Result<Spec, Trouble> {
    let (container, seal) = (&kind.run.container, &*all.outside.seal);
    let failed = Trouble::of(External::Secrets);
    let values = values(instance, client);
    let filled = container.filled(&values);
    let (mut env, mut sealed_env) = (BTreeMap::new(), BTreeMap::new());
    for (name, text) in filled.env {
        if template::is_secret(&container.env[&name]) {
            let sealed = seal.seal(&purpose(deployment, &name), &Secret::new(text)).await;
            sealed_env.insert(name, sealed.map_err(&failed)?);
        } else {
            env.insert(name, text);
        }
    }
    let mut sealed_manifests = None;
    if !kind.run.manifests.is_empty() && is_on_kubernetes(all, instance).await? {
        let objects = serde_json::Value::Array(kind.run.objects(&values)).to_string();
        let purpose = manifests_purpose(deployment);
        let sealed = seal.seal(&purpose, &Secret::new(objects)).await;
        sealed_manifests = Some(sealed.map_err(failed)?);
    }
    Ok(Spec {
        image: Some(filled.image),
        command: filled.command,
        ports: container.ports.clone(),
        env,
        sealed_env,
        sealed_manifests,
        restart: Restart::Always,
        ready: probe(&container.ready),
        ..Spec::default()
    })
}

/// The program of an instance with the client that is kept for it.
pub(super) async fn as_kept(
    all: &Instances,
    kind: &Kind,
    instance: &Instance,
    deployment: DeploymentId,
) -> Result<Spec, Trouble> {
    let client = sign_in::client(&all.db, &*all.outside.seal, instance.id).await?;
    of(all, kind, instance, deployment, client.as_ref()).await
}

async fn is_on_kubernetes(all: &Instances, instance: &Instance) -> Result<bool, Trouble> {
    let on = all.cluster_of(instance).await.map_err(Trouble::Ours)?;
    Ok(on.and_then(|on| on.agent).is_some_and(|agent| agent.runtime == KUBERNETES))
}

fn probe(ready: &Ready) -> Option<Probe> {
    match ready {
        Ready::Running { .. } => None,
        Ready::Tcp { port, within } => Some(Probe { port: *port, http: None, within: *within }),
        Ready::Http { port, path, status, within } => {
            Some(Probe { port: *port, http: Some((path.clone(), *status)), within: *within })
        }
    }
}

fn values(instance: &Instance, client: Option<&Client>) -> Values {
    Values {
        id: instance.id.to_string(),
        name: instance.name.clone(),
        namespace: instance.namespace(),
        host: instance.host.clone().unwrap_or_default(),
        version: instance.detail.desired.service.clone(),
        size: instance.size.clone(),
        owner: instance.owner.clone(),
        organization: instance.organization_id.to_string(),
        sso: client.map(|client| Sso {
            client_id: client.id.clone(),
            client_secret: client.secret.clone(),
        }),
    }
}
