//! What the providers of clusters are told, in the API's words.

use std::collections::BTreeMap;

use model::cluster::{self, KUBECONFIG, PULL_SECRET, Provider, Settings, VARIABLES};
use model::{ClusterId, Secret};
use serde_json::Value;
use wire::cluster::request::{KubernetesChange, NewKubernetes, NewTerraform};

use crate::caller::Caller;
use crate::{App, Problem};

/// The longest text of a secret.
const MAX_SECRET: usize = 256 * 1024;

/// Secrets by name.
pub(super) type Secrets = BTreeMap<String, Secret>;

/// The provider that is asked for, if this server has it.
pub(super) fn provider(app: &App, text: Option<&str>) -> Result<Provider, Problem> {
    let Some(text) = text else { return Ok(Provider::Local) };
    let provider: Provider = text.parse().map_err(|_| {
        let known: Vec<&str> = Provider::ALL.iter().map(|known| known.as_str()).collect();
        Problem::field("provider", format!("must be one of {}", known.join(", ")))
    })?;
    if app.settings.providers.contains(&provider) {
        return Ok(provider);
    }
    let known: Vec<&str> = app.settings.providers.iter().map(|known| known.as_str()).collect();
    Err(Problem::field(
        "provider",
        format!(
            "this server has {}; for {provider} its administrator sets {}",
            known.join(", "),
            needs(provider)
        ),
    ))
}

fn needs(provider: Provider) -> &'static str {
    match provider {
        Provider::Terraform => "--public-url, --agent-image and --terraform-modules",
        _ => "--public-url and --agent-image",
    }
}

/// What the provider is told, in the open and in secret.
pub(super) fn told(
    caller: &Caller,
    provider: Provider,
    kubernetes: Option<NewKubernetes>,
    terraform: Option<NewTerraform>,
) -> Result<(Settings, Secrets), Problem> {
    if kubernetes.is_some() && provider != Provider::Kubernetes {
        return Err(Problem::field("kubernetes", "goes with provider kubernetes only"));
    }
    if terraform.is_some() && provider != Provider::Terraform {
        return Err(Problem::field("terraform", "goes with provider terraform only"));
    }
    match provider {
        Provider::Local | Provider::Agent => Ok((Settings::None, Secrets::new())),
        Provider::Kubernetes => kubernetes_told(kubernetes.unwrap_or_default(), caller),
        Provider::Terraform => {
            // A module can run programs on the server, and costs money.
            caller.must_be_admin("make clusters from Terraform modules")?;
            let Some(terraform) = terraform else {
                return Err(Problem::field("terraform", "is needed: {\"module\": \"…\"}"));
            };
            Ok(terraform_told(terraform))
        }
    }
}

fn kubernetes_told(new: NewKubernetes, caller: &Caller) -> Result<(Settings, Secrets), Problem> {
    if new.kubeconfig.is_none() {
        caller.must_be_admin("use the Kubernetes that the server runs in")?;
    }
    let secrets = kubernetes_secrets(new.kubeconfig, new.pull_secret)?;
    let usual = cluster::Kubernetes::default();
    let settings = cluster::Kubernetes {
        context: new.context,
        namespace: new.namespace.unwrap_or(usual.namespace),
        quota: new.quota.unwrap_or_default(),
    };
    Ok((Settings::Kubernetes(settings), secrets))
}

fn terraform_told(new: NewTerraform) -> (Settings, Secrets) {
    let mut secrets = Secrets::new();
    if !new.secret_variables.is_empty() {
        let text = Value::Object(new.secret_variables).to_string();
        secrets.insert(VARIABLES.into(), Secret::new(text));
    }
    let (module, variables) = (new.module, new.variables);
    (Settings::Terraform(cluster::Terraform { module, variables }), secrets)
}

/// What a cluster's provider is told from now on.
pub(super) fn told_anew(
    change: KubernetesChange,
    now: &Settings,
) -> Result<(Settings, Secrets), Problem> {
    let Settings::Kubernetes(now) = now else {
        return Err(Problem::field("kubernetes", "goes with provider kubernetes only"));
    };
    let secrets = kubernetes_secrets(change.kubeconfig, change.pull_secret)?;
    let quota = change.quota.unwrap_or_else(|| now.quota.clone());
    let settings = Settings::Kubernetes(cluster::Kubernetes { quota, ..now.clone() });
    settings.check()?;
    Ok((settings, secrets))
}

fn kubernetes_secrets(
    kubeconfig: Option<String>,
    pull_secret: Option<String>,
) -> Result<Secrets, Problem> {
    let mut secrets = Secrets::new();
    keep(&mut secrets, KUBECONFIG, kubeconfig)?;
    keep(&mut secrets, PULL_SECRET, pull_secret)?;
    Ok(secrets)
}

fn keep(secrets: &mut Secrets, name: &str, text: Option<String>) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    if text.trim().is_empty() || text.len() > MAX_SECRET {
        let rule = format!("must have 1 to {MAX_SECRET} characters; or leave it out");
        return Err(Problem::field(format!("kubernetes.{name}"), rule));
    }
    secrets.insert(name.to_owned(), Secret::new(text));
    Ok(())
}

/// Encrypts secrets for a cluster.
pub(crate) async fn sealed(
    app: &App,
    id: ClusterId,
    secrets: &Secrets,
) -> Result<BTreeMap<String, String>, Problem> {
    let sealed = engine::operation::seal_all(&*app.seal, id, secrets).await;
    sealed.map_err(|fault| {
        tracing::warn!(cluster = %id, %fault, "its secrets can't be encrypted");
        Problem::unavailable("What encrypts secrets does not answer; try again soon.")
    })
}
