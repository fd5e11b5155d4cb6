//! Status changes: the only statements that write the status of a subject, and why it has it.
//!
//! A subject with a lifecycle changes by [`transition`]; replicas, several of one deployment at once, by
//! [`transition_replicas`], and a deployment's status is the sum of theirs ([`settle`]). Each refuses a
//! step that the lifecycle does not have, and a row that is no longer in the status that was seen.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::{Future, ready};

use model::deployment::{Deployment, Reason, Status};
use model::reason::Coded;
use model::replica::{Replica, summary};
use model::work::{Key, Lane};
use model::{DeploymentId, OrganizationId, Place, Time};
use serde::Serialize;

use crate::db::{Json, Param, Select, Value, batches, json, params, sql};
use crate::subject::{self, Id, Subject};
use crate::{Error, Result, Scope, Tx, event, work};

/// Where a subject is in its lifecycle.
#[derive(Debug)]
pub struct State<'a, S, R> {
    /// Its status.
    pub status: S,
    /// Why it has that status.
    pub reason: &'a R,
    /// Since when it has it.
    pub since: Time,
    /// When its row was last changed.
    pub updated_at: Time,
}

/// A subject with a lifecycle and a worker that drives it.
pub trait Lifecycle: Subject<Id: Id<Subject = Self>> + Clone {
    /// Its statuses.
    type Status: Param + Display + Copy + PartialEq + Send + Sync;
    /// Why it has its status.
    type Reason: Coded + Param + PartialEq + Send + Sync;
    /// The worker that drives it.
    const WORKER: &'static str;
    /// What holds for rows whose worker has something to do.
    const RESTLESS: &'static str;
    /// How the log calls a change of the reason alone.
    const EXPLAINED: &'static str;

    /// Does the lifecycle have this step?
    fn may_become(from: Self::Status, to: Self::Status) -> bool;
    /// Its id.
    fn id(&self) -> Self::Id;
    /// Whose it is; nobody's when it is shared by all.
    fn owner(&self) -> Option<OrganizationId>;
    /// Where it is in its lifecycle.
    fn state(&self) -> State<'_, Self::Status, Self::Reason>;
    /// Changes where it is, in memory.
    fn set_state(&mut self, to: Self::Status, reason: Self::Reason, since: Time);
    /// Changes when its row was last changed, in memory.
    fn touch(&mut self, at: Time);
    /// The other columns that are written with its status, with their values.
    fn columns(&self) -> Vec<(&'static str, Value<'_>)>;
    /// What the log says of it: its state, without secrets.
    fn told(&self) -> impl Serialize + Send + Sync;

    /// A column that must still have this value when the row is written.
    fn guard(&self) -> Option<(&'static str, Value<'_>)> {
        None
    }

    /// What else changes when it enters its status.
    fn entered(&mut self, _: &mut Tx) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Wakes those who have to know that it changed.
    fn wake(&self, tx: &mut Tx) {
        work::wake(tx, Lane::Priority, Key::new(Self::WORKER, self.id()));
    }

    /// The same subject as it is now, which nobody else changes until the end of the transaction.
    fn retake(&self, tx: &mut Tx) -> impl Future<Output = Result<Self>> + Send {
        subject::take(tx, Scope::All, self.id())
    }

    /// Has nothing happened to it since `seen` that a worker would have to look at again?
    fn is_still(&self, seen: &Self) -> bool {
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

/// Moves a subject to another status, with everything else that was changed of it in memory; appends
/// `kind.status` to the log and wakes its worker. A step that its lifecycle does not have is a bug.
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
    note(tx, now, &to.to_string()).await
}

fn illegal(kind: &str, from: impl Display, to: impl Display) -> Error {
    Error::Broken(format!("a status {to} can't follow {from} ({kind})"))
}

/// Changes why a subject is in its status, if that is news. Wakes nobody.
pub async fn explain<T: Lifecycle>(tx: &mut Tx, now: &mut T, reason: T::Reason) -> Result<()> {
    if *now.state().reason == reason {
        return Ok(());
    }
    explain_anew(tx, now, reason).await
}

/// The same where something else of the subject is news, too.
pub(crate) async fn explain_anew<T: Lifecycle>(
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

/// Writes a subject that stays in its status as it is in memory; appends `kind.change` to the log and
/// wakes its worker.
pub async fn save<T: Lifecycle>(tx: &mut Tx, now: &mut T, change: &str) -> Result<()> {
    now.touch(tx.now());
    let status = now.state().status;
    write(tx, now, status).await?;
    note(tx, now, change).await
}

/// Appends a subject's state to the log and wakes its worker.
pub(crate) async fn note<T: Lifecycle>(tx: &mut Tx, now: &T, change: &str) -> Result<()> {
    now.wake(tx);
    append(tx, now, change).await
}

/// Appends a subject's state to the log.
pub(crate) async fn append<T: Lifecycle>(tx: &mut Tx, now: &T, change: &str) -> Result<()> {
    event::append(tx, T::KIND, now.id(), now.owner(), change, &now.told()).await
}

/// Writes a subject as it is in memory, if its row still has the status `from`.
pub(crate) async fn write<T: Lifecycle>(tx: &mut Tx, now: &T, from: T::Status) -> Result<()> {
    let id = now.id();
    match update(now, &id, &from).run(tx).await? {
        0 => Err(Error::Conflict(format!("the {} {id} is no longer {from}", T::KIND.as_str()))),
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

/// What agents have to do with a change of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    /// Their desired state stays as it was.
    Unconcerned,
    /// There is a new desired state, which whoever runs them answers.
    Answers,
    /// There is a new desired state, and nothing runs that could answer it.
    Absent,
}

impl Agent {
    /// Who answers for replicas that have a program, or have none.
    pub(crate) fn of(deployment: &Deployment) -> Self {
        if deployment.spec.image.is_some() { Self::Answers } else { Self::Absent }
    }
}

/// A change of replicas.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// Their status from now on.
    pub(crate) to: Status,
    /// Why.
    pub(crate) reason: Reason,
    /// Whether agents have to do something.
    pub(crate) agent: Agent,
    /// Where they can be reached from now on; where they could be before, if nothing is said.
    pub(crate) endpoints: Option<&'a [String]>,
    /// The place that they get. They must not have one.
    pub(crate) place: Option<&'a Place>,
}

impl Change<'_> {
    /// A change of the status alone.
    pub(crate) fn new(to: Status, reason: impl Into<Reason>, agent: Agent) -> Self {
        Self { to, reason: reason.into(), agent, endpoints: None, place: None }
    }
}

/// Moves replicas of one deployment, whose row the transaction holds, to another status, or gives them
/// another reason for the one that they have: one statement for all that come from the same status.
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
                Agent::Unconcerned => "",
                Agent::Answers if self.place.is_some() => ", desired = desired + 1",
                Agent::Answers => {
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
        replica.desired += i64::from(self.agent != Agent::Unconcerned);
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

/// Writes the sum of a deployment's replicas, which are all of it, and appends the change to the log.
///
/// A deployment on its way out stays that, and is gone with the last of them.
pub(crate) async fn settle(
    tx: &mut Tx,
    seen: &Deployment,
    replicas: &[Replica],
    change: &str,
) -> Result<Deployment> {
    let mut now = Deployment { updated_at: tx.now(), endpoints: Vec::new(), ..seen.clone() };
    let first = replicas.iter().find_map(|replica| replica.place.clone());
    (now.placed_on, now.node) = first.map(|place| (place.cluster, place.node.to_string())).unzip();
    if now.status != Status::Deleting
        && let Some(summary) = summary(replicas)
    {
        (now.status, now.reason) = (summary.status, summary.reason);
        (now.endpoints, now.started_at) = (summary.endpoints, summary.started_at);
    }
    let sql = sql!(
        "UPDATE deployment SET status = $2, status_reason = $3, placed_on = $4, node = $5, ",
        "endpoints = $6, started_at = $7, updated_at = $8, reason_code = $9 ",
        "WHERE id = $1 AND deleted_at IS NULL"
    );
    let (status, reason, endpoints) = (now.status, &now.reason, Json(&now.endpoints));
    let code = reason.code();
    let params = params![
        now.id,
        status,
        reason,
        now.placed_on,
        now.node,
        endpoints,
        now.started_at,
        now.updated_at,
        code
    ];
    if tx.run(sql, params).await? == 0 {
        tx.poison();
        return Err(Error::not_found("deployment", now.id));
    }
    crate::deployment::append(tx, &now, change).await?;
    Ok(now)
}
