//! What Paddock's own agent shall run for an instance: the kind's container with the instance's values.

use std::collections::BTreeMap;

use model::deployment::{Probe, Restart, Spec};
use model::instance::Instance;
use model::kind::template::{self, Sso, Values};
use model::kind::{Kind, Ready};
use model::{DeploymentId, Secret};

use super::Instances;
use super::sign_in::{self, Trouble};
use crate::port::{Client, Fault, Seal};
use crate::sealed::purpose;

/// The program of an instance. What is secret in it is encrypted for its deployment.
pub(super) async fn of(
    kind: &Kind,
    instance: &Instance,
    deployment: DeploymentId,
    client: Option<&Client>,
    seal: &dyn Seal,
) -> Result<Spec, Fault> {
    let container = &kind.run.container;
    let filled = container.filled(&values(instance, client));
    let (mut env, mut sealed_env) = (BTreeMap::new(), BTreeMap::new());
    for (name, text) in filled.env {
        if template::is_secret(&container.env[&name]) {
            let sealed = seal.seal(&purpose(deployment, &name), &Secret::new(text)).await?;
            sealed_env.insert(name, sealed);
        } else {
            env.insert(name, text);
        }
    }
    Ok(Spec {
        image: Some(filled.image),
        command: filled.command,
        ports: container.ports.clone(),
        env,
        sealed_env,
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
    let seal = &*all.outside.seal;
    let client = sign_in::client(&all.db, seal, instance.id).await?;
    Ok(of(kind, instance, deployment, client.as_ref(), seal).await?)
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
