//! What a command waits for, as data.

use wire::subject::State;

use crate::client::subject::Kind;

/// The statuses that end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    /// In these it ends well …
    reached: &'static [&'static str],
    /// … and in these it has failed.
    failed: &'static [&'static str],
    /// Whether an empty cluster is a goal, too; a cluster that is not being drained has failed.
    is_drain: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    Failed,
    NotYet,
    /// It may be reached: only a look at each replica tells.
    Look,
}

impl Goal {
    /// Deleted. A subject may have failed before; that is no news.
    pub(crate) const GONE: Self = Self { reached: &["deleted"], failed: &[], is_drain: false };
    /// A cluster without deployments.
    pub(crate) const EMPTY: Self = Self { is_drain: true, ..Self::GONE };
    /// An environment that works.
    pub(crate) const DEPLOYED: Self = Self {
        reached: &["deployed"],
        failed: &["failed", "destroying", "destroyed"],
        is_drain: false,
    };
    /// An environment in which nothing is going on.
    pub(crate) const IDLE: Self =
        Self { reached: &["deployed", "failed", "destroyed"], failed: &[], is_drain: false };
    /// A destroyed environment.
    pub(crate) const DESTROYED: Self =
        Self { reached: &["destroyed"], failed: &["failed"], is_drain: false };

    /// A status in which a subject of this kind does its work.
    pub(crate) fn up(kind: &Kind<'_>) -> Self {
        Self { reached: kind.up, failed: &["failed", "deleted"], is_drain: false }
    }

    pub(super) fn judge(self, kind: &Kind<'_>, state: &State) -> Verdict {
        let status = state.status.as_str();
        if self.is_drain && status != kind.gone {
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
        // A deployment is there when each of its replicas is; events carry none of them.
        let Some(replicas) = state.replicas else { return Verdict::Reached };
        match &state.replica_statuses {
            None => Verdict::Look,
            Some(all) if all.len() != replicas => Verdict::NotYet,
            Some(all) if all.iter().all(|one| self.reached.contains(&one.status.as_str())) => {
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
    fn each_kind_has_its_goal() {
        let up = Goal::up;
        for (kind, goal, status, want) in [
            (&CLUSTER, up(&CLUSTER), "accepted", Verdict::NotYet),
            (&CLUSTER, up(&CLUSTER), "ready", Verdict::Reached),
            (&CLUSTER, up(&CLUSTER), "failed", Verdict::Failed),
            (&CLUSTER, up(&CLUSTER), "deleted", Verdict::Failed),
            (&CLUSTER, Goal::GONE, "failed", Verdict::NotYet),
            (&CLUSTER, Goal::GONE, "cleanup", Verdict::NotYet),
            (&CLUSTER, Goal::GONE, "deleted", Verdict::Reached),
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
            (&INSTANCE, Goal::GONE, "deleting", Verdict::NotYet),
            (&INSTANCE, Goal::GONE, "deleted", Verdict::Reached),
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
            assert_eq!(verdict, want, "{} {goal:?} {status}", kind.word);
        }
    }

    #[test]
    fn a_drained_cluster_is_empty() {
        for (deployments, want) in [(2, Verdict::NotYet), (0, Verdict::Reached)] {
            let draining_at = Some(model::Time(0));
            let deployments = Some(deployments);
            let state = State { draining_at, deployments, ..State::new("ready") };
            assert_eq!(Goal::EMPTY.judge(&CLUSTER, &state), want);
        }
    }

    #[test]
    fn a_deployment_is_up_when_each_of_its_replicas_is() {
        for (parts, replicas, want) in [
            (Some(&["running", "running"][..]), 2, Verdict::Reached),
            (Some(&["running", "completed"]), 2, Verdict::Reached),
            (Some(&["running", "queued"]), 2, Verdict::NotYet),
            (Some(&["running", "deleting"]), 1, Verdict::NotYet),
            (Some(&["running"]), 2, Verdict::NotYet),
            (None, 2, Verdict::Look),
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
