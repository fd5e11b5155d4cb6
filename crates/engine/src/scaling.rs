//! The worker that grows and shrinks pools: looks, decides (in `model`), and has the store carry it out.
//!
//! It is woken when something has changed ([`follow`]) and by due dates; nothing is done by the clock
//! alone. Any number of servers may look at once: the pool's row lets one of them act.

mod follow;
mod look;

use model::event::Actor;
use model::scaling::{Action, Decision, Memory, decide};
use model::work::Next;
use model::{Time, cluster};
use store::pool::{self, State};
use store::{Db, Tx};

use crate::placement::Outlook;
use crate::rules::Rules;
use crate::{Error, Reconcile};

pub use follow::follow;
pub use look::{Look, look};

/// The worker.
pub struct Scaling {
    db: Db,
    rules: Rules,
    outlook: Outlook,
}

impl Scaling {
    /// `outlook` is asked who waits.
    pub fn new(db: Db, rules: Rules, outlook: Outlook) -> Self {
        Self { db, rules, outlook }
    }
}

impl Reconcile for Scaling {
    const NAME: &'static str = pool::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let Some(look) = look(&self.db, &self.rules, &self.outlook, key).await? else {
            return Ok(Next::Rest);
        };
        let decision = decide(&look.pool, &look.seen, look.at);
        match self.carry_out(&look, &decision).await {
            Ok(()) => {}
            // It was decided from something that has changed meanwhile.
            Err(store::Error::Conflict(why)) => {
                tracing::debug!(pool = key, why, "it was overtaken");
                return Ok(Next::At(self.db.now() + look::SETTLED));
            }
            Err(error) => return Err(error.into()),
        }
        let due = [decision.look_again, look.unsettled_until].into_iter().flatten().min();
        Ok(due.map_or(Next::Rest, Next::At))
    }
}

impl Scaling {
    async fn carry_out(&self, look: &Look, decision: &Decision) -> store::Result<()> {
        let next = next(look, decision);
        let is_new = next.decision != look.state.decision;
        if decision.action == Action::Stay || look.pool.dry_run {
            return self.stay(look, next, is_new && decision.action != Action::Stay).await;
        }
        tracing::info!(pool = next.name, decision = next.decision, reason = next.reason, "scaling");
        let mut tx = self.begin().await?;
        match decision.action {
            Action::Grow => pool::grow(&mut tx, &next, &look.pool.template).await.map(drop)?,
            Action::Shrink(id) => pool::shrink(&mut tx, &next, id).await?,
            Action::Stay => {}
        }
        tx.commit().await
    }

    /// Nothing is made or removed: remembers what is new, says what would be done, and holds room.
    async fn stay(&self, look: &Look, next: State, is_told: bool) -> store::Result<()> {
        let wanting = if look.pool.dry_run { Vec::new() } else { look.wanting() };
        if next == look.state && wanting.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        if is_told {
            pool::would(&mut tx, &next).await?;
        } else {
            pool::set(&mut tx, &next).await?;
        }
        for id in wanting {
            store::cluster::lock(&mut tx, id).await?;
            pool::reserve(&mut tx, &look.pool, id).await?;
        }
        tx.commit().await
    }

    async fn begin(&self) -> store::Result<Tx> {
        self.db.begin(Actor::Worker(Self::NAME)).await
    }
}

/// What the pool remembers from here on.
fn next(look: &Look, decision: &Decision) -> State {
    let before = &look.state;
    let is_same = decision.name() == before.decision && before.generation > 0;
    let mut idle = look.idle.clone();
    if let Action::Shrink(id) = decision.action {
        idle.remove(&id);
    }
    State {
        name: before.name.clone(),
        generation: before.generation,
        made: before.made + i64::from(decision.action == Action::Grow && !look.pool.dry_run),
        memory: memory(look, decision, look.at),
        idle,
        decision: decision.name().into(),
        reason: decision.reason.clone(),
        decided_at: if is_same { before.decided_at } else { look.at },
        look_again: decision.look_again,
    }
}

/// Who only says what it would do has not done it.
fn memory(look: &Look, decision: &Decision, now: Time) -> Memory {
    let memory = &look.seen.memory;
    if look.pool.dry_run {
        return memory.after(&Decision { action: Action::Stay, ..decision.clone() }, now);
    }
    memory.after(decision, now)
}

/// Is this a cluster on which room is held by deployments of our own?
fn holds_room(one: &cluster::Cluster) -> bool {
    let is_open = one.status == cluster::Status::Ready && one.draining_at.is_none();
    is_open && !one.hosting.is_foreign
}
