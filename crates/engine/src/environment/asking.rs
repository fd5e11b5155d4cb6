//! What users ask of environments: checked, planned and written down in the caller's transaction.
//!
//! Nothing is carried out here. Whoever calls these holds the environment
//! ([`store::environment::take`]), commits, and follows its status.

use std::collections::BTreeMap;

use model::environment::{Environment, OnDrift, Reason, Status};
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
    /// What exists already and shall be taken over: by resource, as its executor names it.
    pub adopt: BTreeMap<String, String>,
    /// What it is for, if something else.
    pub description: Option<String>,
    /// All that users write on it from now on, if something else.
    pub tags: Option<BTreeMap<String, String>>,
    /// What is done when a resource is not as it was made, if something else.
    pub on_drift: Option<OnDrift>,
    /// When it shall be destroyed, if at another time.
    pub destroy_at: Option<Time>,
}

impl Change {
    /// Puts on an environment what is no part of its plan.
    fn put_on(&self, now: &mut Environment) {
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
    let templates = published(read, owner, templates, &[]).await?;
    draw(None, templates, parameters.clone(), &[])
}

/// Plans a change of an environment.
pub async fn plan_change(read: &mut Read, now: &Environment, change: &Change) -> Result<Drawn> {
    let names = change.templates.as_ref().unwrap_or(&now.templates);
    let present = super::templates(read, now).await?;
    let templates = published(read, now.organization_id, names, &present).await?;
    let exists = store::resource::of(read, now.id).await?;
    let mut parameters = now.parameters.clone();
    if change.templates.is_some() {
        // What another version knows no more is no one's mistake.
        let is_known =
            |name: &String| templates.iter().any(|one| one.template.parameters.contains_key(name));
        parameters.retain(|name, _| is_known(name));
    }
    for (name, value) in &change.parameters {
        match value {
            Value::Null => parameters.remove(name),
            value => parameters.insert(name.clone(), value.clone()),
        };
    }
    draw(Some(now), templates, parameters, &exists)
}

/// Plans the end of an environment.
pub async fn plan_end(read: &mut Read, now: &Environment) -> Result<Plan> {
    let exists = store::resource::of(read, now.id).await?;
    let exists: Vec<_> = exists.iter().map(Resource::existing).collect();
    Ok(template::plan_destruction(&exists))
}

fn draw(
    now: Option<&Environment>,
    templates: Vec<Published>,
    parameters: Map<String, Value>,
    exists: &[Resource],
) -> Result<Drawn> {
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

/// The templates of these names: each must be there, and none twice. One that is among `present` is that
/// very one, whatever else was published under its name since.
async fn published(
    read: &mut Read,
    owner: OrganizationId,
    names: &[String],
    present: &[Published],
) -> Result<Vec<Published>> {
    let mut all: Vec<Published> = Vec::new();
    if names.is_empty() {
        let why = "must name one template at least, such as \"web-shop@1.4.0\"";
        return Err(Invalid::new("templates", why).into());
    }
    for (i, text) in names.iter().enumerate() {
        let field = format!("templates[{i}]");
        let (name, version) = template::parse_reference(&field, text)?;
        let is_meant =
            |one: &&Published| one.template.name == name && one.template.version == version;
        let found = match present.iter().find(is_meant) {
            Some(one) => one.clone(),
            None => named(read, owner, &field, &name, &version).await?,
        };
        if all.iter().any(|one| one.template.name == name) {
            return Err(Invalid::new(field, format!("{name} is named twice")).into());
        }
        all.push(found);
    }
    Ok(all)
}

async fn named(
    read: &mut Read,
    owner: OrganizationId,
    field: &str,
    name: &str,
    version: &str,
) -> Result<Published> {
    match store::template::get(read, Scope::Organization(owner), name, version).await {
        Err(Error::NotFound { .. }) => {
            let why = format!("there is no template {name}@{version}");
            Err(Invalid::new(field, why).into())
        }
        other => other,
    }
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
        let (reason, what) = (resource::Reason::AsExpected, wish.adopt.get(&node.name));
        create_resource(tx, &made, node, &reason, what).await?;
    }
    must_be_adoptable(&wish.adopt, &drawn.expanded.nodes, &[])?;
    Ok(made)
}

/// Creates a resource, which adopts what exists, if that is named.
async fn create_resource(
    tx: &mut Tx,
    of: &Environment,
    node: &Node,
    reason: &resource::Reason,
    what: Option<&String>,
) -> Result<()> {
    let mut made = store::resource::create(tx, of.organization_id, of.id, node, reason).await?;
    if what.is_some() {
        made.adopt = what.cloned();
        store::resource::save(tx, &mut made, "updated").await?;
    }
    Ok(())
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
    let exists = store::resource::take_all(tx, now.id).await?;
    let drawn = plan_change(tx, now, change).await?;
    must_not_be_deprecated(&drawn.templates, &now.templates)?;
    must_be_the_plan(&drawn.plan, hash)?;
    must_be_adoptable(&change.adopt, &drawn.expanded.nodes, &exists)?;
    let templates = ids(&drawn.templates);
    store::environment::set_templates(tx, now.id, &templates).await?;
    now.templates = templates.into_iter().map(|(_, name)| name).collect();
    now.parameters = drawn.parameters;
    change.put_on(now);
    now.generation += 1;
    let mut exists: BTreeMap<String, Resource> =
        exists.into_iter().map(|one| (one.node.name.clone(), one)).collect();
    let nodes: BTreeMap<&str, &Node> =
        drawn.expanded.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for step in &drawn.plan.steps {
        let node = nodes.get(step.name.as_str()).copied();
        let what = change.adopt.get(&step.name);
        write_step(tx, now, step, node, exists.remove(&step.name), what).await?;
    }
    begin(tx, now, Reason::AsExpected).await?;
    Ok(drawn.plan)
}

/// What exists is taken over by what is planned and not made yet, and by nothing else.
fn must_be_adoptable(
    adopt: &BTreeMap<String, String>,
    nodes: &[Node],
    exists: &[Resource],
) -> Result<()> {
    let is_planned = |name: &String| nodes.iter().any(|node| node.name == *name);
    let is_made =
        |one: &&Resource| one.print.is_some() || one.link.is_some() || one.status.is_running();
    for name in adopt.keys() {
        let made = exists.iter().filter(is_made).find(|one| one.node.name == *name);
        let why = match made {
            _ if !is_planned(name) => format!("there is no resource {name}"),
            Some(one) => format!(
                "{name} is {}: only what is not made yet can take over what exists",
                one.status
            ),
            None => continue,
        };
        return Err(Invalid::new(format!("adopt.{name}"), why).into());
    }
    Ok(())
}

/// Writes down what is to be done to a resource, and what exists that it shall take over, if anything.
async fn write_step(
    tx: &mut Tx,
    now: &Environment,
    step: &Step,
    node: Option<&Node>,
    exists: Option<Resource>,
    what: Option<&String>,
) -> Result<()> {
    let reason = resource::Reason::Planned { why: step.reason.clone() };
    let Some(mut one) = exists else {
        let Some(node) = node else { return Ok(()) };
        return create_resource(tx, now, node, &reason, what).await;
    };
    let before = one.clone();
    // What an earlier try began to make as something else must not be taken for this.
    let is_other = one.link.is_some() && node.is_some_and(|node| node.print != one.node.print);
    let act = if step.act == Act::Create && is_other { Act::Replace } else { step.act };
    one.aim(node, act);
    if what.is_some() {
        one.adopt = what.cloned();
    }
    if step.act == Act::Nothing {
        // Its destruction may have been called off.
        one.act = Act::Nothing;
        if one != before {
            store::resource::save(tx, &mut one, "updated").await?;
        }
        return Ok(());
    }
    one.generation += 1;
    pend(tx, &mut one, reason).await
}

/// Has a resource wait for its turn.
pub(crate) async fn pend(tx: &mut Tx, one: &mut Resource, reason: resource::Reason) -> Result<()> {
    one.progress = 0;
    if one.status == resource::Status::Pending {
        one.reason = reason;
        return store::resource::save(tx, one, "pending").await;
    }
    store::resource::transition(tx, one, resource::Status::Pending, reason).await
}

async fn begin(tx: &mut Tx, now: &mut Environment, reason: Reason) -> Result<()> {
    now.is_cancelled = false;
    match now.status {
        Status::Deploying => store::environment::save(tx, now, "updated").await,
        _ => store::environment::transition(tx, now, Status::Deploying, reason).await,
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
pub async fn destroy(tx: &mut Tx, now: &mut Environment, reason: Reason) -> Result<()> {
    if matches!(now.status, Status::Destroying | Status::Destroyed) {
        return Ok(());
    }
    now.is_cancelled = false;
    store::environment::transition(tx, now, Status::Destroying, reason).await?;
    store::resource::doom(tx, now.id).await?;
    for mut one in store::resource::of(tx, now.id).await? {
        // What could not be made may be there in part.
        if one.status == resource::Status::Failed {
            one.attempts = 0;
            pend(tx, &mut one, resource::Reason::DestructionQueued { after: None }).await?;
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
    if now.status == Status::Validating {
        let reason = Reason::Cancelled { left: None };
        return store::environment::transition(tx, now, Status::Failed, reason).await;
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
    let all = store::resource::take_all(tx, now.id).await?;
    let is_end = !all.is_empty() && all.iter().all(|one| one.act == Act::Destroy);
    for mut one in all {
        if one.status == resource::Status::Failed {
            // What failed is asked for once more, not found again as it ended.
            one.generation += 1;
            pend(tx, &mut one, resource::Reason::RetryRequested).await?;
        }
    }
    now.is_cancelled = false;
    let to = if is_end { Status::Destroying } else { Status::Deploying };
    store::environment::transition(tx, now, to, Reason::RetryRequested).await
}

/// Mends what is not as it was made: these resources, or all that have drifted.
pub async fn repair(
    tx: &mut Tx,
    now: &mut Environment,
    names: Option<&[String]>,
) -> Result<Vec<String>> {
    must_rest(now)?;
    let mut mended = Vec::new();
    let all = store::resource::take_all(tx, now.id).await?;
    if let Some(unknown) =
        names.and_then(|names| names.iter().find(|name| all.iter().all(|r| r.node.name != **name)))
    {
        let why = format!("there is no resource {unknown} in the environment {}", now.name);
        return Err(Invalid::new("resources", why).into());
    }
    // Whoever cancelled something does not want it to go on because something else is mended.
    if let Some(one) = all.iter().find(|one| one.act != Act::Nothing) {
        return Err(Error::Conflict(format!(
            "a change of the environment {} did not come to its end ({} is {}): retry it, apply another \
             one or destroy it first",
            now.name, one.node.name, one.status
        )));
    }
    for mut one in all {
        let is_meant = names.is_none_or(|names| names.contains(&one.node.name));
        if is_meant && one.status == resource::Status::Drifted {
            one.act = Act::Update;
            one.generation += 1;
            pend(tx, &mut one, resource::Reason::RepairingDrift).await?;
            mended.push(one.node.name);
        }
    }
    if !mended.is_empty() {
        begin(tx, now, Reason::RepairingDrift { resources: mended.clone() }).await?;
    }
    Ok(mended)
}

/// Has all resources be looked at now.
pub async fn observe(tx: &mut Tx, now: &Environment) -> Result<()> {
    must_rest(now)?;
    for mut one in store::resource::take_all(tx, now.id).await? {
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
    if let Some(link) = &one.link {
        return Err(Error::Conflict(format!(
            "the {} {} was made for the resource {} already: retry it, or destroy the environment",
            link.kind, link.id, one.node.name
        )));
    }
    one.adopt = Some(what.to_owned());
    store::resource::save(tx, &mut one, "updated").await?;
    Ok(one)
}
