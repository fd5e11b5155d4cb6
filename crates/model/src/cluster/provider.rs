//! Who makes a cluster and serves it, and what they have to be told for that.

use serde::{Deserialize, Serialize};

use crate::invalid::Check;
use crate::text_enum::text_enum;
use crate::{Invalid, Resources, name};

/// Who makes a cluster and serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The machine that the server runs on, through the agent inside the server.
    Local,
    /// Machines beside which somebody runs `paddock agent`.
    Agent,
    /// A Kubernetes that there is: Paddock installs its agent there.
    Kubernetes,
    /// What a Terraform module makes.
    Terraform,
}

text_enum!(Provider {
    Local => "local",
    Agent => "agent",
    Kubernetes => "kubernetes",
    Terraform => "terraform",
});

impl Provider {
    /// Does it make something, which must be asked for and taken away again?
    pub fn makes(self) -> bool {
        matches!(self, Provider::Kubernetes | Provider::Terraform)
    }
}

/// What a provider is told beside what every cluster has. Nothing of it is secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settings {
    /// There is nothing to tell.
    #[default]
    None,
    /// Of a Kubernetes that there is.
    Kubernetes(Kubernetes),
    /// Of what a Terraform module makes.
    Terraform(Terraform),
}

/// A Kubernetes that there is. Its kubeconfig is the secret [`KUBECONFIG`]; without one it is the
/// Kubernetes that the server itself runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// Which context of the kubeconfig; its current one if none is named.
    pub context: Option<String>,
    /// Where the agent and what it runs live.
    pub namespace: String,
    /// The most that what runs there may ask for together; as much as there is if nothing is said.
    pub quota: Resources,
}

/// What a Terraform module makes. Variables that must not be seen are the secret [`VARIABLES`], its
/// state is the secret [`STATE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terraform {
    /// The module: a folder in the server's directory of modules.
    pub module: String,
    /// Its variables.
    #[serde(default)]
    pub variables: serde_json::Map<String, serde_json::Value>,
}

/// The secret of a cluster that says how its Kubernetes is reached.
pub const KUBECONFIG: &str = "kubeconfig";
/// The secret of a cluster with credentials of registries, as in Docker's `config.json`.
pub const PULL_SECRET: &str = "pull_secret";
/// The secret of a cluster with variables of its Terraform module, as a JSON object.
pub const VARIABLES: &str = "variables";
/// The secret of a cluster with the state of its Terraform module.
pub const STATE: &str = "state";
/// The secret of a cluster that its agent signs in with.
pub const AGENT_TOKEN: &str = "agent_token";

impl Default for Kubernetes {
    fn default() -> Self {
        Self { context: None, namespace: "paddock".into(), quota: Resources::default() }
    }
}

impl Settings {
    /// Checks what a provider is told.
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
