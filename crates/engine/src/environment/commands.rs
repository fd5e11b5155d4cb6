//! Commands on environments: validated, planned and recorded in the caller's transaction.
//!
//! Nothing is executed here. The caller locks the environment ([`store::environment::lock`]),
//! commits, and follows its status.

use std::collections::BTreeMap;

use model::environment::{Environment, OnDrift, Reason, Status};
use model::resource::{self, Resource};
use model::template::{self, Act, Context, Expanded, Node, Plan, Source, Step, plan};
use model::{Invalid, OrganizationId, Time, UserId};
use serde_json::{Map, Value};
use store::environment::NewEnvironment;
use store::template::Published;
use store::{Error, Read, Result, Scope, Tx};

/// Request for a new environment. Names and tags are validated.
#[derive(Debug, Clone)]
pub struct NewEnvironmentRequest {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Templates, as `name@version`.
    pub templates: Vec<String>,
    /// Parameter values.
    pub parameters: Map<String, Value>,
    /// What to do when drift is detected.
    pub on_drift: OnDrift,
    /// When to destroy it.
    pub destroy_at: Option<Time>,
    /// Existing objects to adopt: by resource, as the executor names them.
    pub adopt: BTreeMap<String, String>,
}

/// Fields of an environment to update.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// New templates, as `name@version`.
    pub templates: Option<Vec<String>>,
    /// Parameter values to change; null resets to the default. Others stay.
    pub parameters: Map<String, Value>,
    /// Existing objects to adopt: by resource, as the executor names them.
    pub adopt: BTreeMap<String, String>,
    /// New description.
    pub description: Option<String>,
    /// New tags; they replace all existing ones.
    pub tags: Option<BTreeMap<String, String>>,
    /// What to do when drift is detected.
    pub on_drift: Option<OnDrift>,
    /// When to destroy it.
    pub destroy_at: Option<Time>,
}

impl Change {
    /// Applies the fields that don't affect the plan.
    fn apply_metadata(&self, now: &mut Environment) {
        if let Some(description) = &self.description {
            now.description.clone_from(description);
        }
        if let Some(tags) = &self.tags {
            now.tags.clone_from(tags);
        }
        now.on_drift = self.on_drift.unwrap_or(now.on_drift);
        if self.destroy_at.is_some() {
            (now.destroy_at, now.reminders) = (self.destroy_at, 0);
        }
    }
}

/// Expanded templates and the plan that follows from them.
#[derive(Debug)]
pub struct PlannedEnvironment {
    /// The templates.
    pub templates: Vec<Published>,
    /// Their expansion.
    pub expanded: Expanded,
    /// The parameter values that were set, without defaults.
    pub parameters: Map<String, Value>,
    /// The plan.
    pub plan: Plan,
}

/// Plans a new environment.
pub async fn plan_new(
    read: &mut Read,
    owner: OrganizationId,
    templates: &[String],
    parameters: &Map<String, Value>,
) -> Result<PlannedEnvironment> {
    let templates = resolve_templates(read, owner, templates, &[]).await?;
    expand_and_plan(None, templates, parameters.clone(), &[])
}

/// Plans a change of an environment.
pub async fn plan_change(
    read: &mut Read,
    now: &Environment,
    change: &Change,
) -> Result<PlannedEnvironment> {
    let names = change.templates.as_ref().unwrap_or(&now.templates);
    let present = super::templates(read, now).await?;
    let templates = resolve_templates(read, now.organization_id, names, &present).await?;
    let existing = store::resource::list_of_environment(read, now.id).await?;
    let mut parameters = now.parameters.clone();
    if change.templates.is_some() {
        // Parameters that the new templates don't have are dropped silently.
        let is_defined =
            |name: &String| templates.iter().any(|t| t.template.parameters.contains_key(name));
        parameters.retain(|name, _| is_defined(name));
    }
    for (name, value) in &change.parameters {
        match value {
            Value::Null => parameters.remove(name),
            value => parameters.insert(name.clone(), value.clone()),
        };
    }
    expand_and_plan(Some(now), templates, parameters, &existing)
}

/// Plans the destruction of an environment.
pub async fn plan_destroy(read: &mut Read, now: &Environment) -> Result<Plan> {
    let existing = store::resource::list_of_environment(read, now.id).await?;
    let existing: Vec<_> = existing.iter().map(Resource::existing).collect();
    Ok(template::plan_destruction(&existing))
}

fn expand_and_plan(
    now: Option<&Environment>,
    templates: Vec<Published>,
    parameters: Map<String, Value>,
    existing: &[Resource],
) -> Result<PlannedEnvironment> {
    let sources: Vec<_> = templates
        .iter()
        .map(|t| Source { template: &t.template, files_print: &t.files_print })
        .collect();
    let expanded = template::expand(&sources, &parameters)?;
    must_keep_executors(&expanded.nodes, existing)?;
    let context = Context {
        environment_id: now.map(|now| now.id.to_string()).unwrap_or_default(),
        environment_name: now.map(|now| now.name.clone()).unwrap_or_default(),
        organization_id: now.map(|now| now.organization_id.to_string()).unwrap_or_default(),
        parameters: expanded.parameters.clone(),
        outputs: resource::outputs(existing),
    };
    let existing: Vec<_> = existing.iter().map(Resource::existing).collect();
    let plan = plan(&expanded.nodes, &context, &existing);
    Ok(PlannedEnvironment { templates, expanded, parameters, plan })
}

/// An object that one executor created can't be destroyed by another.
fn must_keep_executors(nodes: &[Node], existing: &[Resource]) -> Result<()> {
    let created: BTreeMap<&str, &Resource> = existing
        .iter()
        .filter(|resource| resource.fence > 0)
        .map(|resource| (resource.node.name.as_str(), resource))
        .collect();
    let differs = |node: &&Node| {
        created
            .get(node.name.as_str())
            .is_some_and(|resource| resource.node.executor != node.executor)
    };
    let Some(node) = nodes.iter().find(differs) else { return Ok(()) };
    let (name, was) = (&node.name, created[node.name.as_str()].node.executor);
    let why = format!(
        "resource {name} was created by executor {was} and can't change to {}: use another name",
        node.executor
    );
    Err(Invalid::new("templates", why).into())
}

/// Resolves template references: each must exist, none may be repeated. A template in `present` is
/// used as it is, even if its version was published again since.
async fn resolve_templates(
    read: &mut Read,
    owner: OrganizationId,
    names: &[String],
    present: &[Published],
) -> Result<Vec<Published>> {
    let mut all: Vec<Published> = Vec::new();
    if names.is_empty() {
        let why = "must name at least one template, for example \"web-shop@1.4.0\"";
        return Err(Invalid::new("templates", why).into());
    }
    for (i, text) in names.iter().enumerate() {
        let field = format!("templates[{i}]");
        let (name, version) = template::parse_reference(&field, text)?;
        let is_selected = |t: &&Published| t.template.name == name && t.template.version == version;
        let found = match present.iter().find(is_selected) {
            Some(published) => published.clone(),
            None => find_template(read, owner, &field, &name, &version).await?,
        };
        if all.iter().any(|t| t.template.name == name) {
            return Err(Invalid::new(field, format!("template {name} is repeated")).into());
        }
        all.push(found);
    }
    Ok(all)
}

async fn find_template(
    read: &mut Read,
    owner: OrganizationId,
    field: &str,
    name: &str,
    version: &str,
) -> Result<Published> {
    match store::template::get(read, Scope::Organization(owner), name, version).await {
        Err(Error::NotFound { .. }) => {
            let why = format!("template {name}@{version} not found");
            Err(Invalid::new(field, why).into())
        }
        other => other,
    }
}

/// Creates an environment. With `hash`, fails if the plan has changed since it was shown.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    user: UserId,
    request: &NewEnvironmentRequest,
    hash: Option<&str>,
) -> Result<Environment> {
    let planned = plan_new(tx, owner, &request.templates, &request.parameters).await?;
    must_not_be_deprecated(&planned.templates, &[])?;
    must_match_plan(&planned.plan, hash)?;
    let new = NewEnvironment {
        name: request.name.clone(),
        description: request.description.clone(),
        tags: request.tags.clone(),
        templates: ids(&planned.templates),
        parameters: planned.parameters.clone(),
        on_drift: request.on_drift,
        destroy_at: request.destroy_at,
        created_by: user,
    };
    let created = store::environment::create(tx, owner, &new).await?;
    for node in &planned.expanded.nodes {
        let (reason, what) = (resource::Reason::AsExpected, request.adopt.get(&node.name));
        create_resource(tx, &created, node, &reason, what).await?;
    }
    must_be_adoptable(&request.adopt, &planned.expanded.nodes, &[])?;
    Ok(created)
}

/// Creates a resource, which adopts an existing object if `what` names one.
async fn create_resource(
    tx: &mut Tx,
    environment: &Environment,
    node: &Node,
    reason: &resource::Reason,
    what: Option<&String>,
) -> Result<()> {
    let mut created =
        store::resource::create(tx, environment.organization_id, environment.id, node, reason)
            .await?;
    if what.is_some() {
        created.adopt = what.cloned();
        store::resource::save(tx, &mut created, "updated").await?;
    }
    Ok(())
}

fn ids(templates: &[Published]) -> Vec<(model::TemplateId, String)> {
    templates.iter().map(|t| (t.id, t.reference())).collect()
}

/// Existing environments keep a deprecated template; new uses are refused.
fn must_not_be_deprecated(templates: &[Published], used: &[String]) -> Result<()> {
    for (i, t) in templates.iter().enumerate() {
        let reference = t.reference();
        if let (Some(why), false) = (&t.deprecated_why, used.contains(&reference)) {
            let why = format!("{reference} is deprecated: {why}");
            return Err(Invalid::new(format!("templates[{i}]"), why).into());
        }
    }
    Ok(())
}

fn must_match_plan(plan: &Plan, hash: Option<&str>) -> Result<()> {
    match hash {
        Some(hash) if hash != plan.hash => Err(Error::Conflict(format!(
            "plan {hash} is outdated: the current plan is {}; review it and apply that one",
            plan.hash
        ))),
        _ => Ok(()),
    }
}

/// Changes an environment. With `hash`, fails if the plan has changed since it was shown.
pub async fn apply(
    tx: &mut Tx,
    now: &mut Environment,
    change: &Change,
    hash: Option<&str>,
) -> Result<Plan> {
    must_be_idle(now)?;
    let existing = store::resource::lock_all(tx, now.id).await?;
    let planned = plan_change(tx, now, change).await?;
    must_not_be_deprecated(&planned.templates, &now.templates)?;
    must_match_plan(&planned.plan, hash)?;
    must_be_adoptable(&change.adopt, &planned.expanded.nodes, &existing)?;
    let templates = ids(&planned.templates);
    store::environment::set_templates(tx, now.id, &templates).await?;
    now.templates = templates.into_iter().map(|(_, name)| name).collect();
    now.parameters = planned.parameters;
    change.apply_metadata(now);
    now.generation += 1;
    let mut existing: BTreeMap<String, Resource> =
        existing.into_iter().map(|resource| (resource.node.name.clone(), resource)).collect();
    let nodes: BTreeMap<&str, &Node> =
        planned.expanded.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for step in &planned.plan.steps {
        let node = nodes.get(step.name.as_str()).copied();
        let what = change.adopt.get(&step.name);
        record_step(tx, now, step, node, existing.remove(&step.name), what).await?;
    }
    begin(tx, now, Reason::AsExpected).await?;
    Ok(planned.plan)
}

/// Only planned resources without an object of their own can adopt an existing one.
fn must_be_adoptable(
    adopt: &BTreeMap<String, String>,
    nodes: &[Node],
    existing: &[Resource],
) -> Result<()> {
    let is_planned = |name: &String| nodes.iter().any(|node| node.name == *name);
    let has_object = |resource: &&Resource| {
        resource.print.is_some() || resource.link.is_some() || resource.status.is_running()
    };
    for name in adopt.keys() {
        let conflicting =
            existing.iter().filter(has_object).find(|resource| resource.node.name == *name);
        let why = match conflicting {
            _ if !is_planned(name) => format!("resource {name} not found"),
            Some(resource) => format!(
                "resource {name} is {}: only a resource that is not created yet can adopt an \
                 object",
                resource.status
            ),
            None => continue,
        };
        return Err(Invalid::new(format!("adopt.{name}"), why).into());
    }
    Ok(())
}

/// Records the planned action of a resource, and the existing object to adopt, if any.
async fn record_step(
    tx: &mut Tx,
    now: &Environment,
    step: &Step,
    node: Option<&Node>,
    existing: Option<Resource>,
    what: Option<&String>,
) -> Result<()> {
    let reason = resource::Reason::Planned { why: step.reason.clone() };
    let Some(mut resource) = existing else {
        let Some(node) = node else { return Ok(()) };
        return create_resource(tx, now, node, &reason, what).await;
    };
    let before = resource.clone();
    // An object that an earlier attempt created from another spec must not be taken for this one.
    let is_different =
        resource.link.is_some() && node.is_some_and(|node| node.print != resource.node.print);
    let act = if step.act == Act::Create && is_different { Act::Replace } else { step.act };
    resource.set_desired(node, act);
    if what.is_some() {
        resource.adopt = what.cloned();
    }
    if step.act == Act::Nothing {
        // A planned destruction may have been revoked.
        resource.act = Act::Nothing;
        if resource != before {
            store::resource::save(tx, &mut resource, "updated").await?;
        }
        return Ok(());
    }
    resource.generation += 1;
    queue(tx, &mut resource, reason).await
}

/// Queues a resource.
pub(crate) async fn queue(
    tx: &mut Tx,
    resource: &mut Resource,
    reason: resource::Reason,
) -> Result<()> {
    resource.progress = 0;
    if resource.status == resource::Status::Pending {
        resource.reason = reason;
        return store::resource::save(tx, resource, "pending").await;
    }
    store::resource::transition(tx, resource, resource::Status::Pending, reason).await
}

async fn begin(tx: &mut Tx, now: &mut Environment, reason: Reason) -> Result<()> {
    now.is_cancelled = false;
    match now.status {
        Status::Deploying => store::environment::save(tx, now, "updated").await,
        _ => store::environment::transition(tx, now, Status::Deploying, reason).await,
    }
}

fn must_be_idle(now: &Environment) -> Result<()> {
    let state = match now.status {
        Status::Validating | Status::Deployed | Status::Failed => return Ok(()),
        Status::Deploying => "is being deployed: wait until that is done, or cancel it first",
        Status::Destroying => "is being destroyed",
        Status::Destroyed => "is destroyed: create a new one",
    };
    Err(Error::Conflict(format!("environment {} {state}", now.name)))
}

/// Destroys an environment.
pub async fn destroy(tx: &mut Tx, now: &mut Environment, reason: Reason) -> Result<()> {
    if matches!(now.status, Status::Destroying | Status::Destroyed) {
        return Ok(());
    }
    now.is_cancelled = false;
    store::environment::transition(tx, now, Status::Destroying, reason).await?;
    store::resource::mark_for_deletion(tx, now.id).await?;
    for mut resource in store::resource::list_of_environment(tx, now.id).await? {
        // A failed resource may exist partially.
        if resource.status == resource::Status::Failed {
            resource.attempts = 0;
            queue(tx, &mut resource, resource::Reason::DestructionQueued { after: None }).await?;
        }
        store::resource::wake(tx, resource.id);
    }
    Ok(())
}

/// Cancels the running operation. The environment then fails, or is destroyed.
pub async fn cancel(tx: &mut Tx, now: &mut Environment) -> Result<()> {
    if !matches!(now.status, Status::Deploying | Status::Validating | Status::Destroying) {
        let why =
            format!("environment {} has no running operation: it is {}", now.name, now.status);
        return Err(Error::Conflict(why));
    }
    if now.status == Status::Validating {
        let reason = Reason::Cancelled { left: None };
        return store::environment::transition(tx, now, Status::Failed, reason).await;
    }
    now.is_cancelled = true;
    store::environment::save(tx, now, "cancelling").await?;
    wake_all(tx, now).await
}

/// Wakes the worker for every resource of an environment.
pub(crate) async fn wake_all(tx: &mut Tx, now: &Environment) -> Result<()> {
    for resource in store::resource::list_of_environment(tx, now.id).await? {
        store::resource::wake(tx, resource.id);
    }
    Ok(())
}

/// Retries a failed operation.
pub async fn retry(tx: &mut Tx, now: &mut Environment) -> Result<()> {
    if now.status != Status::Failed {
        let why = format!("environment {} has not failed: it is {}", now.name, now.status);
        return Err(Error::Conflict(why));
    }
    let all = store::resource::lock_all(tx, now.id).await?;
    let is_end = !all.is_empty() && all.iter().all(|resource| resource.act == Act::Destroy);
    for mut resource in all {
        if resource.status == resource::Status::Failed {
            // A new generation runs the operation again instead of finding its failed result.
            resource.generation += 1;
            queue(tx, &mut resource, resource::Reason::RetryRequested).await?;
        }
    }
    now.is_cancelled = false;
    let to = if is_end { Status::Destroying } else { Status::Deploying };
    store::environment::transition(tx, now, to, Reason::RetryRequested).await
}

/// Repairs drifted resources: those in `names`, or all.
pub async fn repair(
    tx: &mut Tx,
    now: &mut Environment,
    names: Option<&[String]>,
) -> Result<Vec<String>> {
    must_be_idle(now)?;
    let mut repaired = Vec::new();
    let all = store::resource::lock_all(tx, now.id).await?;
    if let Some(unknown) =
        names.and_then(|names| names.iter().find(|name| all.iter().all(|r| r.node.name != **name)))
    {
        let why = format!("resource {unknown} not found in environment {}", now.name);
        return Err(Invalid::new("resources", why).into());
    }
    // A repair must not resume a change that a user cancelled.
    if let Some(resource) = all.iter().find(|resource| resource.act != Act::Nothing) {
        return Err(Error::Conflict(format!(
            "the last change of environment {} is incomplete ({} is {}): retry it, apply another \
             one or destroy the environment first",
            now.name, resource.node.name, resource.status
        )));
    }
    for mut resource in all {
        let is_selected = names.is_none_or(|names| names.contains(&resource.node.name));
        if is_selected && resource.status == resource::Status::Drifted {
            resource.act = Act::Update;
            resource.generation += 1;
            queue(tx, &mut resource, resource::Reason::RepairingDrift).await?;
            repaired.push(resource.node.name);
        }
    }
    if !repaired.is_empty() {
        begin(tx, now, Reason::RepairingDrift { resources: repaired.clone() }).await?;
    }
    Ok(repaired)
}

/// Requests drift detection of all resources now.
pub async fn observe(tx: &mut Tx, now: &Environment) -> Result<()> {
    must_be_idle(now)?;
    for mut resource in store::resource::lock_all(tx, now.id).await? {
        if matches!(resource.status, resource::Status::Applied | resource::Status::Drifted) {
            resource.observed_at = None;
            store::resource::save(tx, &mut resource, "observing").await?;
        }
    }
    Ok(())
}

/// Sets when an environment is destroyed; `None` means never.
pub async fn set_destroy_at(tx: &mut Tx, now: &mut Environment, at: Option<Time>) -> Result<()> {
    if matches!(now.status, Status::Destroying | Status::Destroyed) {
        must_be_idle(now)?;
    }
    (now.destroy_at, now.reminders) = (at, 0);
    now.generation += 1;
    store::environment::save(tx, now, "extended").await
}

/// Lets a resource that is not created yet adopt an existing object.
pub async fn adopt(
    tx: &mut Tx,
    now: &Environment,
    mut resource: Resource,
    what: &str,
) -> Result<Resource> {
    if resource.print.is_some() || resource.status.is_running() {
        return Err(Error::Conflict(format!(
            "resource {} of environment {} is {}: only a resource that is not created yet can \
             adopt an object",
            resource.node.name, now.name, resource.status
        )));
    }
    if let Some(link) = &resource.link {
        return Err(Error::Conflict(format!(
            "{} {} was already created for resource {}: retry, or destroy the environment",
            link.kind, link.id, resource.node.name
        )));
    }
    resource.adopt = Some(what.to_owned());
    store::resource::save(tx, &mut resource, "updated").await?;
    Ok(resource)
}
