//! Who may adopt existing objects of external systems.
//!
//! Paddock reaches external systems with one identity for all organizations: who names an object
//! there need not be its owner. Objects of Paddock itself belong to an organization, which the
//! executor checks.

use std::collections::BTreeMap;

use model::access::{Action, SubjectKind, Verb};
use model::environment::Environment;
use model::resource::Resource;
use model::template::Executor;
use store::Tx;

use crate::app::Adopters;
use crate::caller::Caller;
use crate::{App, Problem};

/// Adopting objects of external systems.
const ADOPT: Action = Action::new(SubjectKind::Resource, Verb::Administer);

/// Fails if the request adopts objects of external systems and the caller may not. Called in the
/// transaction that records the adoptions.
pub(crate) async fn must_be_allowed(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    environment: &Environment,
    adopt: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    if adopt.is_empty() {
        return Ok(());
    }
    for resource in store::resource::list_of_environment(tx, environment.id).await? {
        if adopt.contains_key(&resource.node.name) {
            must_be_allowed_for(app, caller, &resource)?;
        }
    }
    Ok(())
}

/// The same, for one resource.
pub(crate) fn must_be_allowed_for(
    app: &App,
    caller: &Caller,
    resource: &Resource,
) -> Result<(), Problem> {
    let (executor, name) = (resource.node.executor, &resource.node.name);
    let is_external =
        matches!(executor, Executor::Terraform | Executor::ConsulKv | Executor::VaultSecret);
    let why = match app.settings.adopt {
        _ if !is_external => return Ok(()),
        Adopters::Owners if caller.allows(ADOPT) => return Ok(()),
        Adopters::Admin if caller.is_admin() => return Ok(()),
        Adopters::Owners => "only an owner of the organization may adopt them (--adopt owners)",
        Adopters::Admin => {
            "only the platform administrator may adopt them (--adopt admin); ask the administrator"
        }
        Adopters::Off => "adopting them is disabled on this server (--adopt off)",
    };
    Err(Problem::forbidden(format!(
        "Resource {name} ({executor}) would adopt an existing object of an external system: {why}."
    )))
}
