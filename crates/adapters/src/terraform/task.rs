//! The workspace of a resource, and its outputs.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Secret;
use model::template::configuration;
use port::{Fault, Files, Outcome, Task};
use serde_json::{Map, Value};

use super::inputs::{Inputs, Outputs};
use super::redact::{Redactor, looks_secret};
use super::steps::LAST_SPEC;
use super::workspace::Workspace;
use super::{Runner, files, folder, module};

/// The names under which the state, the last spec and the dependency lock file are persisted.
const STATE: &str = "state";
const WITH: &str = "with";
const PROVIDERS: &str = "providers";

/// The workspace of a resource with the spec `with`.
pub(super) fn workspace(
    runner: &Runner,
    task: &Task,
    with: &Map<String, Value>,
) -> Result<Workspace, Fault> {
    let spec: configuration::Terraform =
        configuration::read(with).map_err(|invalid| Fault::Refused(invalid.to_string()))?;
    let folder = files::folder_of(&spec.source);
    let (secret_variables, variables) = split_secrets(spec.variables, &task.files, folder);
    let past_secrets = past_secrets(task);
    let limit = spec.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let inputs = Inputs {
        module: folder.to_owned(),
        files: Some(task.files.clone()),
        variables,
        secret_variables,
        past_secrets,
        credentials: task.credentials.clone(),
        state: task.persisted.get(STATE).cloned(),
        providers: task.persisted.get(PROVIDERS).cloned(),
        limit: Some(limit.unwrap_or(runner.options.timeout)),
        fence: Some(task.fence),
    };
    runner.workspace(&task.id.to_string(), inputs)
}

/// The secret variables of the last apply and of the last attempt.
fn past_secrets(task: &Task) -> Map<String, Value> {
    let last = task.persisted.get(WITH);
    let last: Option<Map<_, _>> = last.and_then(|text| serde_json::from_str(text.reveal()).ok());
    let mut past: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for with in task.applied.iter().chain(&last) {
        let Ok(spec) = configuration::read::<configuration::Terraform>(with) else { continue };
        let folder = files::folder_of(&spec.source);
        for (name, value) in split_secrets(spec.variables, &task.files, folder).0 {
            past.entry(name).or_default().push(value);
        }
    }
    past.into_iter().map(|(name, values)| (name, values.into())).collect()
}

/// The workspace with the spec of the last attempt; with the desired one if there was none.
pub(super) fn last_attempt(runner: &Runner, task: &Task) -> Result<Workspace, Fault> {
    let local = folder::read(&bare(runner, task)?.at(LAST_SPEC)).ok().flatten();
    let persisted = || task.persisted.get(WITH).map(|text| text.reveal().to_owned());
    let with = local.or_else(persisted).and_then(|text| serde_json::from_str(&text).ok());
    workspace(runner, task, with.as_ref().unwrap_or(&task.with))
}

/// The workspace of a resource without inputs, to inspect it: `with` may still contain expressions.
pub(super) fn bare(runner: &Runner, task: &Task) -> Result<Workspace, Fault> {
    let inputs = Inputs {
        module: task.name.clone(),
        state: task.persisted.get(STATE).cloned(),
        fence: Some(task.fence),
        ..Inputs::default()
    };
    runner.workspace(&task.id.to_string(), inputs)
}

/// The values to persist that are not persisted yet.
pub(super) fn to_persist(runner: &Runner, task: &Task) -> Result<BTreeMap<String, Secret>, Fault> {
    let bare = bare(runner, task)?;
    let with = folder::read(&bare.at(LAST_SPEC)).ok().flatten().map(Secret::new);
    let providers = with.as_ref().and_then(|_| last_attempt(runner, task).ok()?.providers());
    let all = [(STATE, bare.state()), (WITH, with), (PROVIDERS, providers)];
    let all = all.into_iter().filter_map(|(name, secret)| Some((name.to_owned(), secret?)));
    Ok(all.filter(|(name, secret)| task.persisted.get(name) != Some(secret)).collect())
}

/// Splits variables into secret ones, by declaration or by name, and others.
fn split_secrets(
    variables: Map<String, Value>,
    files: &Files,
    folder: &str,
) -> (Map<String, Value>, Map<String, Value>) {
    let sensitive = |(path, text)| module::sensitive(path, &String::from_utf8_lossy(text));
    let declared: Vec<_> = files::sources(files, folder).flat_map(sensitive).collect();
    variables.into_iter().partition(|(name, _)| looks_secret(name) || declared.contains(name))
}

/// The outcome of an apply, without outputs that are sensitive or contain a secret.
pub(super) fn outcome(task: &Task, workspace: &Workspace, outputs: &Outputs) -> Outcome {
    let redactor = Redactor::new(&workspace.inputs.secret_variables)
        .and_variables(&workspace.inputs.past_secrets)
        .and_outputs(workspace.state().as_ref());
    let mut shown = Map::new();
    for (name, value, is_sensitive) in outputs.all() {
        if is_sensitive {
            task.log.append(format!("Output {name} is sensitive and not exported."));
        } else if redactor.is_in(value) {
            task.log.append(format!("Output {name} contains a secret and is not exported."));
        } else {
            shown.insert(name.clone(), value.clone());
        }
    }
    Outcome { outputs: shown, link: None }
}
