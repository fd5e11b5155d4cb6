//! The placement worker: one cluster's queue against its capacity.
//!
//! One cluster is looked at by one worker at a time, but that is for economy: what keeps capacity
//! from being given out twice is the condition in the store's statements.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use model::cluster::{Cluster, Status};
use model::deployment::{self, Deployment};
use model::event::Actor;
use model::placement::{Held, Plan, Wait, Waiting, plan};
use model::work::Next;
use model::{ClusterId, DeploymentId, OrganizationId, Resources};
use store::deployment::placing;
use store::{Db, Page, Read, Scope, Tx};

use crate::{Error, Reconcile};

/// How soon to see whether another cluster has taken whom it had room for.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The worker.
pub struct Placement {
    /// Where.
    pub db: Db,
    /// How many deployments a cluster takes.
    pub limit_per_cluster: i64,
}

impl Reconcile for Placement {
    const NAME: &'static str = store::cluster::PLACEMENT;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: ClusterId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut read = self.db.read().await?;
        let cluster = match store::cluster::get(&mut read, Scope::All, id).await {
            Ok(cluster) if cluster.status == Status::Ready => cluster,
            Ok(_) | Err(store::Error::NotFound { .. }) => return Ok(Next::Rest),
            Err(error) => return Err(error.into()),
        };
        let queue = placing::waiting(&mut read, &cluster).await?;
        if queue.is_empty() {
            return Ok(Next::Rest);
        }
        let plan = decide(&mut read, &cluster, &queue).await?;
        drop(read);
        let left_to_others = plan.starts.len() + plan.waits.len() < queue.len();
        let steps = steps(&cluster, &queue, plan);
        let next = self.carry_out(&cluster, &steps).await?;
        // Another cluster had room for somebody; should it have gone to others, it is our turn.
        let is_over = next == Next::Rest && left_to_others;
        Ok(if is_over { Next::At(self.db.now() + LOOK_AGAIN) } else { next })
    }
}

/// Looks at as much as the decision needs: who holds what matters only when somebody does not fit.
async fn decide(read: &mut Read, cluster: &Cluster, queue: &[Deployment]) -> Result<Plan, Error> {
    let (total, free) = (cluster.total(), cluster.free());
    let mut waiting: Vec<Waiting> = queue.iter().map(as_waiting).collect();
    let first = plan(&total, &free, &[], &waiting);
    if !first.waits.iter().any(|(_, wait)| matches!(wait, Wait::Short { .. })) {
        return Ok(first);
    }
    mark_who_fits_elsewhere(read, cluster, queue, &mut waiting).await?;
    let held = placing::holding(read, cluster.id).await?;
    let held: Vec<Held> = held.iter().map(as_held).collect();
    Ok(plan(&total, &free, &held, &waiting))
}

fn as_waiting(deployment: &Deployment) -> Waiting {
    Waiting {
        id: deployment.id,
        request: deployment.spec.request(),
        priority: deployment.priority,
        since: deployment.created_at,
        fits_elsewhere: false,
    }
}

fn as_held(deployment: &Deployment) -> Held {
    Held {
        id: deployment.id,
        request: deployment.spec.request(),
        priority: deployment.priority,
        since: deployment.started_at.unwrap_or(deployment.updated_at),
        is_stopping: !deployment.status.is_wanted(),
    }
}

async fn mark_who_fits_elsewhere(
    read: &mut Read,
    here: &Cluster,
    queue: &[Deployment],
    waiting: &mut [Waiting],
) -> Result<(), Error> {
    let mut rooms: HashMap<OrganizationId, Vec<Resources>> = HashMap::new();
    for (deployment, waiting) in queue.iter().zip(waiting).filter(|(d, _)| d.pinned_to.is_none()) {
        let owner = deployment.organization_id;
        if let Entry::Vacant(unknown) = rooms.entry(owner) {
            unknown.insert(rooms_elsewhere(read, here.id, owner).await?);
        }
        waiting.fits_elsewhere = rooms[&owner].iter().any(|free| waiting.request.fits(free));
    }
    Ok(())
}

async fn rooms_elsewhere(
    read: &mut Read,
    here: ClusterId,
    owner: OrganizationId,
) -> Result<Vec<Resources>, Error> {
    let ready = store::cluster::Filter { status: Some(Status::Ready), ..Default::default() };
    let scope = Scope::Organization(owner);
    let clusters = store::cluster::list(read, scope, &ready, &Page::first(1000)).await?;
    Ok(clusters.iter().filter(|cluster| cluster.id != here).map(Cluster::free).collect())
}

/// A plan, ready to be carried out.
enum Do<'a> {
    Place(&'a Deployment),
    /// The first yields to the second.
    Preempt(DeploymentId, DeploymentId, String),
    Explain(&'a Deployment, String),
}

fn steps<'a>(cluster: &Cluster, queue: &'a [Deployment], plan: Plan) -> Vec<Do<'a>> {
    let by_id: HashMap<_, _> = queue.iter().map(|d| (d.id, d)).collect();
    let places = plan.starts.into_iter().filter_map(|id| by_id.get(&id).copied()).map(Do::Place);
    let yields = plan.preemptions.into_iter().filter_map(|(victim, by)| {
        let by = by_id.get(&by)?;
        let (name, priority) = (&by.name, by.priority);
        Some(Do::Preempt(
            victim,
            by.id,
            format!(
                "Yielded to {name} ({}), which has priority {priority}; starts again as soon as there is room.",
                by.id
            ),
        ))
    });
    let waits = plan.waits.into_iter().filter_map(|(id, wait)| {
        let deployment = by_id.get(&id).copied()?;
        // To whom it yielded says more than what it waits for.
        let has_yielded = deployment.status == deployment::Status::Preempted;
        if has_yielded && !matches!(wait, Wait::Never { .. }) {
            return None;
        }
        Some(Do::Explain(deployment, explain(cluster, deployment, &wait)))
    });
    places.chain(yields).chain(waits).collect()
}

/// Why it waits, in a sentence that does not change with every breath of the cluster.
fn explain(cluster: &Cluster, deployment: &Deployment, wait: &Wait) -> String {
    let (name, request) = (&cluster.name, deployment.spec.request());
    if deployment.pinned_to.is_none() {
        return format!(
            "Waits for a cluster with room for {request}, and starts as soon as there is one."
        );
    }
    let short =
        |missing: &Resources| missing.iter().map(|(kind, _)| kind).collect::<Vec<_>>().join(", ");
    match wait {
        Wait::Never { missing } => format!(
            "Can never run on {name}: it needs {request}, which is {missing} more than the cluster has."
        ),
        Wait::Short { missing } => {
            format!(
                "Waits for {} on {name}: it needs {request}, and starts as soon as that is free.",
                short(missing)
            )
        }
        Wait::Yielding => format!("Waits for lower priorities to stop on {name}."),
    }
}

impl Placement {
    /// All at once; if the world has moved meanwhile, one by one, leaving out what no longer holds.
    async fn carry_out(&self, cluster: &Cluster, steps: &[Do<'_>]) -> Result<Next, Error> {
        match self.in_one_transaction(cluster, steps).await {
            Ok(()) => return Ok(after(steps)),
            Err(error) if !is_news(&error) => return Err(error.into()),
            Err(_) => {}
        }
        for step in steps {
            match self.in_one_transaction(cluster, std::slice::from_ref(step)).await {
                Err(error) if !is_news(&error) => return Err(error.into()),
                Err(error) => {
                    tracing::debug!(cluster.id = %cluster.id, %error, "a step was overtaken");
                }
                Ok(()) => {}
            }
        }
        Ok(after(steps))
    }

    async fn in_one_transaction(&self, cluster: &Cluster, steps: &[Do<'_>]) -> store::Result<()> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        store::cluster::lock(&mut tx, cluster.id).await?;
        for step in steps {
            self.take(&mut tx, cluster, step).await?;
        }
        tx.commit().await
    }

    async fn take(&self, tx: &mut Tx, cluster: &Cluster, step: &Do<'_>) -> store::Result<()> {
        match step {
            Do::Place(deployment) => {
                placing::place(tx, deployment, cluster, self.limit_per_cluster).await.map(drop)
            }
            Do::Preempt(victim, by, reason) => placing::preempt(tx, *victim, *by, reason).await,
            Do::Explain(deployment, reason) => placing::set_reason(tx, deployment, reason).await,
        }
    }
}

/// What moved may have made room for those who were too far down the queue to be looked at.
fn after(steps: &[Do<'_>]) -> Next {
    let look = usize::try_from(placing::LOOK).unwrap_or(usize::MAX);
    let moved = steps.iter().any(|step| !matches!(step, Do::Explain(..)));
    if moved && steps.len() >= look { Next::Again } else { Next::Rest }
}

/// Did somebody else change what the plan was made from? Whoever did, woke this worker again.
fn is_news(error: &store::Error) -> bool {
    use store::Error::{Conflict, Limit, NotFound, Short};
    matches!(error, Conflict(_) | Limit { .. } | NotFound { .. } | Short { .. })
}
