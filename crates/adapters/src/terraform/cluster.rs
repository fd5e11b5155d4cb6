//! A cluster as inputs of its module, and outputs of a module as a cluster.

use std::collections::BTreeMap;

use model::cluster::{self, KUBECONFIG, STATE, VARIABLES};
use model::{Invalid, Secret};
use port::{Access, CLUSTER_DNS, CLUSTER_ID, Fault, Outcome, Task};
use serde_json::{Map, Value, json};

use super::inputs::{Inputs, Outputs};
use super::{Workspace, folder};

/// What is kept of the last apply that came to its end: a cluster that has it was made.
pub(super) const OUTPUTS: &str = "outputs";
/// What a module was told of its agent, as it is persisted, and the file that has it: without it the next
/// apply would take that back.
pub(super) const ACCESS: &str = "access";

/// What a module is told of its agent, if it declares a variable of that name.
const SERVER: &str = "paddock_server";
const TOKEN: &str = "paddock_token";
const IMAGE: &str = "paddock_image";

/// The module of a cluster, and its variables.
pub(super) fn settings(with: &Map<String, Value>) -> Result<cluster::Terraform, Invalid> {
    serde_json::from_value(Value::Object(with.clone()))
        .map_err(|error| Invalid::new("terraform", error.to_string()))
}

/// What a cluster's module is run with.
pub(super) fn inputs(task: &Task) -> Result<Inputs, Fault> {
    let settings = settings(&task.with).map_err(|invalid| Fault::Refused(invalid.to_string()))?;
    let secret_variables = match task.kept.get(VARIABLES) {
        Some(text) => Inputs::secret_variables(text)?,
        None => Map::new(),
    };
    Ok(Inputs {
        module: settings.module,
        variables: settings.variables,
        secret_variables,
        state: task.kept.get(STATE).cloned(),
        fence: Some(task.fence),
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

/// What an apply gave, as far as it says so.
pub(super) fn outcome(outputs: &Outputs) -> Outcome {
    let dns = outputs.text("dns").map(|dns| dns.trim_end_matches('.').to_owned());
    let given = [(CLUSTER_ID, outputs.text("id")), (CLUSTER_DNS, dns)];
    let given = given.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    Outcome { outputs: given.collect(), link: None }
}

/// What to persist by now that is not persisted yet.
pub(super) fn keep(task: &Task, workspace: &Workspace) -> BTreeMap<String, Secret> {
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
    all.filter(|(name, secret)| task.kept.get(name) != Some(secret)).collect()
}

/// The outputs of the last apply, if nobody has begun another since.
pub(super) fn outputs(task: &Task, workspace: &Workspace) -> Option<Outputs> {
    if workspace.exists() {
        return workspace.outputs().filter(|_| !workspace.is_busy());
    }
    task.kept.get(OUTPUTS).and_then(|text| Outputs::parse(text.reveal()))
}

/// How the Kubernetes that a module has made is reached, if it has made one.
pub(super) fn kubeconfig(task: &Task, workspace: &Workspace) -> Option<Secret> {
    let output = outputs(task, workspace).and_then(|all| all.text("kubeconfig"));
    let kept = || task.kept.get(KUBECONFIG).filter(|kept| !kept.reveal().is_empty());
    output.map(Secret::new).or_else(|| kept().cloned())
}

/// The same cluster as the Kubernetes that its module has made.
pub(super) fn as_kubernetes(task: &Task, kubeconfig: Secret) -> Task {
    let mut task = Task { with: Map::new(), ..task.clone() };
    // It need not know what the module was told.
    for secret in [VARIABLES, STATE, OUTPUTS, ACCESS] {
        task.kept.remove(secret);
    }
    task.kept.insert(KUBECONFIG.to_owned(), kubeconfig);
    task
}
