//! A cluster as inputs of its module, and outputs of a module as a cluster.

use std::collections::BTreeMap;

use model::cluster::{self, KUBECONFIG, STATE, VARIABLES};
use model::{Invalid, Secret};
use port::{Access, CLUSTER_DNS, CLUSTER_ID, Fault, Outcome, Task};
use serde_json::{Map, Value, json};

use super::inputs::{Inputs, Outputs};
use super::{Workspace, folder};

/// The persisted outputs of the last successful apply: a cluster that has them exists.
pub(super) const OUTPUTS: &str = "outputs";
/// The persisted agent access that a module got, and its file: without it the next apply would
/// remove it.
pub(super) const ACCESS: &str = "access";

/// The module variables for the agent access; each is set if the module declares it.
const SERVER: &str = "paddock_server";
const TOKEN: &str = "paddock_token";
const IMAGE: &str = "paddock_image";

/// The module of a cluster, and its variables.
pub(super) fn settings(with: &Map<String, Value>) -> Result<cluster::Terraform, Invalid> {
    serde_json::from_value(Value::Object(with.clone()))
        .map_err(|error| Invalid::new("terraform", error.to_string()))
}

/// The inputs of a cluster's module.
pub(super) fn inputs(task: &Task) -> Result<Inputs, Fault> {
    let settings = settings(&task.with).map_err(|invalid| Fault::Refused(invalid.to_string()))?;
    let secret_variables = match task.persisted.get(VARIABLES) {
        Some(text) => Inputs::secret_variables(text)?,
        None => Map::new(),
    };
    Ok(Inputs {
        module: settings.module,
        variables: settings.variables,
        secret_variables,
        state: task.persisted.get(STATE).cloned(),
        fence: Some(task.fence),
        ..Inputs::default()
    })
}

/// The agent access, as it is persisted.
pub(super) fn access(agent: &Access) -> Secret {
    let Access { server, token, image } = agent;
    Secret::new(json!({SERVER: server, TOKEN: token.reveal(), IMAGE: image}).to_string())
}

/// Sets the variables for the agent access that the module declares; returns whether there are any.
pub(super) fn add_access(
    inputs: &mut Inputs,
    access: &Secret,
    declares: impl Fn(&str) -> bool,
) -> bool {
    let access: Map<String, Value> = serde_json::from_str(access.reveal()).unwrap_or_default();
    let variables: Vec<_> = access.into_iter().filter(|(name, _)| declares(name)).collect();
    let is_declared = !variables.is_empty();
    for (name, value) in variables {
        let variables =
            if name == TOKEN { &mut inputs.secret_variables } else { &mut inputs.variables };
        variables.insert(name, value);
    }
    is_declared
}

/// The outcome of an apply, from its outputs.
pub(super) fn outcome(outputs: &Outputs) -> Outcome {
    let dns = outputs.text("dns").map(|dns| dns.trim_end_matches('.').to_owned());
    let given = [(CLUSTER_ID, outputs.text("id")), (CLUSTER_DNS, dns)];
    let given = given.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    Outcome { outputs: given.collect(), link: None }
}

/// The values to persist that are not persisted yet.
pub(super) fn to_persist(task: &Task, workspace: &Workspace) -> BTreeMap<String, Secret> {
    let outputs = workspace.outputs();
    let kubeconfig = outputs.as_ref().and_then(|all| all.text("kubeconfig")).map(Secret::new);
    let access = folder::read(&workspace.at(ACCESS)).ok().flatten().map(Secret::new);
    let all = [
        (STATE, workspace.state()),
        (KUBECONFIG, kubeconfig),
        (OUTPUTS, outputs.map(|all| all.to_secret())),
        (ACCESS, access),
    ];
    let all = all.into_iter().filter_map(|(name, secret)| Some((name.to_owned(), secret?)));
    all.filter(|(name, secret)| task.persisted.get(name) != Some(secret)).collect()
}

/// The outputs of the last apply, unless another one has begun.
pub(super) fn outputs(task: &Task, workspace: &Workspace) -> Option<Outputs> {
    if workspace.exists() {
        return workspace.outputs().filter(|_| !workspace.is_busy());
    }
    task.persisted.get(OUTPUTS).and_then(|text| Outputs::parse(text.reveal()))
}

/// The kubeconfig of the Kubernetes that a module created, if it did.
pub(super) fn kubeconfig(task: &Task, workspace: &Workspace) -> Option<Secret> {
    let output = outputs(task, workspace).and_then(|all| all.text("kubeconfig"));
    let persisted = || task.persisted.get(KUBECONFIG).filter(|text| !text.reveal().is_empty());
    output.map(Secret::new).or_else(|| persisted().cloned())
}

/// The same cluster for the Kubernetes provider.
pub(super) fn as_kubernetes(task: &Task, kubeconfig: Secret) -> Task {
    let mut task = Task { with: Map::new(), ..task.clone() };
    // It does not need the secrets of the module.
    for secret in [VARIABLES, STATE, OUTPUTS, ACCESS] {
        task.persisted.remove(secret);
    }
    task.persisted.insert(KUBECONFIG.to_owned(), kubeconfig);
    task
}
