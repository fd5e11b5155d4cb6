//! The goal of a wait, as data.

use wire::subject::State;

use crate::client::subject::Kind;

/// Statuses that end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    /// Statuses of success.
    reached: &'static [&'static str],
    /// Statuses of failure.
    failed: &'static [&'static str],
    /// Whether an empty cluster is success and the end of its drain is failure.
    is_drain: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    Failed,
    NotYet,
    /// Possibly reached: the state of each replica must be fetched.
    Fetch,
}

impl Goal {
    /// Deleted. Failed subjects can be deleted as well, so no status is a failure.
    pub(crate) const DELETED: Self = Self { reached: &["deleted"], failed: &[], is_drain: false };
    /// A cluster without deployments.
    pub(crate) const EMPTY: Self = Self { is_drain: true, ..Self::DELETED };
    /// A deployed environment.
    pub(crate) const DEPLOYED: Self = Self {
        reached: &["deployed"],
        failed: &["failed", "destroying", "destroyed"],
        is_drain: false,
    };
    /// An environment without a running operation.
    pub(crate) const IDLE: Self =
        Self { reached: &["deployed", "failed", "destroyed"], failed: &[], is_drain: false };
    /// A destroyed environment.
    pub(crate) const DESTROYED: Self =
        Self { reached: &["destroyed"], failed: &["failed"], is_drain: false };

    /// A subject that is operational.
    pub(crate) fn up(kind: &Kind<'_>) -> Self {
        Self { reached: kind.up, failed: &["failed", "deleted"], is_drain: false }
    }

    pub(super) fn judge(self, kind: &Kind<'_>, state: &State) -> Verdict {
        let status = state.status.as_str();
        if self.is_drain && status != kind.deleted {
            return match (state.draining_at, state.deployments) {
                (None, _) => Verdict::Failed,
                (_, Some(0)) => Verdict::Reached,
                _ => Verdict::NotYet,
            };
        }
        if self.failed.contains(&status) {
            return Verdict::Failed;
        }
        if !self.reached.contains(&status) {
            return Verdict::NotYet;
        }
        // A deployment is up when all its replicas are, and events do not carry replicas.
        let Some(replicas) = state.replicas else { return Verdict::Reached };
        match &state.replica_statuses {
            None => Verdict::Fetch,
            Some(all) if all.len() != replicas => Verdict::NotYet,
            Some(all) if all.iter().all(|r| self.reached.contains(&r.status.as_str())) => {
                Verdict::Reached
            }
            Some(_) => Verdict::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::replica;
    use super::*;
    use crate::client::subject::{CLUSTER, DEPLOYMENT, ENVIRONMENT, INSTANCE};

    #[test]
    fn goals_are_judged_by_status() {
        let up = Goal::up;
        for (kind, goal, status, want) in [
            (&CLUSTER, up(&CLUSTER), "accepted", Verdict::NotYet),
            (&CLUSTER, up(&CLUSTER), "ready", Verdict::Reached),
            (&CLUSTER, up(&CLUSTER), "failed", Verdict::Failed),
            (&CLUSTER, up(&CLUSTER), "deleted", Verdict::Failed),
            (&CLUSTER, Goal::DELETED, "failed", Verdict::NotYet),
            (&CLUSTER, Goal::DELETED, "cleanup", Verdict::NotYet),
            (&CLUSTER, Goal::DELETED, "deleted", Verdict::Reached),
            (&CLUSTER, Goal::EMPTY, "ready", Verdict::Failed),
            (&CLUSTER, Goal::EMPTY, "deleted", Verdict::Reached),
            (&DEPLOYMENT, up(&DEPLOYMENT), "queued", Verdict::NotYet),
            (&DEPLOYMENT, up(&DEPLOYMENT), "preempted", Verdict::NotYet),
            (&DEPLOYMENT, up(&DEPLOYMENT), "running", Verdict::Reached),
            (&DEPLOYMENT, up(&DEPLOYMENT), "completed", Verdict::Reached),
            (&DEPLOYMENT, up(&DEPLOYMENT), "failed", Verdict::Failed),
            (&INSTANCE, up(&INSTANCE), "provisioning", Verdict::NotYet),
            (&INSTANCE, up(&INSTANCE), "ready", Verdict::Reached),
            (&INSTANCE, up(&INSTANCE), "failed", Verdict::Failed),
            (&INSTANCE, Goal::DELETED, "deleting", Verdict::NotYet),
            (&INSTANCE, Goal::DELETED, "deleted", Verdict::Reached),
            (&ENVIRONMENT, Goal::DEPLOYED, "deploying", Verdict::NotYet),
            (&ENVIRONMENT, Goal::DEPLOYED, "validating", Verdict::NotYet),
            (&ENVIRONMENT, Goal::DEPLOYED, "deployed", Verdict::Reached),
            (&ENVIRONMENT, Goal::DEPLOYED, "failed", Verdict::Failed),
            (&ENVIRONMENT, Goal::DEPLOYED, "destroying", Verdict::Failed),
            (&ENVIRONMENT, Goal::IDLE, "deploying", Verdict::NotYet),
            (&ENVIRONMENT, Goal::IDLE, "destroying", Verdict::NotYet),
            (&ENVIRONMENT, Goal::IDLE, "failed", Verdict::Reached),
            (&ENVIRONMENT, Goal::IDLE, "deployed", Verdict::Reached),
            (&ENVIRONMENT, Goal::DESTROYED, "destroying", Verdict::NotYet),
            (&ENVIRONMENT, Goal::DESTROYED, "failed", Verdict::Failed),
            (&ENVIRONMENT, Goal::DESTROYED, "destroyed", Verdict::Reached),
        ] {
            let verdict = goal.judge(kind, &State::new(status));
            assert_eq!(verdict, want, "{} {goal:?} {status}", kind.noun);
        }
    }

    #[test]
    fn drain_is_complete_when_the_cluster_is_empty() {
        for (deployments, want) in [(2, Verdict::NotYet), (0, Verdict::Reached)] {
            let draining_at = Some(model::Time(0));
            let deployments = Some(deployments);
            let state = State { draining_at, deployments, ..State::new("ready") };
            assert_eq!(Goal::EMPTY.judge(&CLUSTER, &state), want);
        }
    }

    #[test]
    fn deployment_is_up_when_all_replicas_are() {
        for (parts, replicas, want) in [
            (Some(&["running", "running"][..]), 2, Verdict::Reached),
            (Some(&["running", "completed"]), 2, Verdict::Reached),
            (Some(&["running", "queued"]), 2, Verdict::NotYet),
            (Some(&["running", "deleting"]), 1, Verdict::NotYet),
            (Some(&["running"]), 2, Verdict::NotYet),
            (None, 2, Verdict::Fetch),
        ] {
            let all = |parts: &[&str]| parts.iter().map(|status| replica(0, status, "")).collect();
            let state = State {
                replicas: Some(replicas),
                replica_statuses: parts.map(all),
                ..State::new("running")
            };
            assert_eq!(Goal::up(&DEPLOYMENT).judge(&DEPLOYMENT, &state), want, "{parts:?}");
        }
    }
}
