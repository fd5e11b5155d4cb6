//! What the providers of clusters are told, in the API's words.

use std::collections::BTreeMap;

use model::cluster::{self, KUBECONFIG, PULL_SECRET, Provider, Settings, VARIABLES};
use model::{ClusterId, Resources, Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::caller::Caller;
use crate::{App, Problem};

/// The longest text of a secret.
const MAX_SECRET: usize = 256 * 1024;

/// A Kubernetes that there is, as a new cluster.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKubernetes {
    /// How it is reached, as `kubectl config view --flatten --minify --raw` shows it; it is kept
    /// encrypted and never shown. Without it, it is the Kubernetes that the server runs in, which is
    /// the platform administrator's to give.
    kubeconfig: Option<String>,
    /// Which context of it; its current one when it is left out.
    context: Option<String>,
    /// Where the agent and what it runs live; `paddock` when it is left out.
    namespace: Option<String>,
    /// The most that what runs there may ask for together.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    quota: Option<Resources>,
    /// Credentials of registries, as in Docker's `config.json`; kept encrypted and never shown.
    pull_secret: Option<String>,
}

/// What a Terraform module makes, as a new cluster.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTerraform {
    /// The module: a folder in the server's directory of modules.
    module: String,
    /// Its variables.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
    /// More variables, kept encrypted and never shown.
    #[serde(default)]
    #[schema(value_type = Object)]
    secret_variables: Map<String, Value>,
}

/// What of a Kubernetes shall change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KubernetesChange {
    /// How it is reached from now on.
    kubeconfig: Option<String>,
    /// The most that what runs there may ask for together from now on.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    quota: Option<Resources>,
    /// Credentials of registries from now on.
    pull_secret: Option<String>,
}

/// A Kubernetes that there is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Kubernetes {
    /// Which context of its kubeconfig.
    context: Option<String>,
    /// Where the agent and what it runs live.
    namespace: String,
    /// The most that what runs there may ask for together.
    #[schema(value_type = BTreeMap<String, Amount>)]
    quota: Resources,
}

/// What a Terraform module makes.
#[derive(Serialize, ToSchema)]
pub(crate) struct Terraform {
    /// The module.
    module: String,
    /// Its variables.
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
}

/// What the provider of a cluster is told, without what must not be seen.
pub(super) fn shown(settings: Settings) -> (Option<Kubernetes>, Option<Terraform>) {
    match settings {
        Settings::None => (None, None),
        Settings::Kubernetes(k) => {
            let (context, namespace, quota) = (k.context, k.namespace, k.quota);
            (Some(Kubernetes { context, namespace, quota }), None)
        }
        Settings::Terraform(t) => {
            (None, Some(Terraform { module: t.module, variables: t.variables }))
        }
    }
}

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
        Provider::Kubernetes => kubernetes.unwrap_or_default().told(caller),
        Provider::Terraform => {
            // A module can run programs on the server, and costs money.
            caller.must_be_admin("make clusters from Terraform modules")?;
            let Some(terraform) = terraform else {
                return Err(Problem::field("terraform", "is needed: {\"module\": \"…\"}"));
            };
            Ok(terraform.told())
        }
    }
}

impl NewKubernetes {
    fn told(self, caller: &Caller) -> Result<(Settings, Secrets), Problem> {
        if self.kubeconfig.is_none() {
            caller.must_be_admin("use the Kubernetes that the server runs in")?;
        }
        let mut secrets = Secrets::new();
        keep(&mut secrets, KUBECONFIG, self.kubeconfig)?;
        keep(&mut secrets, PULL_SECRET, self.pull_secret)?;
        let usual = cluster::Kubernetes::default();
        let settings = cluster::Kubernetes {
            context: self.context,
            namespace: self.namespace.unwrap_or(usual.namespace),
            quota: self.quota.unwrap_or_default(),
        };
        Ok((Settings::Kubernetes(settings), secrets))
    }
}

impl NewTerraform {
    fn told(self) -> (Settings, Secrets) {
        let mut secrets = Secrets::new();
        if !self.secret_variables.is_empty() {
            let text = Value::Object(self.secret_variables).to_string();
            secrets.insert(VARIABLES.into(), Secret::new(text));
        }
        let (module, variables) = (self.module, self.variables);
        (Settings::Terraform(cluster::Terraform { module, variables }), secrets)
    }
}

impl KubernetesChange {
    /// What a cluster's provider is told from now on.
    pub(super) fn told(self, now: &Settings) -> Result<(Settings, Secrets), Problem> {
        let Settings::Kubernetes(now) = now else {
            return Err(Problem::field("kubernetes", "goes with provider kubernetes only"));
        };
        let mut secrets = Secrets::new();
        keep(&mut secrets, KUBECONFIG, self.kubeconfig)?;
        keep(&mut secrets, PULL_SECRET, self.pull_secret)?;
        let quota = self.quota.unwrap_or_else(|| now.quota.clone());
        let settings = Settings::Kubernetes(cluster::Kubernetes { quota, ..now.clone() });
        settings.check()?;
        Ok((settings, secrets))
    }
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
