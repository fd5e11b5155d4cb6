//! What Paddock's own agent shall run for an instance: the kind's container with the instance's values.

use std::collections::BTreeMap;

use model::deployment::{Probe, Restart, Spec};
use model::instance::Instance;
use model::kind::template::{self, Sso, Values};
use model::kind::{Kind, Ready};
use model::{DeploymentId, Secret};

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
    let values = values(instance, client);
    let (mut env, mut sealed_env) = (BTreeMap::new(), BTreeMap::new());
    for (name, template) in &container.env {
        let text = template::fill(template, &values);
        if template::is_secret(template) {
            let sealed = seal.seal(&purpose(deployment, name), &Secret::new(text)).await?;
            sealed_env.insert(name.clone(), sealed);
        } else {
            env.insert(name.clone(), text);
        }
    }
    Ok(Spec {
        image: Some(template::fill(&container.image, &values)),
        command: container.command.iter().map(|word| template::fill(word, &values)).collect(),
        ports: container.ports.clone(),
        env,
        sealed_env,
        restart: Restart::Always,
        ready: probe(&container.ready),
        ..Spec::default()
    })
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
