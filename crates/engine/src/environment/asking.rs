//! What users ask of environments: checked, planned and written down in the caller's transaction.
//!
//! Nothing is carried out here. Whoever calls these holds the environment
//! ([`store::environment::take`]), commits, and follows its status.

use std::collections::BTreeMap;

use model::environment::{Environment, OnDrift, Status};
use model::resource::{self, Resource};
use model::template::{self, Act, Context, Expanded, Node, Plan, Source, Step, plan};
use model::{Invalid, OrganizationId, Time, UserId};
use serde_json::{Map, Value};
use store::environment::NewEnvironment;
use store::template::Published;
use store::{Error, Read, Result, Scope, Tx};

/// An environment as someone asks for it. Names and tags were checked.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// The templates that it shall be made from, `name@version`.
    pub templates: Vec<String>,
    /// What is set.
    pub parameters: Map<String, Value>,
    /// What is done when a resource is not as it was made.
    pub on_drift: OnDrift,
    /// When it shall be destroyed.
    pub destroy_at: Option<Time>,
    /// What exists already and shall be taken over: by resource, as its executor names it.
    pub adopt: BTreeMap<String, String>,
}

/// What of an environment shall change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The templates that it shall be made from, if others.
    pub templates: Option<Vec<String>>,
    /// What is set anew; null takes the default again. What is not named stays.
    pub parameters: Map<String, Value>,
}

/// What templates and parameters come to, beside what exists.
#[derive(Debug)]
pub struct Drawn {
    /// The templates.
    pub templates: Vec<Published>,
    /// What they come to.
    pub expanded: Expanded,
    /// What was set, without defaults.
    pub parameters: Map<String, Value>,
    /// What has to be done.
    pub plan: Plan,
}

/// Plans an environment that is not there yet.
pub async fn plan_new(
    read: &mut Read,
    owner: OrganizationId,
    templates: &[String],
    parameters: &Map<String, Value>,
) -> Result<Drawn> {
    draw(read, owner, None, templates, parameters.clone(), &[]).await
}

/// Plans a change of an environment.
pub async fn plan_change(read: &mut Read, now: &Environment, change: &Change) -> Result<Drawn> {
    let templates = change.templates.as_ref().unwrap_or(&now.templates);
    let exists = store::resource::of(read, now.id).await?;
    let mut parameters = now.parameters.clone();
    if change.templates.is_some() {
        // What another version knows no more is no one's mistake.
        let known = published(read, now.organization_id, templates).await?;
        parameters
            .retain(|name, _| known.iter().any(|one| one.template.parameters.contains_key(name)));
    }
    for (name, value) in &change.parameters {
        match value {
            Value::Null => parameters.remove(name),
            value => parameters.insert(name.clone(), value.clone()),
        };
    }
    draw(read, now.organization_id, Some(now), templates, parameters, &exists).await
}

/// Plans the end of an environment.
pub async fn plan_end(read: &mut Read, now: &Environment) -> Result<Plan> {
    let exists = store::resource::of(read, now.id).await?;
    let exists: Vec<_> = exists.iter().map(Resource::existing).collect();
    Ok(template::plan_destruction(&exists))
}

async fn draw(
    read: &mut Read,
    owner: OrganizationId,
    now: Option<&Environment>,
    templates: &[String],
    parameters: Map<String, Value>,
    exists: &[Resource],
) -> Result<Drawn> {
    let templates = published(read, owner, templates).await?;
    let sources: Vec<_> = templates
        .iter()
        .map(|one| Source { template: &one.template, files_print: &one.files_print })
        .collect();
    let expanded = template::expand(&sources, &parameters)?;
    must_keep_executors(&expanded.nodes, exists)?;
    let context = Context {
        environment_id: now.map(|now| now.id.to_string()).unwrap_or_default(),
        environment_name: now.map(|now| now.name.clone()).unwrap_or_default(),
        parameters: expanded.parameters.clone(),
        outputs: resource::outputs(exists),
    };
    let exists: Vec<_> = exists.iter().map(Resource::existing).collect();
    let plan = plan(&expanded.nodes, &context, &exists);
    Ok(Drawn { templates, expanded, parameters, plan })
}

/// What was made by one executor can't be taken away by another.
fn must_keep_executors(nodes: &[Node], exists: &[Resource]) -> Result<()> {
    let made: BTreeMap<&str, &Resource> = exists
        .iter()
        .filter(|one| one.fence > 0)
        .map(|one| (one.node.name.as_str(), one))
        .collect();
    let differs = |node: &&Node| {
        made.get(node.name.as_str()).is_some_and(|one| one.node.executor != node.executor)
    };
    let Some(node) = nodes.iter().find(differs) else { return Ok(()) };
    let (name, was) = (&node.name, made[node.name.as_str()].node.executor);
    let why = format!(
        "{name} was made by the executor {was} and would be made by {}: call the new one something else",
        node.executor
    );
    Err(Invalid::new("templates", why).into())
}

/// The templates of these names: each must be there, and none twice.
async fn published(
    read: &mut Read,
    owner: OrganizationId,
    names: &[String],
) -> Result<Vec<Published>> {
    let mut all: Vec<Published> = Vec::new();
    if names.is_empty() {
        let why = "must name one template at least, such as \"web-shop@1.4.0\"";
        return Err(Invalid::new("templates", why).into());
    }
    for (i, text) in names.iter().enumerate() {
        let field = format!("templates[{i}]");
        let (name, version) = template::parse_reference(&field, text)?;
        let scope = Scope::Organization(owner);
        let found = match store::template::get(read, scope, &name, &version).await {
            Err(Error::NotFound { .. }) => {
                let why =
                    format!("there is no template {text}; \"paddock template list\" shows all");
                return Err(Invalid::new(field, why).into());
            }
            other => other?,
        };
        if all.iter().any(|one| one.template.name == name) {
            return Err(Invalid::new(field, format!("{name} is named twice")).into());
        }
        all.push(found);
    }
    Ok(all)
}

/// Asks for an environment. With a plan's hash it is refused if the world has moved since.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    user: UserId,
    wish: &Wish,
    hash: Option<&str>,
) -> Result<Environment> {
    let drawn = plan_new(tx, owner, &wish.templates, &wish.parameters).await?;
    must_not_be_deprecated(&drawn.templates, &[])?;
    must_be_the_plan(&drawn.plan, hash)?;
    let new = NewEnvironment {
        name: wish.name.clone(),
        description: wish.description.clone(),
        tags: wish.tags.clone(),
        templates: ids(&drawn.templates),
        parameters: drawn.parameters.clone(),
        on_drift: wish.on_drift,
        destroy_at: wish.destroy_at,
        created_by: user,
    };
    let made = store::environment::create(tx, owner, &new).await?;
    for node in &drawn.expanded.nodes {
        let mut one =
            store::resource::create(tx, owner, made.id, node, "Waits for its turn.").await?;
        if let Some(what) = wish.adopt.get(&node.name) {
            one.adopt = Some(what.clone());
            store::resource::save(tx, &mut one, "updated").await?;
        }
    }
    let known = |name: &String| drawn.expanded.nodes.iter().any(|node| node.name == *name);
    if let Some(name) = wish.adopt.keys().find(|name| !known(name)) {
        let why = format!("there is no resource {name}");
        return Err(Invalid::new(format!("adopt.{name}"), why).into());
    }
    Ok(made)
}

fn ids(templates: &[Published]) -> Vec<(model::TemplateId, String)> {
    templates.iter().map(|one| (one.id, one.reference())).collect()
}

/// What is made from a deprecated template stays; nothing new is made from it.
fn must_not_be_deprecated(templates: &[Published], used: &[String]) -> Result<()> {
    for (i, one) in templates.iter().enumerate() {
        let reference = one.reference();
        if let (Some(why), false) = (&one.deprecated_why, used.contains(&reference)) {
            let why = format!("{reference} is deprecated: {why}");
            return Err(Invalid::new(format!("templates[{i}]"), why).into());
        }
    }
    Ok(())
}

fn must_be_the_plan(plan: &Plan, hash: Option<&str>) -> Result<()> {
    match hash {
        Some(hash) if hash != plan.hash => Err(Error::Conflict(format!(
            "the world has moved since the plan {hash}: what would be done now is the plan {}; look at \
             it and apply that",
            plan.hash
        ))),
        _ => Ok(()),
    }
}

/// Has an environment be changed. With a plan's hash it is refused if the world has moved since.
pub async fn apply(
    tx: &mut Tx,
    now: &mut Environment,
    change: &Change,
    hash: Option<&str>,
) -> Result<Plan> {
    must_rest(now)?;
    let drawn = plan_change(tx, now, change).await?;
    must_not_be_deprecated(&drawn.templates, &now.templates)?;
    must_be_the_plan(&drawn.plan, hash)?;
    let templates = ids(&drawn.templates);
    store::environment::set_templates(tx, now.id, &templates).await?;
    now.templates = templates.into_iter().map(|(_, name)| name).collect();
    now.parameters = drawn.parameters;
    now.generation += 1;
    now.is_cancelled = false;
    let exists = store::resource::of(tx, now.id).await?;
    let mut exists: BTreeMap<String, Resource> =
        exists.into_iter().map(|one| (one.node.name.clone(), one)).collect();
    let nodes: BTreeMap<&str, &Node> =
        drawn.expanded.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for step in &drawn.plan.steps {
        let node = nodes.get(step.name.as_str()).copied();
        write_step(tx, now, step, node, exists.remove(&step.name)).await?;
    }
    begin(tx, now, "It is being changed.").await?;
    Ok(drawn.plan)
}

async fn write_step(
    tx: &mut Tx,
    now: &Environment,
    step: &Step,
    node: Option<&Node>,
    exists: Option<Resource>,
) -> Result<()> {
    let Some(mut one) = exists else {
        if let Some(node) = node {
            let owner = now.organization_id;
            store::resource::create(tx, owner, now.id, node, &step.reason).await?;
        }
        return Ok(());
    };
    let before = one.clone();
    one.aim(node, step.act);
    if step.act == Act::Nothing {
        // Its destruction may have been called off.
        one.act = Act::Nothing;
        if one != before {
            store::resource::save(tx, &mut one, "updated").await?;
        }
        return Ok(());
    }
    one.generation += 1;
    pend(tx, &mut one, &step.reason).await
}

/// Has a resource wait for its turn.
pub(crate) async fn pend(tx: &mut Tx, one: &mut Resource, reason: &str) -> Result<()> {
    one.progress = 0;
    if one.status == resource::Status::Pending {
        reason.clone_into(&mut one.status_reason);
        return store::resource::save(tx, one, "pending").await;
    }
    store::resource::advance(tx, one, resource::Status::Pending, reason).await
}

async fn begin(tx: &mut Tx, now: &mut Environment, reason: &str) -> Result<()> {
    now.is_cancelled = false;
    match now.status {
        Status::Deploying => store::environment::save(tx, now, "updated").await,
        _ => store::environment::advance(tx, now, Status::Deploying, reason).await,
    }
}

fn must_rest(now: &Environment) -> Result<()> {
    let words = match now.status {
        Status::Validating | Status::Deployed | Status::Failed => return Ok(()),
        Status::Deploying => "is being deployed: wait for it, or cancel that first",
        Status::Destroying => "is being destroyed",
        Status::Destroyed => "is destroyed: ask for another one",
    };
    Err(Error::Conflict(format!("the environment {} {words}", now.name)))
}

/// Has an environment be destroyed.
pub async fn destroy(tx: &mut Tx, now: &mut Environment, reason: &str) -> Result<()> {
    if matches!(now.status, Status::Destroying | Status::Destroyed) {
        return Ok(());
    }
    now.is_cancelled = false;
    store::environment::advance(tx, now, Status::Destroying, reason).await?;
    store::resource::doom(tx, now.id).await?;
    for mut one in store::resource::of(tx, now.id).await? {
        // What could not be made may be there in part.
        if one.status == resource::Status::Failed {
            one.attempts = 0;
            pend(tx, &mut one, "It shall go.").await?;
        }
        store::resource::wake(tx, one.id);
    }
    Ok(())
}

/// Has what goes on be stopped. It is over when the environment has failed, or is destroyed.
pub async fn cancel(tx: &mut Tx, now: &mut Environment) -> Result<()> {
    if !matches!(now.status, Status::Deploying | Status::Validating | Status::Destroying) {
        let why = format!("nothing goes on in the environment {}: it is {}", now.name, now.status);
        return Err(Error::Conflict(why));
    }
    now.is_cancelled = true;
    store::environment::save(tx, now, "cancelling").await?;
    wake_all(tx, now).await
}

/// Has the worker look at every resource of an environment.
pub(crate) async fn wake_all(tx: &mut Tx, now: &Environment) -> Result<()> {
    for one in store::resource::of(tx, now.id).await? {
        store::resource::wake(tx, one.id);
    }
    Ok(())
}

/// Goes on with what failed.
pub async fn retry(tx: &mut Tx, now: &mut Environment) -> Result<()> {
    if now.status != Status::Failed {
        let why = format!("the environment {} has not failed: it is {}", now.name, now.status);
        return Err(Error::Conflict(why));
    }
    let all = store::resource::of(tx, now.id).await?;
    let is_end = !all.is_empty() && all.iter().all(|one| one.act == Act::Destroy);
    for mut one in all {
        if one.status == resource::Status::Failed {
            // What failed is asked for once more, not found again as it ended.
            one.generation += 1;
            pend(tx, &mut one, "It is tried again.").await?;
        }
    }
    now.is_cancelled = false;
    let (to, reason) = if is_end {
        (Status::Destroying, "Its destruction is tried again.")
    } else {
        (Status::Deploying, "What failed is tried again.")
    };
    store::environment::advance(tx, now, to, reason).await
}

/// Mends what is not as it was made: these resources, or all that have drifted.
pub async fn repair(
    tx: &mut Tx,
    now: &mut Environment,
    names: Option<&[String]>,
) -> Result<Vec<String>> {
    must_rest(now)?;
    let mut mended = Vec::new();
    let all = store::resource::of(tx, now.id).await?;
    if let Some(unknown) =
        names.and_then(|names| names.iter().find(|name| all.iter().all(|r| r.node.name != **name)))
    {
        let why = format!("there is no resource {unknown} in the environment {}", now.name);
        return Err(Invalid::new("resources", why).into());
    }
    for mut one in all {
        let is_meant = names.is_none_or(|names| names.contains(&one.node.name));
        if is_meant && one.status == resource::Status::Drifted {
            one.act = Act::Update;
            one.generation += 1;
            pend(tx, &mut one, "It is mended.").await?;
            mended.push(one.node.name);
        }
    }
    if !mended.is_empty() {
        begin(tx, now, "What has drifted is mended.").await?;
    }
    Ok(mended)
}

/// Has all resources be looked at now.
pub async fn observe(tx: &mut Tx, now: &Environment) -> Result<()> {
    for mut one in store::resource::of(tx, now.id).await? {
        if matches!(one.status, resource::Status::Applied | resource::Status::Drifted) {
            one.observed_at = None;
            store::resource::save(tx, &mut one, "observing").await?;
        }
    }
    Ok(())
}

/// Sets when an environment shall be destroyed; never, if that is none.
pub async fn set_destroy_at(tx: &mut Tx, now: &mut Environment, at: Option<Time>) -> Result<()> {
    if matches!(now.status, Status::Destroying | Status::Destroyed) {
        must_rest(now)?;
    }
    (now.destroy_at, now.reminders) = (at, 0);
    now.generation += 1;
    store::environment::save(tx, now, "extended").await
}

/// Has a resource that is not made yet take over what exists.
pub async fn adopt(
    tx: &mut Tx,
    now: &Environment,
    mut one: Resource,
    what: &str,
) -> Result<Resource> {
    if one.print.is_some() || one.status.is_running() {
        return Err(Error::Conflict(format!(
            "the resource {} of the environment {} is {}: only what is not made yet can take over what \
             exists",
            one.node.name, now.name, one.status
        )));
    }
    one.adopt = Some(what.to_owned());
    store::resource::save(tx, &mut one, "updated").await?;
    Ok(one)
}
