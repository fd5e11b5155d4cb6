//! A resource of an environment as a folder in which its module runs, and outputs as what it gives.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Secret;
use model::template::with;
use port::{Fault, Files, Outcome, Task};
use serde_json::{Map, Value};

use super::hidden::{Hidden, looks_secret};
use super::inputs::{Inputs, Outputs};
use super::steps::TRIED;
use super::workspace::Workspace;
use super::{Runner, files, folder, module};

/// What is kept: the state, what was last tried, and which providers were chosen.
const STATE: &str = "state";
const WITH: &str = "with";
const PROVIDERS: &str = "providers";

/// Where the module of a resource runs as `with` says.
pub(super) fn workspace(
    runner: &Runner,
    task: &Task,
    with: &Map<String, Value>,
) -> Result<Workspace, Fault> {
    let told: with::Terraform =
        with::read(with).map_err(|invalid| Fault::Refused(invalid.to_string()))?;
    let folder = files::folder_of(&told.source);
    let (secret_variables, variables) = parted(told.variables, &task.files, folder);
    let past_secrets = past_secrets(task);
    let limit = told.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let inputs = Inputs {
        module: folder.to_owned(),
        files: Some(task.files.clone()),
        variables,
        secret_variables,
        past_secrets,
        state: task.kept.get(STATE).cloned(),
        providers: task.kept.get(PROVIDERS).cloned(),
        limit: Some(limit.unwrap_or(runner.options.timeout)),
        fence: Some(task.fence),
    };
    runner.workspace(&task.id.to_string(), inputs)
}

/// What secret variables were when it was last made, and when it was last tried.
fn past_secrets(task: &Task) -> Map<String, Value> {
    let kept = task.kept.get(WITH);
    let kept: Option<Map<_, _>> = kept.and_then(|kept| serde_json::from_str(kept.reveal()).ok());
    let mut past: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for with in task.applied.iter().chain(&kept) {
        let Ok(told) = with::read::<with::Terraform>(with) else { continue };
        let folder = files::folder_of(&told.source);
        for (name, value) in parted(told.variables, &task.files, folder).0 {
            past.entry(name).or_default().push(value);
        }
    }
    past.into_iter().map(|(name, values)| (name, values.into())).collect()
}

/// Where the module of a resource runs as it was last tried; as it should be if it never was.
pub(super) fn tried(runner: &Runner, task: &Task) -> Result<Workspace, Fault> {
    let here = folder::read(&bare(runner, task)?.at(TRIED)).ok().flatten();
    let kept = || task.kept.get(WITH).map(|kept| kept.reveal().to_owned());
    let with = here.or_else(kept).and_then(|text| serde_json::from_str(&text).ok());
    workspace(runner, task, with.as_ref().unwrap_or(&task.with))
}

/// The folder of a resource, for whoever runs nothing in it: `with` may have no values yet.
pub(super) fn bare(runner: &Runner, task: &Task) -> Result<Workspace, Fault> {
    let inputs = Inputs {
        module: task.name.clone(),
        state: task.kept.get(STATE).cloned(),
        fence: Some(task.fence),
        ..Inputs::default()
    };
    runner.workspace(&task.id.to_string(), inputs)
}

/// What shall be kept by now and is not kept yet.
pub(super) fn keep(runner: &Runner, task: &Task) -> Result<BTreeMap<String, Secret>, Fault> {
    let bare = bare(runner, task)?;
    let with = folder::read(&bare.at(TRIED)).ok().flatten().map(Secret::new);
    let providers = with.as_ref().and_then(|_| tried(runner, task).ok()?.providers());
    let all = [(STATE, bare.state()), (WITH, with), (PROVIDERS, providers)];
    let all = all.into_iter().filter_map(|(name, secret)| Some((name.to_owned(), secret?)));
    Ok(all.filter(|(name, secret)| task.kept.get(name) != Some(secret)).collect())
}

/// Variables that must not be seen, and the others: a module says so, or their names do.
fn parted(
    variables: Map<String, Value>,
    files: &Files,
    folder: &str,
) -> (Map<String, Value>, Map<String, Value>) {
    let sensitive = |(path, text)| module::sensitive(path, &String::from_utf8_lossy(text));
    let declared: Vec<_> = files::sources(files, folder).flat_map(sensitive).collect();
    variables.into_iter().partition(|(name, _)| looks_secret(name) || declared.contains(name))
}

/// What a resource gives to others: no output that is sensitive, or that has a secret in it.
pub(super) fn applied(task: &Task, workspace: &Workspace, outputs: &Outputs) -> Outcome {
    let hidden = Hidden::of(&workspace.inputs.secret_variables)
        .and_variables(&workspace.inputs.past_secrets)
        .and_outputs(workspace.state().as_ref());
    let mut given = Map::new();
    for (name, value, is_sensitive) in outputs.all() {
        if is_sensitive {
            task.log.say(format!("The output {name} is sensitive: it stays in the state."));
        } else if hidden.is_in(value) {
            task.log.say(format!("The output {name} has a secret in it: it stays in the state."));
        } else {
            given.insert(name.clone(), value.clone());
        }
    }
    Outcome { outputs: given, link: None }
}
