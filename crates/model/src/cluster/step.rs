//! Reconciliation steps of clusters, and heartbeat timeouts of agents.

use std::time::Duration;

use super::{Cluster, Provider, Reason, Status};
use crate::Time;

/// The next reconciliation step of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Change the status, with this reason.
    Transition(Status, Reason),
    /// Call the provider. The outcome decides the next status.
    Call(ProviderOperation),
    /// Mark the cluster deleted: nothing is left of it.
    Delete,
    /// Wait for the local agent, whose heartbeat wakes no worker.
    AwaitLocalAgent,
    /// Wait until this time at the latest.
    WaitUntil(Time),
    /// Evict its workloads.
    Evict,
    /// Wait for a change.
    Idle,
}

/// An operation of a cluster's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderOperation {
    /// Create the cluster.
    Create,
    /// Query whether it exists.
    Status,
    /// Install the agent and its prerequisites.
    InstallAgent,
    /// Destroy the cluster.
    Destroy,
}

/// Heartbeat state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// No heartbeat yet.
    Never,
    /// Alive; from the given time on it is overdue unless another heartbeat arrives.
    Alive(Option<Time>),
    /// Overdue; the last heartbeat came at this time.
    Overdue(Time),
}

/// Heartbeat timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatTimeouts {
    /// Time without a heartbeat after which a cluster is unreachable.
    pub unreachable_after: Duration,
    /// Time after which an unreachable cluster's workloads are evicted; none means never.
    pub evict_after: Option<Duration>,
}

impl Default for HeartbeatTimeouts {
    fn default() -> Self {
        Self {
            unreachable_after: Duration::from_secs(30),
            evict_after: Some(Duration::from_mins(5)),
        }
    }
}

impl HeartbeatTimeouts {
    /// Heartbeat interval, short enough that a few lost heartbeats do not matter.
    pub fn interval(&self) -> Duration {
        self.unreachable_after / 6
    }

    /// The heartbeat state of an agent. Time before `since`, when this server started listening,
    /// does not count as overdue.
    pub fn heartbeat(&self, heard_at: Option<Time>, since: Time, now: Time) -> Heartbeat {
        let Some(heard_at) = heard_at else { return Heartbeat::Never };
        let until = heard_at.max(since) + self.unreachable_after;
        if now < until { Heartbeat::Alive(Some(until)) } else { Heartbeat::Overdue(heard_at) }
    }

    /// The next step of a cluster.
    pub fn next_step(&self, cluster: &Cluster, agent: Heartbeat, now: Time) -> Step {
        let is_unreachable =
            cluster.status == Status::Unreachable && matches!(agent, Heartbeat::Overdue(_));
        if !is_unreachable {
            return not_ready_step(cluster, agent)
                .unwrap_or_else(|| next_step(cluster.provider, cluster.status, agent));
        }
        match self.evict_after.zip(cluster.unreachable_at) {
            None => Step::Idle,
            Some((grace, at)) if now < at + grace => Step::WaitUntil(at + grace),
            Some(_) => Step::Evict,
        }
    }
}

impl Cluster {
    /// The deadline of the current status; none if it may last.
    pub fn deadline(&self) -> Option<Time> {
        timeout(self.provider, self.status).map(|long| self.status_since + long)
    }
}

/// Timeout of a provisioning status.
fn timeout(provider: Provider, status: Status) -> Option<Duration> {
    if !provider.provisions() {
        return None;
    }
    match (provider, status) {
        (_, Status::Accepted) => Some(Duration::from_mins(30)),
        (Provider::Terraform, Status::Provisioning) => Some(Duration::from_hours(2)),
        (_, Status::Provisioning | Status::Provisioned | Status::WaitingForAgent) => {
            Some(Duration::from_mins(30))
        }
        _ => None,
    }
}

/// The step of a cluster whose third-party agent reports that it is not ready.
fn not_ready_step(cluster: &Cluster, agent: Heartbeat) -> Option<Step> {
    let hosting = &cluster.hosting;
    if !hosting.is_foreign || hosting.is_agent_ready || !matches!(agent, Heartbeat::Alive(_)) {
        return None;
    }
    match cluster.status {
        Status::Ready => Some(Step::Transition(Status::WaitingForAgent, Reason::AgentNotReady)),
        Status::WaitingForAgent => Some(Step::Idle),
        _ => None,
    }
}

/// The next step of a cluster that is not past its grace period.
pub fn next_step(provider: Provider, status: Status, agent: Heartbeat) -> Step {
    let step = if provider.provisions() { provider_step(status, agent) } else { None };
    step.unwrap_or_else(|| agent_step(provider, status, agent))
}

/// The step of a cluster that its provider creates, if the provider has to act.
fn provider_step(status: Status, agent: Heartbeat) -> Option<Step> {
    let is_alive = matches!(agent, Heartbeat::Alive(_));
    match status {
        Status::Accepted => Some(Step::Call(ProviderOperation::Create)),
        Status::Provisioning => Some(Step::Call(ProviderOperation::Status)),
        Status::Provisioned => Some(Step::Call(ProviderOperation::InstallAgent)),
        // The provider may know why the agent sends no heartbeat.
        Status::WaitingForAgent if !is_alive => Some(Step::Call(ProviderOperation::InstallAgent)),
        Status::Deprovisioning => Some(Step::Call(ProviderOperation::Destroy)),
        _ => None,
    }
}

/// The step of a cluster that depends only on its agent.
fn agent_step(provider: Provider, status: Status, agent: Heartbeat) -> Step {
    let is_local = provider == Provider::Local;
    let to = |status| Step::Transition(status, Reason::AsExpected);
    match (status, agent) {
        (Status::Accepted, _) => to(Status::Provisioning),
        (Status::Provisioning, _) => to(Status::Provisioned),
        (Status::Provisioned, _) => {
            Step::Transition(Status::WaitingForAgent, Reason::AwaitingAgent { provider })
        }
        (Status::Ready, Heartbeat::Never) if !is_local => {
            Step::Transition(Status::WaitingForAgent, Reason::AwaitingAgent { provider })
        }
        (Status::WaitingForAgent | Status::Unreachable, Heartbeat::Alive(_)) => to(Status::Ready),
        (Status::WaitingForAgent, _) if is_local => Step::AwaitLocalAgent,
        (Status::Ready, Heartbeat::Overdue(since)) if !is_local => {
            Step::Transition(Status::Unreachable, Reason::AgentUnreachable { since })
        }
        (Status::Ready, Heartbeat::Alive(Some(until))) if !is_local => Step::WaitUntil(until),
        (Status::Deprovisioning, _) => to(Status::Cleanup),
        (Status::Cleanup, _) => Step::Delete,
        (Status::WaitingForAgent | Status::Ready | Status::Unreachable | Status::Failed, _) => {
            Step::Idle
        }
    }
}

/// The next status after a completed operation; none after a repair.
pub fn status_after(
    status: Status,
    ask: ProviderOperation,
    provider: Provider,
) -> Option<(Status, Reason)> {
    match (status, ask) {
        (Status::Provisioning, ProviderOperation::Status) => {
            Some((Status::Provisioned, Reason::InstallingAgent))
        }
        (Status::Provisioned, ProviderOperation::InstallAgent) => {
            Some((Status::WaitingForAgent, Reason::AwaitingAgent { provider }))
        }
        (Status::Deprovisioning, ProviderOperation::Destroy) => {
            Some((Status::Cleanup, Reason::AsExpected))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ClusterId;
    use crate::cluster::{Hosting, Settings};

    const NOON: Time = Time(1_000_000_000_000_000);

    fn voices() -> [Heartbeat; 4] {
        [
            Heartbeat::Never,
            Heartbeat::Alive(None),
            Heartbeat::Alive(Some(NOON)),
            Heartbeat::Overdue(NOON),
        ]
    }

    #[test]
    fn every_step_is_an_allowed_transition() {
        for &provider in Provider::ALL {
            for &status in Status::ALL {
                for agent in voices() {
                    if let Step::Transition(next, _) = next_step(provider, status, agent) {
                        assert!(status.may_become(next), "{status} to {next}");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_terminate_for_every_heartbeat_state() {
        for &provider in Provider::ALL {
            for &first in Status::ALL {
                for agent in voices() {
                    let (mut status, mut steps) = (first, 0);
                    while let Step::Transition(next, _) = next_step(provider, status, agent) {
                        (status, steps) = (next, steps + 1);
                        assert!(steps < 9, "{provider} {first} {agent:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn provider_is_called_until_the_cluster_is_prepared() {
        let mut status = Status::Accepted;
        let mut calls = Vec::new();
        loop {
            let ask = match next_step(Provider::Kubernetes, status, Heartbeat::Never) {
                Step::Call(ask) => ask,
                other => panic!("{status}: {other:?}"),
            };
            calls.push(ask);
            // The worker moves on when it calls `create`, and later by the provider's answers.
            let next = match ask {
                ProviderOperation::Create => Some((Status::Provisioning, Reason::AsExpected)),
                _ => status_after(status, ask, Provider::Kubernetes),
            };
            let Some((next, _)) = next else { break };
            assert!(status.may_become(next), "{status} to {next}");
            status = next;
        }
        assert_eq!(
            calls,
            [
                ProviderOperation::Create,
                ProviderOperation::Status,
                ProviderOperation::InstallAgent,
                ProviderOperation::InstallAgent
            ]
        );
        assert_eq!(status, Status::WaitingForAgent);
        let step = next_step(Provider::Kubernetes, status, Heartbeat::Alive(None));
        assert!(matches!(step, Step::Transition(Status::Ready, _)), "{step:?}");
        let leaving = next_step(Provider::Terraform, Status::Deprovisioning, Heartbeat::Never);
        assert_eq!(leaving, Step::Call(ProviderOperation::Destroy));
    }

    #[test]
    fn only_provisioning_by_a_provider_has_a_deadline() {
        for &provider in Provider::ALL {
            for &status in Status::ALL {
                let deadline = Cluster { provider, status, ..unreachable() }.deadline();
                let is_provisioning = matches!(
                    status,
                    Status::Accepted
                        | Status::Provisioning
                        | Status::Provisioned
                        | Status::WaitingForAgent
                );
                assert_eq!(
                    deadline.is_some(),
                    provider.provisions() && is_provisioning,
                    "{status}"
                );
            }
        }
    }

    #[test]
    fn heartbeat_timeout_starts_when_the_server_listens() {
        let timeouts = HeartbeatTimeouts::default();
        let (secs, at) = (Duration::from_secs, |s| NOON + Duration::from_secs(s));
        assert_eq!(timeouts.heartbeat(None, NOON, at(99)), Heartbeat::Never);
        let alive = Heartbeat::Alive(Some(NOON + timeouts.unreachable_after));
        assert_eq!(timeouts.heartbeat(Some(NOON), NOON - secs(9), at(29)), alive);
        assert_eq!(
            timeouts.heartbeat(Some(NOON), NOON - secs(9), at(30)),
            Heartbeat::Overdue(NOON)
        );
        // A server that was down for an hour gives agents time to reconnect.
        let later = at(3600);
        assert!(matches!(timeouts.heartbeat(Some(NOON), later, later), Heartbeat::Alive(_)));
    }

    #[test]
    fn workloads_of_an_unreachable_cluster_are_evicted_after_the_grace_period() {
        let mut cluster = unreachable();
        let timeouts = HeartbeatTimeouts::default();
        let step = |timeouts: HeartbeatTimeouts, cluster: &Cluster, voice, secs| {
            timeouts.next_step(cluster, voice, NOON + Duration::from_secs(secs))
        };
        let end = NOON + Duration::from_mins(5);
        let silent = Heartbeat::Overdue(NOON);
        assert_eq!(step(timeouts, &cluster, silent, 299), Step::WaitUntil(end));
        assert_eq!(step(timeouts, &cluster, silent, 300), Step::Evict);
        let never = HeartbeatTimeouts { evict_after: None, ..timeouts };
        assert_eq!(step(never, &cluster, silent, 999_999), Step::Idle);
        let back = step(timeouts, &cluster, Heartbeat::Alive(Some(end)), 999);
        assert!(matches!(back, Step::Transition(Status::Ready, _)), "{back:?}");
        cluster.status = Status::Deprovisioning;
        let out = step(timeouts, &cluster, silent, 999);
        assert!(matches!(out, Step::Transition(Status::Cleanup, _)), "{out:?}");
    }

    #[test]
    fn not_ready_report_of_a_third_party_agent_is_honoured() {
        let alive = Heartbeat::Alive(Some(NOON));
        for (status, is_ready, expected) in [
            (Status::WaitingForAgent, false, None),
            (Status::WaitingForAgent, true, Some(Status::Ready)),
            (Status::Ready, false, Some(Status::WaitingForAgent)),
            (Status::Ready, true, None),
            (Status::Accepted, false, Some(Status::Provisioning)),
            (Status::Deprovisioning, false, Some(Status::Cleanup)),
            (Status::Unreachable, false, Some(Status::Ready)),
        ] {
            let hosting =
                Hosting { is_foreign: true, is_agent_ready: is_ready, ..Hosting::default() };
            let cluster = Cluster { status, hosting, ..unreachable() };
            let to = match HeartbeatTimeouts::default().next_step(&cluster, alive, NOON) {
                Step::Transition(to, _) => Some(to),
                _ => None,
            };
            assert_eq!(to, expected, "{status} {is_ready}");
        }
    }

    fn unreachable() -> Cluster {
        Cluster {
            id: ClusterId(crate::Xid::new(1, [0; 5], 0)),
            organization_id: None,
            name: "far".into(),
            provider: Provider::Agent,
            cloud_provider: "local".into(),
            region: "local".into(),
            labels: BTreeMap::new(),
            status: Status::Unreachable,
            reason: Reason::AgentUnreachable { since: NOON },
            agent: None,
            unreachable_at: Some(NOON),
            capacity: BTreeMap::new(),
            nodes: Vec::new(),
            foreign_id: None,
            hosting: Hosting::default(),
            pool: None,
            deployments: 0,
            generation: 1,
            created_by: "server".into(),
            status_since: NOON,
            settings: Settings::None,
            draining_at: None,
            is_forced: false,
            created_at: NOON,
            updated_at: NOON,
        }
    }
}
