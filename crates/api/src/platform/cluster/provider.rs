//! Cluster provider settings and secrets in requests.

use std::collections::BTreeMap;

use model::cluster::{self, KUBECONFIG, PULL_SECRET, Provider, Settings, VARIABLES};
use model::{ClusterId, Secret};
use serde_json::Value;
use wire::cluster::request::{KubernetesChange, NewKubernetes, NewTerraform};

use crate::caller::Caller;
use crate::{App, Problem};

/// Maximum length of a secret.
const MAX_SECRET: usize = 256 * 1024;

/// Secrets by name.
pub(super) type Secrets = BTreeMap<String, Secret>;

/// Parses the provider and checks that this server supports it.
pub(super) fn provider(app: &App, text: Option<&str>) -> Result<Provider, Problem> {
    let Some(text) = text else { return Ok(Provider::Local) };
    let provider: Provider = text.parse().map_err(|_| {
        let name: Vec<&str> = Provider::ALL.iter().map(|name| name.as_str()).collect();
        Problem::field("provider", format!("must be one of {}", name.join(", ")))
    })?;
    if app.settings.providers.contains(&provider) {
        return Ok(provider);
    }
    let name: Vec<&str> = app.settings.providers.iter().map(|name| name.as_str()).collect();
    Err(Problem::field(
        "provider",
        format!(
            "this server supports {}; {provider} requires the server settings {}",
            name.join(", "),
            required_flags(provider)
        ),
    ))
}

fn required_flags(provider: Provider) -> &'static str {
    match provider {
        Provider::Terraform => "--public-url, --agent-image and --terraform-modules",
        _ => "--public-url and --agent-image",
    }
}

/// Returns the provider settings and the secrets of a request.
pub(super) fn settings(
    caller: &Caller,
    provider: Provider,
    kubernetes: Option<NewKubernetes>,
    terraform: Option<NewTerraform>,
) -> Result<(Settings, Secrets), Problem> {
    if kubernetes.is_some() && provider != Provider::Kubernetes {
        return Err(Problem::field("kubernetes", "is only allowed with provider kubernetes"));
    }
    if terraform.is_some() && provider != Provider::Terraform {
        return Err(Problem::field("terraform", "is only allowed with provider terraform"));
    }
    match provider {
        Provider::Local | Provider::Agent => Ok((Settings::None, Secrets::new())),
        Provider::Kubernetes => kubernetes_settings(kubernetes.unwrap_or_default(), caller),
        Provider::Terraform => {
            // A module can run programs on the server and incur costs.
            caller.must_be_admin("create clusters from Terraform modules")?;
            let Some(terraform) = terraform else {
                return Err(Problem::field("terraform", "is required: {\"module\": \"…\"}"));
            };
            Ok(terraform_settings(terraform))
        }
    }
}

fn kubernetes_settings(
    new: NewKubernetes,
    caller: &Caller,
) -> Result<(Settings, Secrets), Problem> {
    if new.kubeconfig.is_none() {
        caller.must_be_admin("use the Kubernetes cluster that the server runs in")?;
    }
    let secrets = kubernetes_secrets(new.kubeconfig, new.pull_secret)?;
    let defaults = cluster::Kubernetes::default();
    let settings = cluster::Kubernetes {
        context: new.context,
        namespace: new.namespace.unwrap_or(defaults.namespace),
        quota: new.quota.unwrap_or_default(),
    };
    Ok((Settings::Kubernetes(settings), secrets))
}

fn terraform_settings(new: NewTerraform) -> (Settings, Secrets) {
    let mut secrets = Secrets::new();
    if !new.secret_variables.is_empty() {
        let text = Value::Object(new.secret_variables).to_string();
        secrets.insert(VARIABLES.into(), Secret::new(text));
    }
    let (module, variables) = (new.module, new.variables);
    (Settings::Terraform(cluster::Terraform { module, variables }), secrets)
}

/// Returns the updated provider settings and the new secrets.
pub(super) fn update_settings(
    change: KubernetesChange,
    current: &Settings,
) -> Result<(Settings, Secrets), Problem> {
    let Settings::Kubernetes(current) = current else {
        return Err(Problem::field("kubernetes", "is only allowed with provider kubernetes"));
    };
    let secrets = kubernetes_secrets(change.kubeconfig, change.pull_secret)?;
    let quota = change.quota.unwrap_or_else(|| current.quota.clone());
    let settings = Settings::Kubernetes(cluster::Kubernetes { quota, ..current.clone() });
    settings.check()?;
    Ok((settings, secrets))
}

fn kubernetes_secrets(
    kubeconfig: Option<String>,
    pull_secret: Option<String>,
) -> Result<Secrets, Problem> {
    let mut secrets = Secrets::new();
    insert_secret(&mut secrets, KUBECONFIG, kubeconfig)?;
    insert_secret(&mut secrets, PULL_SECRET, pull_secret)?;
    Ok(secrets)
}

fn insert_secret(secrets: &mut Secrets, name: &str, text: Option<String>) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    if text.trim().is_empty() || text.len() > MAX_SECRET {
        let rule = format!("must have 1 to {MAX_SECRET} characters, or be omitted");
        return Err(Problem::field(format!("kubernetes.{name}"), rule));
    }
    secrets.insert(name.to_owned(), Secret::new(text));
    Ok(())
}

/// Encrypts secrets for a cluster.
pub(crate) async fn encrypt_secrets(
    app: &App,
    id: ClusterId,
    secrets: &Secrets,
) -> Result<BTreeMap<String, String>, Problem> {
    let sealed = engine::operation::encrypt_all(&*app.seal, id, secrets).await;
    sealed.map_err(|fault| {
        tracing::warn!(cluster = %id, %fault, "encrypting cluster secrets failed");
        Problem::unavailable("Secret encryption backend unavailable; try again.")
    })
}
