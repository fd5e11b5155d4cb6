//! Autoscaling of pools: observes, decides (in `model`), and persists the action.
//!
//! Woken by changes ([`follow`]) and by due times, never by polling. Any number of servers may
//! observe concurrently: the pool's row lets one of them act.

mod follow;
mod observation;

use model::event::Actor;
use model::scaling::{Action, Decision, Memory, decide};
use model::work::Requeue;
use model::{Time, cluster};
use store::pool::{self, State};
use store::{Db, Tx};

use crate::placement::PlacementView;
use crate::rules::RulesReader;
use crate::{Error, Reconcile};

pub use follow::follow;
pub use observation::{PoolObservation, observe};

/// The pool worker.
pub struct PoolWorker {
    db: Db,
    rules: RulesReader,
    placement_view: PlacementView,
}

impl PoolWorker {
    /// Creates a worker; `placement_view` provides the pending replicas.
    pub fn new(db: Db, rules: RulesReader, placement_view: PlacementView) -> Self {
        Self { db, rules, placement_view }
    }
}

impl Reconcile for PoolWorker {
    const NAME: &'static str = pool::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let Some(observed) = observe(&self.db, &self.rules, &self.placement_view, key).await?
        else {
            return Ok(Requeue::OnChange);
        };
        let decision = decide(&observed.pool, &observed.input, observed.at);
        match self.persist(&observed, &decision).await {
            Ok(()) => {}
            // The decision was based on outdated state.
            Err(store::Error::Conflict(why)) => {
                tracing::debug!(pool = key, why, "scaling decision outdated");
                return Ok(Requeue::At(self.db.now() + observation::SETTLED));
            }
            Err(error) => return Err(error.into()),
        }
        let due = [decision.reconsider_at, observed.unsettled_until].into_iter().flatten().min();
        Ok(due.map_or(Requeue::OnChange, Requeue::At))
    }
}

impl PoolWorker {
    async fn persist(&self, observed: &PoolObservation, decision: &Decision) -> store::Result<()> {
        let next = next(observed, decision);
        let is_new = next.decision != observed.state.decision;
        if decision.action == Action::Stay || observed.pool.dry_run {
            return self.stay(observed, next, is_new && decision.action != Action::Stay).await;
        }
        tracing::info!(pool = next.name, decision = next.decision, reason = next.reason, "scaling");
        let mut tx = self.begin().await?;
        match decision.action {
            Action::Grow => pool::grow(&mut tx, &next, &observed.pool.template).await.map(drop)?,
            Action::Shrink(id) => pool::shrink(&mut tx, &next, id).await?,
            Action::Stay => {}
        }
        tx.commit().await
    }

    /// Keeps the clusters: records a new decision, reports a dry run, adjusts reservations.
    async fn stay(
        &self,
        observed: &PoolObservation,
        next: State,
        is_dry_run: bool,
    ) -> store::Result<()> {
        let clusters_to_reserve =
            if observed.pool.dry_run { Vec::new() } else { observed.clusters_to_reserve() };
        if next == observed.state && clusters_to_reserve.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        if is_dry_run {
            pool::record_dry_run(&mut tx, &next).await?;
        } else {
            pool::set(&mut tx, &next).await?;
        }
        for id in clusters_to_reserve {
            store::cluster::lock(&mut tx, id).await?;
            pool::reserve(&mut tx, &observed.pool, id).await?;
        }
        tx.commit().await
    }

    async fn begin(&self) -> store::Result<Tx> {
        self.db.begin(Actor::Worker(Self::NAME)).await
    }
}

/// The pool's next persisted state.
fn next(observed: &PoolObservation, decision: &Decision) -> State {
    let before = &observed.state;
    let is_same = decision.name() == before.decision && before.generation > 0;
    let mut idle = observed.idle.clone();
    if let Action::Shrink(id) = decision.action {
        idle.remove(&id);
    }
    State {
        name: before.name.clone(),
        generation: before.generation,
        made: before.made + i64::from(decision.action == Action::Grow && !observed.pool.dry_run),
        memory: memory(observed, decision, observed.at),
        idle,
        decision: decision.name().into(),
        reason: decision.reason.clone(),
        decided_at: if is_same { before.decided_at } else { observed.at },
        look_again: decision.reconsider_at,
    }
}

/// A dry run does not count as an action.
fn memory(observed: &PoolObservation, decision: &Decision, now: Time) -> Memory {
    let memory = &observed.input.memory;
    if observed.pool.dry_run {
        return memory.after(&Decision { action: Action::Stay, ..decision.clone() }, now);
    }
    memory.after(decision, now)
}

/// Whether Paddock's own deployments may reserve capacity on this cluster.
fn takes_reservations(cluster: &cluster::Cluster) -> bool {
    let is_open = cluster.status == cluster::Status::Ready && cluster.draining_at.is_none();
    is_open && !cluster.hosting.is_foreign
}
