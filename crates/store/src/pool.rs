//! Pools: their persisted state, and the actions of autoscaling.
//!
//! An action is one transaction that begins with the pool's row: a decision based on an older
//! generation is rejected, so that concurrent servers never scale twice for the same demand.

use std::collections::BTreeMap;

use model::cluster::{Cluster, Hosting, NewCluster, Reason, Status};
use model::event::Kind;
use model::scaling::{Memory, Pool, Template};
use model::work::{Key, Lane};
use model::{ClusterId, Resources, Time};
use serde::Serialize;

use crate::db::{Json, Row, params, sql};
use crate::deployment::reserving;
use crate::{Error, Read, Result, Scope, Tx, cluster, event, work};

/// The worker that scales pools.
pub const WORKER: &str = "pool";

/// Persisted state of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// Name.
    pub name: String,
    /// Number of changes; 0 if nothing was written yet.
    pub generation: i64,
    /// Number of clusters that it has ever created.
    pub made: i64,
    /// Past actions, and the pending one.
    #[serde(flatten)]
    pub memory: Memory,
    /// Since when each of its clusters is empty.
    pub idle: BTreeMap<ClusterId, Time>,
    /// The last decision: `grow`, `shrink`, `stay`.
    pub decision: String,
    /// The reason, as a message.
    pub reason: String,
    /// Since when the decision stands.
    pub decided_at: Time,
    /// When to evaluate again without a change.
    pub look_again: Option<Time>,
}

macro_rules! columns {
    () => {
        "name, generation, made, grown_at, shrunk_at, wish, wish_since, idle, decision, reason, \
         decided_at, look_again"
    };
}

/// The state of a pool; a default if it was never evaluated.
pub async fn get(read: &mut Read, name: &str, now: Time) -> Result<State> {
    let sql = sql!("SELECT ", columns!(), " FROM pool WHERE name = $1");
    let found = read.first(sql, params![name]).await?.map(from_row).transpose()?;
    Ok(found.unwrap_or_else(|| State {
        name: name.to_owned(),
        generation: 0,
        made: 0,
        memory: Memory::default(),
        idle: BTreeMap::new(),
        decision: "stay".into(),
        reason: "Not evaluated yet.".into(),
        decided_at: now,
        look_again: None,
    }))
}

/// The clusters of a pool.
pub async fn clusters(read: &mut Read, name: &str) -> Result<Vec<Cluster>> {
    cluster::of_pool(read, name).await
}

/// Number of clusters by pool and status.
pub async fn counts(read: &mut Read) -> Result<Vec<(String, Status, i64)>> {
    let sql = sql!(
        "SELECT pool, status, COUNT(*) FROM cluster WHERE pool IS NOT NULL AND deleted_at IS NULL ",
        "GROUP BY pool, status ORDER BY pool, status"
    );
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// Wakes the worker for a pool.
pub fn wake(tx: &mut Tx, name: &str) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, name));
}

/// Wakes all pools: the periodic resync.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    for mut row in tx.all(sql!("SELECT name FROM pool ORDER BY name"), params![]).await? {
        let name: String = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, name));
    }
    Ok(())
}

/// Stores the state of a pool, unless another server changed it meanwhile.
pub async fn set(tx: &mut Tx, now: &State) -> Result<()> {
    let start = sql!(
        "INSERT INTO pool (name, generation, decided_at) VALUES ($1, 0, $2) ",
        "ON CONFLICT (name) DO NOTHING"
    );
    if now.generation == 0 {
        tx.run(start, params![now.name, now.decided_at]).await?;
    }
    let Memory { grown_at, shrunk_at, wish, wish_since } = &now.memory;
    let set = tx
        .run(
            sql!(
                "UPDATE pool SET generation = generation + 1, made = $3, grown_at = $4, shrunk_at = $5, ",
                "wish = $6, wish_since = $7, idle = $8, decision = $9, reason = $10, decided_at = $11, ",
                "look_again = $12 WHERE name = $1 AND generation = $2"
            ),
            params![
                now.name,
                now.generation,
                now.made,
                grown_at,
                shrunk_at,
                wish,
                wish_since,
                Json(&now.idle),
                now.decision,
                now.reason,
                now.decided_at,
                now.look_again
            ],
        )
        .await?;
    if set == 1 {
        return Ok(());
    }
    tx.poison();
    Err(Error::Conflict(format!("pool {} was changed by another server", now.name)))
}

/// Adds a cluster to a pool; `now` is the pool's new state.
pub async fn grow(tx: &mut Tx, now: &State, template: &Template) -> Result<Cluster> {
    set(tx, now).await?;
    let mut new = template.cluster(format!("{}-{}", now.name, now.made));
    if template.is_foreign {
        // Its agent reports its units; instances that wait for units are woken then.
        new = NewCluster { capacity: Resources::default(), nodes: Vec::new(), ..new };
    }
    let created = cluster::create(tx, None, &new).await?;
    let hosting = Hosting { is_foreign: template.is_foreign, ..Hosting::default() };
    let sql = sql!("UPDATE cluster SET pool = $2, hosting = $3 WHERE id = $1");
    tx.run(sql, params![created.id, now.name, Json(&hosting)]).await?;
    let created = cluster::record_event(tx, created.id, "pooled").await?;
    record_event(tx, now, "grown", Some(created.id)).await?;
    Ok(created)
}

/// Removes an empty cluster; `now` is the pool's new state. Reservations are released with it; any
/// other deployment aborts the removal.
pub async fn shrink(tx: &mut Tx, now: &State, id: ClusterId) -> Result<()> {
    set(tx, now).await?;
    cluster::lock(tx, id).await?;
    reserving::release_all(tx, id).await?;
    // From here on no deployment can be added: the row is locked.
    let sql = sql!(
        "UPDATE cluster SET updated_at = updated_at WHERE id = $1 AND pool = $2 AND status = 'ready' ",
        "AND deployments = 0 AND deleted_at IS NULL AND NOT EXISTS ",
        "(SELECT 1 FROM capacity p WHERE p.cluster_id = cluster.id AND p.used > 0)"
    );
    if tx.run(sql, params![id, now.name]).await? == 0 {
        tx.poison();
        return Err(Error::Conflict(format!("cluster {id} is no longer empty")));
    }
    let mut leaving = cluster::get(tx, Scope::All, id).await?;
    let reason = Reason::ScaledDown { pool: now.name.clone() };
    cluster::transition(tx, &mut leaving, Status::Deprovisioning, reason).await?;
    record_event(tx, now, "shrunk", Some(id)).await
}

/// Records the decision of a dry run.
pub async fn record_dry_run(tx: &mut Tx, now: &State) -> Result<()> {
    set(tx, now).await?;
    match now.decision.as_str() {
        "grow" => record_event(tx, now, "would_grow", None).await,
        _ => record_event(tx, now, "would_shrink", None).await,
    }
}

/// Event data of a pool.
#[derive(Serialize)]
struct EventData<'a> {
    name: &'a str,
    decision: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<ClusterId>,
}

async fn record_event(
    tx: &mut Tx,
    now: &State,
    change: &str,
    cluster_id: Option<ClusterId>,
) -> Result<()> {
    let State { name, decision, reason, .. } = now;
    let data = EventData { name, decision, reason, cluster_id };
    event::append(tx, Kind::Pool, name, None, change, &data).await
}

/// Reserves capacity on a cluster for as many instances of each type as the pool configures.
pub async fn reserve(tx: &mut Tx, pool: &Pool, on: ClusterId) -> Result<()> {
    let held = reserving::of_pool(tx, &pool.name).await?;
    let held: Vec<_> = held.into_iter().filter(|reservation| reservation.cluster == on).collect();
    for host in &pool.hosts {
        let of_type = host.name();
        let own = held
            .iter()
            .filter(|reservation| reservation.for_type == of_type && reservation.room == host.room)
            .count();
        for _ in own..host.reserved as usize {
            reserving::reserve(tx, on, &of_type, &host.room).await?;
        }
    }
    for reservation in surplus(pool, &held) {
        reserving::release(tx, reservation.id).await?;
    }
    Ok(())
}

/// Reservations beyond the configuration: those without a place first.
fn surplus<'a>(pool: &Pool, held: &'a [reserving::Reserved]) -> Vec<&'a reserving::Reserved> {
    let mut left: BTreeMap<String, u32> =
        pool.hosts.iter().map(|host| (host.name(), host.reserved)).collect();
    let mut ordered: Vec<_> = held.iter().collect();
    ordered.sort_by_key(|reservation| (reservation.node.is_none(), reservation.id));
    ordered.retain(|reservation| {
        let room =
            pool.hosts.iter().find(|host| host.name() == reservation.for_type).map(|h| &h.room);
        let left = left.entry(reservation.for_type.clone()).or_default();
        let is_needed = *left > 0 && room == Some(&reservation.room);
        *left = left.saturating_sub(u32::from(is_needed));
        !is_needed
    });
    ordered
}

fn from_row(mut row: Row) -> Result<State> {
    Ok(State {
        name: row.take()?,
        generation: row.take()?,
        made: row.take()?,
        memory: Memory {
            grown_at: row.take()?,
            shrunk_at: row.take()?,
            wish: row.take()?,
            wish_since: row.take()?,
        },
        idle: row.take::<Json<_>>()?.0,
        decision: row.take()?,
        reason: row.take()?,
        decided_at: row.take()?,
        look_again: row.take()?,
    })
}
