//! A cluster as inputs of its module, and outputs of a module as a cluster.

use std::collections::BTreeMap;

use model::Secret;
use model::cluster::{self, KUBECONFIG, STATE, Settings, VARIABLES};
use port::{Access, Fault, Made, Order};
use serde_json::{Map, Value, json};

use super::Workspace;
use super::inputs::{Inputs, Outputs};

/// What a run is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    /// To make what these inputs describe.
    Make(Vec<u8>),
    /// To destroy it.
    Remove,
}

/// What is kept of the last apply that came to its end: a cluster that has it was made.
pub(super) const OUTPUTS: &str = "outputs";
/// What is kept of what a module was told of its agent: without it the next apply would take that back.
pub(super) const ACCESS: &str = "access";

/// What a module is told of its agent, if it declares a variable of that name.
const SERVER: &str = "paddock_server";
const TOKEN: &str = "paddock_token";
const IMAGE: &str = "paddock_image";

/// What a cluster's module is run with.
pub(super) fn inputs(order: &Order) -> Result<Inputs, Fault> {
    let Settings::Terraform(settings) = &order.settings else {
        let why = format!("the cluster {} names no Terraform module", order.name);
        return Err(Fault::Refused(why));
    };
    let secret_variables = match order.secrets.get(VARIABLES) {
        Some(text) => Inputs::secret_variables(text)?,
        None => Map::new(),
    };
    Ok(Inputs {
        module: settings.module.clone(),
        variables: settings.variables.clone(),
        secret_variables,
        state: order.secrets.get(STATE).cloned(),
        ..Inputs::default()
    })
}

/// What the agent is told, as it is kept.
pub(super) fn access(agent: &Access) -> Secret {
    let Access { server, token, image } = agent;
    Secret::new(json!({SERVER: server, TOKEN: token.reveal(), IMAGE: image}).to_string())
}

/// Adds what the agent is told, as far as the module asks for it. Does it?
pub(super) fn tell(inputs: &mut Inputs, access: &Secret, declares: impl Fn(&str) -> bool) -> bool {
    let told: Map<String, Value> = serde_json::from_str(access.reveal()).unwrap_or_default();
    let told: Vec<_> = told.into_iter().filter(|(name, _)| declares(name)).collect();
    let is_asked = !told.is_empty();
    for (name, value) in told {
        let variables =
            if name == TOKEN { &mut inputs.secret_variables } else { &mut inputs.variables };
        variables.insert(name, value);
    }
    is_asked
}

/// What there is to know of a cluster that was made.
pub(super) fn made(workspace: &Workspace, outputs: &Outputs) -> Made {
    let kubeconfig = outputs.text("kubeconfig").map(Secret::new);
    let kept = [
        (STATE, workspace.state()),
        (KUBECONFIG, kubeconfig),
        (OUTPUTS, Some(outputs.to_secret())),
    ];
    let keep = kept.into_iter().filter_map(|(name, secret)| Some((name.to_owned(), secret?)));
    let dns = outputs.text("dns").map(|dns| dns.trim_end_matches('.').to_owned());
    Made { foreign_id: outputs.text("id"), dns, keep: keep.collect() }
}

/// What is kept when nothing is left.
pub(super) fn gone() -> Made {
    let nothing = [STATE, OUTPUTS].map(|name| (name.to_owned(), Secret::new("")));
    Made { keep: BTreeMap::from(nothing), ..Made::default() }
}

/// The outputs of the last apply, if nobody has begun another since.
pub(super) fn outputs(order: &Order, workspace: &Workspace) -> Option<Outputs> {
    if workspace.exists() {
        return workspace.outputs().filter(|_| !workspace.is_busy());
    }
    order.secrets.get(OUTPUTS).and_then(|text| Outputs::parse(text.reveal()))
}

/// How the Kubernetes that a module has made is reached, if it has made one.
pub(super) fn kubeconfig(order: &Order, workspace: &Workspace) -> Option<Secret> {
    let output = outputs(order, workspace).and_then(|all| all.text("kubeconfig"));
    let kept = || order.secrets.get(KUBECONFIG).filter(|kept| !kept.reveal().is_empty());
    output.map(Secret::new).or_else(|| kept().cloned())
}

/// The same cluster as the Kubernetes that its module has made.
pub(super) fn as_kubernetes(order: &Order, kubeconfig: Secret) -> Order {
    let mut order = order.clone();
    order.settings = Settings::Kubernetes(cluster::Kubernetes::default());
    // It need not know what the module was told.
    for secret in [VARIABLES, STATE, OUTPUTS, ACCESS] {
        order.secrets.remove(secret);
    }
    order.secrets.insert(KUBECONFIG.to_owned(), kubeconfig);
    order
}
