//! Pools: what each remembers from one look to the next, and what it does to its clusters.
//!
//! A decision is carried out in one transaction that begins with the pool's row: whoever decided from
//! an older generation of it is refused, so that no number of servers grows twice for the same.

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

/// The worker that grows and shrinks pools.
pub const WORKER: &str = "pool";

/// What a pool remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Counts the changes; nothing was written yet when it is 0.
    pub generation: i64,
    /// How many clusters it has ever made.
    pub made: i64,
    /// What it did and wished.
    #[serde(flatten)]
    pub memory: Memory,
    /// Since when each of its clusters is empty.
    pub idle: BTreeMap<ClusterId, Time>,
    /// What was last decided: `grow`, `shrink`, `stay`.
    pub decision: String,
    /// Why, as a sentence.
    pub reason: String,
    /// Since when it is decided so.
    pub decided_at: Time,
    /// When it is looked at again though nothing has changed.
    pub look_again: Option<Time>,
}

macro_rules! columns {
    () => {
        "name, generation, made, grown_at, shrunk_at, wish, wish_since, idle, decision, reason, \
         decided_at, look_again"
    };
}

/// What a pool remembers; of one that nobody has looked at yet, nothing.
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
        reason: "Nobody has looked at it yet.".into(),
        decided_at: now,
        look_again: None,
    }))
}

/// The clusters that a pool has made.
pub async fn clusters(read: &mut Read, name: &str) -> Result<Vec<Cluster>> {
    cluster::of_pool(read, name).await
}

/// How many clusters each pool has in each status.
pub async fn counts(read: &mut Read) -> Result<Vec<(String, Status, i64)>> {
    let sql = sql!(
        "SELECT pool, status, COUNT(*) FROM cluster WHERE pool IS NOT NULL AND deleted_at IS NULL ",
        "GROUP BY pool, status ORDER BY pool, status"
    );
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// Has a pool be looked at.
pub fn wake(tx: &mut Tx, name: &str) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, name));
}

/// Wakes all pools that there are: the safety net.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    for mut row in tx.all(sql!("SELECT name FROM pool ORDER BY name"), params![]).await? {
        let name: String = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, name));
    }
    Ok(())
}

/// Writes down what a pool remembers from here on, if nobody else has meanwhile.
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
    Err(Error::Conflict(format!("the pool {} was changed by another server", now.name)))
}

/// Makes one more cluster of a pool, and remembers that; `now` is what the pool remembers then.
pub async fn grow(tx: &mut Tx, now: &State, template: &Template) -> Result<Cluster> {
    set(tx, now).await?;
    let mut new = template.cluster(format!("{}-{}", now.name, now.made));
    if template.is_foreign {
        // Its agent says how many units it has; those who wait for units are woken then.
        new = NewCluster { capacity: Resources::default(), nodes: Vec::new(), ..new };
    }
    let made = cluster::create(tx, None, &new).await?;
    let hosting = Hosting { is_foreign: template.is_foreign, ..Hosting::default() };
    let sql = sql!("UPDATE cluster SET pool = $2, hosting = $3 WHERE id = $1");
    tx.run(sql, params![made.id, now.name, Json(&hosting)]).await?;
    let made = cluster::note(tx, made.id, "pooled").await?;
    note(tx, now, "grown", Some(made.id)).await?;
    Ok(made)
}

/// Takes an empty cluster out, and remembers that. What only holds room there goes with it; if
/// anything real is there, or comes meanwhile, nothing happens.
pub async fn shrink(tx: &mut Tx, now: &State, id: ClusterId) -> Result<()> {
    set(tx, now).await?;
    cluster::lock(tx, id).await?;
    reserving::give_up_all(tx, id).await?;
    // From here on nobody adds a deployment: its row is held.
    let sql = sql!(
        "UPDATE cluster SET updated_at = updated_at WHERE id = $1 AND pool = $2 AND status = 'ready' ",
        "AND deployments = 0 AND deleted_at IS NULL AND NOT EXISTS ",
        "(SELECT 1 FROM capacity p WHERE p.cluster_id = cluster.id AND p.used > 0)"
    );
    if tx.run(sql, params![id, now.name]).await? == 0 {
        tx.poison();
        return Err(Error::Conflict(format!("the cluster {id} is not empty any more")));
    }
    let mut leaving = cluster::get(tx, Scope::All, id).await?;
    let reason = Reason::ScaledDown { pool: now.name.clone() };
    cluster::transition(tx, &mut leaving, Status::Deprovisioning, reason).await?;
    note(tx, now, "shrunk", Some(id)).await
}

/// Notes what a pool would do that only says so.
pub async fn would(tx: &mut Tx, now: &State) -> Result<()> {
    set(tx, now).await?;
    match now.decision.as_str() {
        "grow" => note(tx, now, "would_grow", None).await,
        _ => note(tx, now, "would_shrink", None).await,
    }
}

/// What an event about a pool tells.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    decision: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<ClusterId>,
}

async fn note(tx: &mut Tx, now: &State, change: &str, cluster_id: Option<ClusterId>) -> Result<()> {
    let State { name, decision, reason, .. } = now;
    let told = Told { name, decision, reason, cluster_id };
    event::append(tx, Kind::Pool, name, None, change, &told).await
}

/// Holds room for as many instances of each type as the pool says on its cluster, and no more.
pub async fn reserve(tx: &mut Tx, pool: &Pool, on: ClusterId) -> Result<()> {
    let held = reserving::of_pool(tx, &pool.name).await?;
    let held: Vec<_> = held.into_iter().filter(|one| one.cluster == on).collect();
    for host in &pool.hosts {
        let of_type = host.name();
        let own =
            held.iter().filter(|one| one.for_type == of_type && one.room == host.room).count();
        for _ in own..host.reserved as usize {
            reserving::hold(tx, on, &of_type, &host.room).await?;
        }
    }
    for one in surplus(pool, &held) {
        reserving::give_up(tx, one.id).await?;
    }
    Ok(())
}

/// What is held and should not be: those without a place first.
fn surplus<'a>(pool: &Pool, held: &'a [reserving::Reserved]) -> Vec<&'a reserving::Reserved> {
    let mut left: BTreeMap<String, u32> =
        pool.hosts.iter().map(|host| (host.name(), host.reserved)).collect();
    let mut ordered: Vec<_> = held.iter().collect();
    ordered.sort_by_key(|one| (one.node.is_none(), one.id));
    ordered.retain(|one| {
        let room = pool.hosts.iter().find(|host| host.name() == one.for_type).map(|h| &h.room);
        let left = left.entry(one.for_type.clone()).or_default();
        let is_wanted = *left > 0 && room == Some(&one.room);
        *left = left.saturating_sub(u32::from(is_wanted));
        !is_wanted
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
