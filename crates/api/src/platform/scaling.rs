//! Pools: what may grow and shrink by itself, what was decided, and why.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use engine::scaling::{Look, look};
use model::scaling::{Host, Template, Waiting};
use model::{Resources, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::{App, Problem};

/// A pool of clusters that grows and shrinks by itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pool {
    /// Its name.
    name: String,
    /// What it does now: `grow`, `shrink`, `stay`.
    decision: String,
    /// Why.
    reason: String,
    /// Since when it is decided so.
    #[schema(value_type = String, format = DateTime)]
    since: Time,
    /// When it is looked at again, should nothing change before.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_look: Option<Time>,
    /// Why it would like to grow: `waiting`, `largest`, `slack`, `least`.
    wish: Option<String>,
    /// When it last made a cluster.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_grown_at: Option<Time>,
    /// When it last removed one.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_shrunk_at: Option<Time>,
    /// Does it only say what it would do?
    dry_run: bool,
    /// How many clusters it has, by status.
    clusters: BTreeMap<String, usize>,
    /// What is consumed of its clusters.
    #[schema(value_type = BTreeMap<String, f64>)]
    used: Resources,
    /// What is free on those that are ready.
    #[schema(value_type = BTreeMap<String, f64>)]
    free: Resources,
    /// What only holds room on them, and yields at once.
    #[schema(value_type = BTreeMap<String, f64>)]
    reserved: Resources,
    /// Who waits for it: fits nowhere now, and would on a new cluster.
    waiting: Vec<Waits>,
    /// What is set.
    settings: Settings,
}

/// Some who wait, alike.
#[derive(Serialize, ToSchema)]
pub(crate) struct Waits {
    /// What each of them asks for.
    #[schema(value_type = BTreeMap<String, f64>)]
    request: Resources,
    /// How many they are.
    count: usize,
    /// Since when the first of them waits.
    #[schema(value_type = String, format = DateTime)]
    since: Time,
}

/// What is set of a pool.
#[derive(Serialize, ToSchema)]
pub(crate) struct Settings {
    /// Which instances its clusters are for.
    hosts: Vec<Hosts>,
    /// What each of its clusters is like.
    cluster: ClusterTemplate,
    /// So many clusters there are always.
    at_least: u32,
    /// So many there may be.
    at_most: u32,
    /// When so much is consumed, nothing more is made.
    #[schema(value_type = BTreeMap<String, f64>)]
    limit: Resources,
    /// So much shall always be free.
    #[schema(value_type = BTreeMap<String, f64>)]
    slack: Resources,
    /// Each of these shall always fit on some node.
    #[schema(value_type = Vec<BTreeMap<String, f64>>)]
    largest: Vec<Resources>,
    /// How long somebody must have waited before a cluster is made for it.
    grow_after_waiting_seconds: u64,
    /// How long room must have been missing before a cluster is made.
    grow_after_seconds: u64,
    /// After a change in one direction there is none in the other for so long.
    cool_down_seconds: u64,
    /// How long a cluster must have been empty before it goes.
    idle_for_seconds: u64,
}

/// A type of instance that a pool's clusters are for.
#[derive(Serialize, ToSchema)]
pub(crate) struct Hosts {
    /// Of which kind.
    kind: String,
    /// Which type of it.
    r#type: String,
    /// For so many room is held on each cluster before anybody asks.
    reserved: u32,
}

/// What each cluster of a pool is like.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterTemplate {
    /// Who makes and serves it.
    provider: String,
    /// Whose machines it stands on.
    cloud_provider: String,
    /// Where at the cloud provider it stands.
    region: String,
    /// What is written on it.
    labels: BTreeMap<String, String>,
    /// How much it has.
    #[schema(value_type = BTreeMap<String, f64>)]
    capacity: Resources,
    /// How many nodes that is.
    nodes: usize,
}

/// All pools.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pools {
    /// In the order of the file.
    items: Vec<Pool>,
}

/// Lists what grows and shrinks by itself, with what was decided and why. For the platform administrator.
#[utoipa::path(get, path = "/api/v1/fleet/scaling", tag = "admin",
    responses((status = 200, body = Pools, description = "All pools in force"), Problem))]
pub(crate) async fn scaling_list(
    State(app): State<App>,
    caller: Caller,
) -> Result<Answer<Pools>, Problem> {
    caller.must_be_admin("see how the fleet grows")?;
    let mut items = Vec::new();
    for pool in app.rules.pools().iter() {
        let found = look(&app.db, &app.rules, &app.outlook, &pool.name).await?;
        items.extend(found.map(Pool::from));
    }
    Ok(Answer(Pools { items }))
}

impl From<Look> for Pool {
    fn from(look: Look) -> Self {
        let mut clusters = BTreeMap::new();
        for cluster in &look.clusters {
            *clusters.entry(cluster.status.to_string()).or_default() += 1;
        }
        let mut reserved = Resources::default();
        let nodes = look.seen.clusters.iter().flat_map(|cluster| &cluster.nodes);
        nodes.for_each(|node| reserved.add(&node.reserved));
        let state = look.state;
        Self {
            name: state.name,
            decision: state.decision,
            reason: state.reason,
            since: state.decided_at,
            next_look: state.look_again,
            wish: state.memory.wish.map(|wish| wish.to_string()),
            last_grown_at: state.memory.grown_at,
            last_shrunk_at: state.memory.shrunk_at,
            dry_run: look.pool.dry_run,
            clusters,
            used: look.seen.consumed(),
            free: look.seen.free(),
            reserved,
            waiting: look.seen.waiting.into_iter().map(Waits::from).collect(),
            settings: Settings::from(look.pool),
        }
    }
}

impl From<Waiting> for Waits {
    fn from(waiting: Waiting) -> Self {
        Self { request: waiting.request, count: waiting.count, since: waiting.since }
    }
}

impl From<model::scaling::Pool> for Settings {
    fn from(pool: model::scaling::Pool) -> Self {
        let pace = pool.pace;
        Self {
            hosts: pool.hosts.into_iter().map(Hosts::from).collect(),
            cluster: ClusterTemplate::from(pool.template),
            at_least: pool.at_least,
            at_most: pool.at_most,
            limit: pool.limit,
            slack: pool.slack,
            largest: pool.largest,
            grow_after_waiting_seconds: pace.grow_after_waiting.as_secs(),
            grow_after_seconds: pace.grow_after.as_secs(),
            cool_down_seconds: pace.cool_down.as_secs(),
            idle_for_seconds: pace.idle_for.as_secs(),
        }
    }
}

impl From<Host> for Hosts {
    fn from(host: Host) -> Self {
        Self { kind: host.kind, r#type: host.instance_type, reserved: host.reserved }
    }
}

impl From<Template> for ClusterTemplate {
    fn from(template: Template) -> Self {
        Self {
            nodes: template.all_nodes().len(),
            provider: template.provider.to_string(),
            cloud_provider: template.cloud_provider,
            region: template.region,
            labels: template.labels,
            capacity: template.capacity,
        }
    }
}
