//! Workload spec of an instance for Paddock's own agent: the kind's container or Kubernetes
//! objects, filled with the instance's values.

use std::collections::BTreeMap;

use model::deployment::{Probe, Restart, Spec};
use model::instance::{External, Instance};
use model::kind::template::{self, Sso, Values};
use model::kind::{Kind, Ready};
use model::{DeploymentId, Secret};

use super::InstanceWorker;
use super::sso_client::{self, StepError};
use crate::secrets::{manifests_purpose, purpose};
use port::SsoClient;

/// The runtime that an agent on Kubernetes reports.
const KUBERNETES: &str = "kubernetes";

/// The workload spec of an instance. Secrets in it are encrypted for its deployment.
pub(super) async fn spec(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
    deployment: DeploymentId,
    client: Option<&SsoClient>,
) -> Result<Spec, StepError> {
    let (container, seal) = (&kind.run.container, &*ctx.external.seal);
    let failed = StepError::external(External::Secrets);
    let values = values(instance, client);
    let filled = container.render(&values);
    let (mut env, mut sealed_env) = (BTreeMap::new(), BTreeMap::new());
    for (name, text) in filled.env {
        if template::is_secret(&container.env[&name]) {
            let sealed = seal.encrypt(&purpose(deployment, &name), &Secret::new(text)).await;
            sealed_env.insert(name, sealed.map_err(&failed)?);
        } else {
            env.insert(name, text);
        }
    }
    let mut sealed_manifests = None;
    if !kind.run.manifests.is_empty() && is_on_kubernetes(ctx, instance).await? {
        let objects = serde_json::Value::Array(kind.run.render_objects(&values)).to_string();
        let purpose = manifests_purpose(deployment);
        let sealed = seal.encrypt(&purpose, &Secret::new(objects)).await;
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

/// The workload spec of an instance with its stored SSO client.
pub(super) async fn with_stored_client(
    ctx: &InstanceWorker,
    kind: &Kind,
    instance: &Instance,
    deployment: DeploymentId,
) -> Result<Spec, StepError> {
    let client = sso_client::client(&ctx.db, &*ctx.external.seal, instance.id).await?;
    spec(ctx, kind, instance, deployment, client.as_ref()).await
}

async fn is_on_kubernetes(ctx: &InstanceWorker, instance: &Instance) -> Result<bool, StepError> {
    let on = ctx.cluster_of(instance).await.map_err(StepError::Internal)?;
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

fn values(instance: &Instance, client: Option<&SsoClient>) -> Values {
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
