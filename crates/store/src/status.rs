//! Status changes: the only statements that write the status and reason of a subject.
//!
//! [`transition`] changes a subject with a lifecycle, [`transition_replicas`] several replicas of a
//! deployment, whose status summarises theirs ([`summarize`]). Each refuses a transition that the
//! lifecycle does not have, and a row whose status has changed since it was read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::{Future, ready};

use model::deployment::{Deployment, Reason, Status};
use model::reason::StatusReason;
use model::replica::{Replica, summary};
use model::work::{Key, Lane};
use model::{DeploymentId, OrganizationId, Place, Time};
use serde::Serialize;

use crate::db::{Json, Param, Select, Value, batches, json, params, sql};
use crate::subject::{self, Id, Subject};
use crate::{Error, Result, Scope, Tx, event, work};

/// Position of a subject in its lifecycle.
#[derive(Debug)]
pub struct State<'a, S, R> {
    /// Status.
    pub status: S,
    /// Reason of the status.
    pub reason: &'a R,
    /// Since when the status holds.
    pub since: Time,
    /// When the row was last changed.
    pub updated_at: Time,
}

/// A subject with a lifecycle and a worker that drives it.
pub trait Lifecycle: Subject<Id: Id<Subject = Self>> + Clone {
    /// Status type.
    type Status: Param + Display + Copy + PartialEq + Send + Sync;
    /// Reason type.
    type Reason: StatusReason + Param + PartialEq + Send + Sync;
    /// The worker that drives it.
    const WORKER: &'static str;
    /// Condition for rows that are not idle.
    const RESTLESS: &'static str;
    /// Event name of a change of the reason alone.
    const EXPLAINED: &'static str;

    /// Whether the lifecycle has this transition.
    fn may_become(from: Self::Status, to: Self::Status) -> bool;
    /// Id.
    fn id(&self) -> Self::Id;
    /// Owner; `None` if it is shared.
    fn owner(&self) -> Option<OrganizationId>;
    /// Position in the lifecycle.
    fn state(&self) -> State<'_, Self::Status, Self::Reason>;
    /// Changes the position, in memory.
    fn set_state(&mut self, to: Self::Status, reason: Self::Reason, since: Time);
    /// Sets the time of the last change, in memory.
    fn touch(&mut self, at: Time);
    /// Other columns that are written with the status.
    fn columns(&self) -> Vec<(&'static str, Value<'_>)>;
    /// Event data: the state, without secrets.
    fn event_data(&self) -> impl Serialize + Send + Sync;

    /// A column that must still have this value when the row is written.
    fn guard(&self) -> Option<(&'static str, Value<'_>)> {
        None
    }

    /// Hook after entering a status.
    fn entered(&mut self, _: &mut Tx) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Wakes the workers that depend on it.
    fn wake(&self, tx: &mut Tx) {
        work::wake(tx, Lane::Priority, Key::new(Self::WORKER, self.id()));
    }

    /// Locks the subject until the end of the transaction, and reads it again.
    fn relock(&self, tx: &mut Tx) -> impl Future<Output = Result<Self>> + Send {
        subject::lock(tx, Scope::All, self.id())
    }

    /// Whether nothing relevant to a worker changed since `seen` was read.
    fn is_unchanged(&self, seen: &Self) -> bool {
        let (now, seen) = (self.state(), seen.state());
        now.status == seen.status && now.since == seen.since
    }
}

/// The methods of [`Lifecycle`] for a struct with the usual fields.
macro_rules! status_row {
    ($status:ty, $reason:ty) => {
        type Status = $status;
        type Reason = $reason;
        fn may_become(from: $status, to: $status) -> bool {
            from.may_become(to)
        }
        fn id(&self) -> Self::Id {
            self.id
        }
        fn owner(&self) -> Option<model::OrganizationId> {
            self.organization_id.into()
        }
        fn state(&self) -> $crate::status::State<'_, $status, $reason> {
            $crate::status::State {
                status: self.status,
                reason: &self.reason,
                since: self.status_since,
                updated_at: self.updated_at,
            }
        }
        fn set_state(&mut self, to: $status, reason: $reason, since: model::Time) {
            (self.status, self.reason, self.status_since) = (to, reason, since);
        }
        fn touch(&mut self, at: model::Time) {
            self.updated_at = at;
        }
    };
}
pub(crate) use status_row;

/// Moves a subject to another status, and writes its other changes in memory; appends `kind.status`
/// to the event log and wakes the worker. An invalid transition is a bug.
pub async fn transition<T: Lifecycle>(
    tx: &mut Tx,
    now: &mut T,
    to: T::Status,
    reason: T::Reason,
) -> Result<()> {
    let from = now.state().status;
    if !T::may_become(from, to) {
        return Err(illegal(T::KIND.as_str(), from, to));
    }
    now.set_state(to, reason, tx.now());
    now.entered(tx).await?;
    now.touch(tx.now());
    write(tx, now, from).await?;
    record_event(tx, now, &to.to_string()).await
}

fn illegal(kind: &str, from: impl Display, to: impl Display) -> Error {
    Error::Database(format!("invalid transition of {kind} from {from} to {to}"))
}

/// Changes the reason of the status, if it differs. Wakes nothing.
pub async fn explain<T: Lifecycle>(tx: &mut Tx, now: &mut T, reason: T::Reason) -> Result<()> {
    if *now.state().reason == reason {
        return Ok(());
    }
    write_reason(tx, now, reason).await
}

/// Writes the reason and other changes in memory. Wakes nothing.
pub(crate) async fn write_reason<T: Lifecycle>(
    tx: &mut Tx,
    now: &mut T,
    reason: T::Reason,
) -> Result<()> {
    let State { status, since, .. } = now.state();
    now.set_state(status, reason, since);
    now.touch(tx.now());
    write(tx, now, status).await?;
    append(tx, now, T::EXPLAINED).await
}

/// Writes a subject whose status is unchanged; appends `kind.change` to the event log and wakes the
/// worker.
pub async fn save<T: Lifecycle>(tx: &mut Tx, now: &mut T, change: &str) -> Result<()> {
    now.touch(tx.now());
    let status = now.state().status;
    write(tx, now, status).await?;
    record_event(tx, now, change).await
}

/// Appends a subject's state to the event log and wakes its worker.
pub(crate) async fn record_event<T: Lifecycle>(tx: &mut Tx, now: &T, change: &str) -> Result<()> {
    now.wake(tx);
    append(tx, now, change).await
}

/// Appends a subject's state to the event log.
pub(crate) async fn append<T: Lifecycle>(tx: &mut Tx, now: &T, change: &str) -> Result<()> {
    event::append(tx, T::KIND, now.id(), now.owner(), change, &now.event_data()).await
}

/// Writes a subject, if its row still has the status `from`.
pub(crate) async fn write<T: Lifecycle>(tx: &mut Tx, now: &T, from: T::Status) -> Result<()> {
    let id = now.id();
    match update(now, &id, &from).run(tx).await? {
        0 => Err(Error::Conflict(format!("{} {id} is no longer {from}", T::KIND.as_str()))),
        _ => Ok(()),
    }
}

pub(crate) fn update<'a, T: Lifecycle>(
    now: &'a T,
    id: &'a T::Id,
    from: &'a T::Status,
) -> Select<'a> {
    let State { status, reason, since, updated_at } = now.state();
    let status = Value::Text(status.to_string().into());
    let mut statement = Select::new(&format!("UPDATE {} SET ", T::TABLE))
        .bound("status = ?", status)
        .bound(", status_reason = ?", reason.value())
        .bound(", reason_code = ?", Value::Text(reason.code().into()))
        .bound(", status_since = ?", Value::Int(since.0))
        .bound(", updated_at = ?", Value::Int(updated_at.0));
    for (column, value) in now.columns() {
        statement = statement.bound(&format!(", {column} = ?"), value);
    }
    statement = statement.text(" WHERE ").text(T::LIVING);
    statement = statement.and("id = ?", Some(id)).and("status = ?", Some(from));
    match now.guard() {
        Some((column, value)) => statement.bound(&format!(" AND {column} = ?"), value),
        None => statement,
    }
}

/// Effect of a change of replicas on agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    /// The desired state is unchanged.
    Unaffected,
    /// A new desired state, which the agent acknowledges.
    Acknowledges,
    /// A new desired state, without an agent to acknowledge it.
    Absent,
}

impl Agent {
    /// Replicas with a workload have an agent.
    pub(crate) fn for_deployment(deployment: &Deployment) -> Self {
        if deployment.spec.image.is_some() { Self::Acknowledges } else { Self::Absent }
    }
}

/// A change of replicas.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// New status.
    pub(crate) to: Status,
    /// Reason.
    pub(crate) reason: Reason,
    /// Effect on agents.
    pub(crate) agent: Agent,
    /// New endpoints; unchanged if `None`.
    pub(crate) endpoints: Option<&'a [String]>,
    /// New place; the replicas must not have one.
    pub(crate) place: Option<&'a Place>,
}

impl Change<'_> {
    /// A change of the status alone.
    pub(crate) fn new(to: Status, reason: impl Into<Reason>, agent: Agent) -> Self {
        Self { to, reason: reason.into(), agent, endpoints: None, place: None }
    }
}

/// Changes the status or reason of replicas of one deployment, whose row is locked: one statement
/// for all with the same status.
pub(crate) async fn transition_replicas<'r>(
    tx: &mut Tx,
    replicas: impl IntoIterator<Item = &'r mut Replica, IntoIter: Send> + Send,
    change: &Change<'_>,
) -> Result<()> {
    let mut by_status: BTreeMap<&str, Vec<&mut Replica>> = BTreeMap::new();
    for replica in replicas {
        by_status.entry(replica.status.as_str()).or_default().push(replica);
    }
    for replicas in by_status.into_values() {
        let (id, from) = (replicas[0].id.deployment, replicas[0].status);
        if from != change.to && !from.may_become(change.to) {
            return Err(illegal("replica", from, change.to));
        }
        let numbers: Vec<i64> = replicas.iter().map(|replica| replica.id.number.into()).collect();
        let mut written = 0;
        for numbers in batches(&numbers) {
            written += change.statement(id, from, &numbers, tx.now()).run(tx).await?;
        }
        if written != numbers.len() as u64 {
            tx.poison();
            return Err(Error::Conflict(format!("replicas of {id} are no longer {from}")));
        }
        for replica in replicas {
            change.apply(replica, tx.now());
        }
    }
    Ok(())
}

impl Change<'_> {
    fn statement<'a>(
        &'a self,
        id: DeploymentId,
        from: Status,
        numbers: &'a [i64],
        now: Time,
    ) -> Select<'a> {
        let text = |value: &dyn Display| Value::Text(value.to_string().into());
        let mut statement = Select::new("UPDATE replica SET ")
            .bound("status = ?", text(&self.to))
            .bound(", status_reason = ?", self.reason.value())
            .bound(", reason_code = ?", Value::Text(self.reason.code().into()))
            .text(match self.agent {
                Agent::Unaffected => "",
                Agent::Acknowledges if self.place.is_some() => ", desired = desired + 1",
                Agent::Acknowledges => {
                    ", desired = desired + 1, answered = CASE WHEN cluster_id IS NULL \
                     THEN desired + 1 ELSE answered END"
                }
                Agent::Absent => ", desired = desired + 1, answered = desired + 1",
            });
        if self.to == Status::Running {
            statement =
                statement.bound(", started_at = COALESCE(started_at, ?)", Value::Int(now.0));
        }
        if let Some(endpoints) = self.endpoints {
            statement = statement.bound(", endpoints = ?", json(&endpoints));
        }
        if let Some(place) = self.place {
            statement = statement
                .bound(", cluster_id = ?", text(&place.cluster))
                .bound(", node = ?", text(&place.node))
                .bound(", placed_at = ?", Value::Int(now.0));
        }
        statement
            .bound(" WHERE deployment_id = ?", text(&id))
            .bound(" AND status = ?", text(&from))
            .text(if self.place.is_some() { " AND cluster_id IS NULL AND " } else { " AND " })
            .one_of("number", numbers)
    }

    fn apply(&self, replica: &mut Replica, now: Time) {
        (replica.status, replica.reason) = (self.to, self.reason.clone());
        replica.desired += i64::from(self.agent != Agent::Unaffected);
        if self.to == Status::Running {
            replica.started_at = replica.started_at.or(Some(now));
        }
        if let Some(endpoints) = self.endpoints {
            replica.endpoints = endpoints.to_vec();
        }
        if let Some(place) = self.place {
            (replica.place, replica.placed_at) = (Some(place.clone()), Some(now));
        }
    }
}

/// Writes the summary of all replicas of a deployment, and appends the change to the event log.
///
/// A deployment that is being deleted stays so until [`crate::deployment::delete_if_empty`].
pub(crate) async fn summarize(
    tx: &mut Tx,
    before: &Deployment,
    replicas: &[Replica],
    change: &str,
) -> Result<Deployment> {
    let mut after = before.clone();
    after.endpoints = Vec::new();
    if after.status != Status::Deleting
        && let Some(summary) = summary(replicas)
    {
        (after.status, after.reason) = (summary.status, summary.reason);
        (after.endpoints, after.started_at) = (summary.endpoints, summary.started_at);
    }
    write_summary(tx, before, after, replicas, change).await
}

/// Writes the summary of a deployment whose deletion begins.
pub(crate) async fn summarize_deleting(
    tx: &mut Tx,
    before: &Deployment,
    replicas: &[Replica],
    reason: Reason,
) -> Result<Deployment> {
    let (status, endpoints) = (Status::Deleting, Vec::new());
    let after = Deployment { status, reason, endpoints, ..before.clone() };
    write_summary(tx, before, after, replicas, status.as_str()).await
}

async fn write_summary(
    tx: &mut Tx,
    before: &Deployment,
    mut after: Deployment,
    replicas: &[Replica],
    change: &str,
) -> Result<Deployment> {
    if !before.status.summary_may_become(after.status) {
        tx.poison();
        return Err(illegal("deployment", before.status, after.status));
    }
    let first = replicas.iter().find_map(|replica| replica.place.clone());
    (after.placed_on, after.node) =
        first.map(|place| (place.cluster, place.node.to_string())).unzip();
    after.updated_at = tx.now();
    let sql = sql!(
        "UPDATE deployment SET status = $3, status_reason = $4, placed_on = $5, node = $6, ",
        "endpoints = $7, started_at = $8, updated_at = $9, reason_code = $10 ",
        "WHERE id = $1 AND status = $2 AND deleted_at IS NULL"
    );
    let (reason, endpoints) = (&after.reason, Json(&after.endpoints));
    let code = reason.code();
    let params = params![
        after.id,
        before.status,
        after.status,
        reason,
        after.placed_on,
        after.node,
        endpoints,
        after.started_at,
        after.updated_at,
        code
    ];
    if tx.run(sql, params).await? == 0 {
        tx.poison();
        return Err(Error::Conflict(format!("{} is no longer {}", after.id, before.status)));
    }
    crate::deployment::append(tx, &after, change).await?;
    Ok(after)
}
