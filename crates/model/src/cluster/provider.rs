//! Cluster providers and their settings.

use serde::{Deserialize, Serialize};

use crate::invalid::Check;
use crate::text_enum::text_enum;
use crate::{Invalid, Resources, name};

/// The provider that creates and serves a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The server's machine, through the local agent inside the server.
    Local,
    /// Machines with a remote `paddock agent`.
    Agent,
    /// An existing Kubernetes cluster, where Paddock installs its agent.
    Kubernetes,
    /// A cluster created by a Terraform module.
    Terraform,
}

text_enum!(Provider {
    Local => "local",
    Agent => "agent",
    Kubernetes => "kubernetes",
    Terraform => "terraform",
});

impl Provider {
    /// Does it create objects that must be destroyed with the cluster?
    pub fn provisions(self) -> bool {
        matches!(self, Provider::Kubernetes | Provider::Terraform)
    }
}

/// Provider-specific settings. They contain no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settings {
    /// No settings.
    #[default]
    None,
    /// Settings of an existing Kubernetes cluster.
    Kubernetes(Kubernetes),
    /// Settings of a Terraform module.
    Terraform(Terraform),
}

/// An existing Kubernetes cluster. Its kubeconfig is the secret [`KUBECONFIG`]; without one it is
/// the cluster that the server runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// Context of the kubeconfig; defaults to the current one.
    pub context: Option<String>,
    /// Namespace of the agent and its workloads.
    pub namespace: String,
    /// Limit on the sum of all requests; empty means the whole cluster.
    pub quota: Resources,
}

/// A cluster created by a Terraform module. Secret variables are in the secret [`VARIABLES`], the
/// state is in the secret [`STATE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terraform {
    /// The module: a subdirectory of the server's module directory.
    pub module: String,
    /// Its variables.
    #[serde(default)]
    pub variables: serde_json::Map<String, serde_json::Value>,
}

/// Secret with the kubeconfig of a cluster.
pub const KUBECONFIG: &str = "kubeconfig";
/// Secret with registry credentials in the format of Docker's `config.json`.
pub const PULL_SECRET: &str = "pull_secret";
/// Secret with variables of the Terraform module, as a JSON object.
pub const VARIABLES: &str = "variables";
/// Secret with the state of the Terraform module.
pub const STATE: &str = "state";
/// Secret with the token of the agent.
pub const AGENT_TOKEN: &str = "agent_token";

impl Default for Kubernetes {
    fn default() -> Self {
        Self { context: None, namespace: "paddock".into(), quota: Resources::default() }
    }
}

impl Settings {
    /// Checks the settings.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Check::default();
        match self {
            Settings::None => {}
            Settings::Kubernetes(kubernetes) => {
                check.field(name::dns_label("kubernetes.namespace", &kubernetes.namespace));
                check.field(kubernetes.quota.check("kubernetes.quota"));
            }
            Settings::Terraform(terraform) => {
                check.field(name::dns_label("terraform.module", &terraform.module));
            }
        }
        check.done()
    }
}
