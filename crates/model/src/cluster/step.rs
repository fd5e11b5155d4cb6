//! What the cluster worker does next, and how long it listens for an agent.

use std::time::Duration;

use super::{Cluster, Provider, Reason, Status};
use crate::Time;

/// What the cluster worker does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Move on, with this reason.
    Move(Status, Reason),
    /// Ask who makes it. What comes of that decides where it goes.
    Ask(Ask),
    /// Nothing is left: mark it deleted.
    Delete,
    /// Nothing, until the agent speaks; nobody says when it does.
    Await,
    /// Nothing, until then at the latest.
    Until(Time),
    /// What was on it may run elsewhere.
    GiveUp,
    /// Nothing, until something changes.
    Rest,
}

/// What is asked of who makes a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Make it.
    Create,
    /// Is it there?
    Status,
    /// Have it be able to host.
    Prepare,
    /// Take it away.
    Remove,
}

/// What is known of a cluster's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// It has not spoken yet.
    Unheard,
    /// It speaks. If there is a time, it is silent from then on unless it speaks again.
    Speaks(Option<Time>),
    /// It was last heard then, and has been silent for longer than it may be.
    Silent(Time),
}

/// How long agents may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After this their cluster is unreachable.
    pub silence: Duration,
    /// After this, counted from there, what was on it is given up; never if there is none.
    pub grace: Option<Duration>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { silence: Duration::from_secs(30), grace: Some(Duration::from_mins(5)) }
    }
}

impl Patience {
    /// How often an agent shall speak, so that a few lost words do not matter.
    pub fn beat(&self) -> Duration {
        self.silence / 6
    }

    /// What is known of an agent that was last heard then. Who listens since `since` only does not
    /// take for silence what it could not hear.
    pub fn voice(&self, heard_at: Option<Time>, since: Time, now: Time) -> Voice {
        let Some(heard_at) = heard_at else { return Voice::Unheard };
        let until = heard_at.max(since) + self.silence;
        if now < until { Voice::Speaks(Some(until)) } else { Voice::Silent(heard_at) }
    }

    /// The next step of a cluster.
    pub fn next_step(&self, cluster: &Cluster, agent: Voice, now: Time) -> Step {
        let is_lost = cluster.status == Status::Unreachable && matches!(agent, Voice::Silent(_));
        if !is_lost {
            return of_its_word(cluster, agent)
                .unwrap_or_else(|| next_step(cluster.provider, cluster.status, agent));
        }
        match self.grace.zip(cluster.unreachable_at) {
            None => Step::Rest,
            Some((grace, at)) if now < at + grace => Step::Until(at + grace),
            Some(_) => Step::GiveUp,
        }
    }
}

impl Cluster {
    /// When it must have moved on; never if it may stay, or waits for a person.
    pub fn deadline(&self) -> Option<Time> {
        patience(self.provider, self.status).map(|long| self.status_since + long)
    }
}

/// How long a cluster may take for one step before it has failed.
fn patience(provider: Provider, status: Status) -> Option<Duration> {
    if !provider.makes() {
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

/// The step of a cluster whose agent speaks as the fleet managers' do and says that it is not ready.
fn of_its_word(cluster: &Cluster, agent: Voice) -> Option<Step> {
    let hosting = &cluster.hosting;
    if !hosting.is_foreign || hosting.is_agent_ready || !matches!(agent, Voice::Speaks(_)) {
        return None;
    }
    match cluster.status {
        Status::Ready => Some(Step::Move(Status::WaitingForAgent, Reason::AgentNotReady)),
        Status::WaitingForAgent => Some(Step::Rest),
        _ => None,
    }
}

/// The next step of a cluster that is not lost.
pub fn next_step(provider: Provider, status: Status, agent: Voice) -> Step {
    let step = if provider.makes() { of_what_is_made(status, agent) } else { None };
    step.unwrap_or_else(|| of_what_there_is(provider, status, agent))
}

/// The step of a cluster that its provider makes, where it is the provider's.
fn of_what_is_made(status: Status, agent: Voice) -> Option<Step> {
    let speaks = matches!(agent, Voice::Speaks(_));
    match status {
        Status::Accepted => Some(Step::Ask(Ask::Create)),
        Status::Provisioning => Some(Step::Ask(Ask::Status)),
        Status::Provisioned => Some(Step::Ask(Ask::Prepare)),
        // That the agent does not speak may have a reason, and the provider may know it.
        Status::WaitingForAgent if !speaks => Some(Step::Ask(Ask::Prepare)),
        Status::Deprovisioning => Some(Step::Ask(Ask::Remove)),
        _ => None,
    }
}

/// The step of a cluster that needs only an agent to be heard.
fn of_what_there_is(provider: Provider, status: Status, agent: Voice) -> Step {
    let is_local = provider == Provider::Local;
    let to = |status| Step::Move(status, Reason::AsExpected);
    match (status, agent) {
        (Status::Accepted, _) => to(Status::Provisioning),
        (Status::Provisioning, _) => to(Status::Provisioned),
        (Status::Provisioned, _) => {
            Step::Move(Status::WaitingForAgent, Reason::AwaitingAgent { provider })
        }
        (Status::Ready, Voice::Unheard) if !is_local => {
            Step::Move(Status::WaitingForAgent, Reason::AwaitingAgent { provider })
        }
        (Status::WaitingForAgent | Status::Unreachable, Voice::Speaks(_)) => to(Status::Ready),
        (Status::WaitingForAgent, _) if is_local => Step::Await,
        (Status::Ready, Voice::Silent(since)) if !is_local => {
            Step::Move(Status::Unreachable, Reason::AgentUnreachable { since })
        }
        (Status::Ready, Voice::Speaks(Some(until))) if !is_local => Step::Until(until),
        (Status::Deprovisioning, _) => to(Status::Cleanup),
        (Status::Cleanup, _) => Step::Delete,
        (Status::WaitingForAgent | Status::Ready | Status::Unreachable | Status::Failed, _) => {
            Step::Rest
        }
    }
}

/// Where a cluster goes when an operation is done, and why; nowhere after a repair.
pub fn done(status: Status, ask: Ask, provider: Provider) -> Option<(Status, Reason)> {
    match (status, ask) {
        (Status::Provisioning, Ask::Status) => Some((Status::Provisioned, Reason::InstallingAgent)),
        (Status::Provisioned, Ask::Prepare) => {
            Some((Status::WaitingForAgent, Reason::AwaitingAgent { provider }))
        }
        (Status::Deprovisioning, Ask::Remove) => Some((Status::Cleanup, Reason::AsExpected)),
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

    fn voices() -> [Voice; 4] {
        [Voice::Unheard, Voice::Speaks(None), Voice::Speaks(Some(NOON)), Voice::Silent(NOON)]
    }

    #[test]
    fn every_step_of_the_worker_is_one_of_the_lifecycle() {
        for &provider in Provider::ALL {
            for &status in Status::ALL {
                for agent in voices() {
                    if let Step::Move(next, _) = next_step(provider, status, agent) {
                        assert!(status.may_become(next), "{status} to {next}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_worker_comes_to_rest_whatever_it_hears() {
        for &provider in Provider::ALL {
            for &first in Status::ALL {
                for agent in voices() {
                    let (mut status, mut steps) = (first, 0);
                    while let Step::Move(next, _) = next_step(provider, status, agent) {
                        (status, steps) = (next, steps + 1);
                        assert!(steps < 9, "{provider} {first} {agent:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_made_is_asked_for_until_it_is_done() {
        let mut status = Status::Accepted;
        let mut way = Vec::new();
        loop {
            let ask = match next_step(Provider::Kubernetes, status, Voice::Unheard) {
                Step::Ask(ask) => ask,
                other => panic!("{status}: {other:?}"),
            };
            way.push(ask);
            // Asking to make it begins the way; the answers take it further.
            let next = match ask {
                Ask::Create => Some((Status::Provisioning, Reason::AsExpected)),
                _ => done(status, ask, Provider::Kubernetes),
            };
            let Some((next, _)) = next else { break };
            assert!(status.may_become(next), "{status} to {next}");
            status = next;
        }
        assert_eq!(way, [Ask::Create, Ask::Status, Ask::Prepare, Ask::Prepare]);
        assert_eq!(status, Status::WaitingForAgent);
        let heard = next_step(Provider::Kubernetes, status, Voice::Speaks(None));
        assert!(matches!(heard, Step::Move(Status::Ready, _)), "{heard:?}");
        let leaving = next_step(Provider::Terraform, Status::Deprovisioning, Voice::Unheard);
        assert_eq!(leaving, Step::Ask(Ask::Remove));
    }

    #[test]
    fn what_is_made_must_be_done_some_day_and_who_waits_for_a_person_may_wait() {
        for &provider in Provider::ALL {
            for &status in Status::ALL {
                let deadline = Cluster { provider, status, ..lost() }.deadline();
                let is_on_its_way = matches!(
                    status,
                    Status::Accepted
                        | Status::Provisioning
                        | Status::Provisioned
                        | Status::WaitingForAgent
                );
                assert_eq!(deadline.is_some(), provider.makes() && is_on_its_way, "{status}");
            }
        }
    }

    #[test]
    fn silence_is_counted_from_when_one_could_have_heard() {
        let patience = Patience::default();
        let (secs, at) = (Duration::from_secs, |s| NOON + Duration::from_secs(s));
        assert_eq!(patience.voice(None, NOON, at(99)), Voice::Unheard);
        let speaks = Voice::Speaks(Some(NOON + patience.silence));
        assert_eq!(patience.voice(Some(NOON), NOON - secs(9), at(29)), speaks);
        assert_eq!(patience.voice(Some(NOON), NOON - secs(9), at(30)), Voice::Silent(NOON));
        // A server that was away for an hour gives its agents time to come back.
        let later = at(3600);
        assert!(matches!(patience.voice(Some(NOON), later, later), Voice::Speaks(_)));
    }

    #[test]
    fn what_was_on_a_lost_cluster_is_given_up_after_the_grace() {
        let mut cluster = lost();
        let patience = Patience::default();
        let step = |patience: Patience, cluster: &Cluster, voice, secs| {
            patience.next_step(cluster, voice, NOON + Duration::from_secs(secs))
        };
        let end = NOON + Duration::from_mins(5);
        let silent = Voice::Silent(NOON);
        assert_eq!(step(patience, &cluster, silent, 299), Step::Until(end));
        assert_eq!(step(patience, &cluster, silent, 300), Step::GiveUp);
        let never = Patience { grace: None, ..patience };
        assert_eq!(step(never, &cluster, silent, 999_999), Step::Rest);
        let back = step(patience, &cluster, Voice::Speaks(Some(end)), 999);
        assert!(matches!(back, Step::Move(Status::Ready, _)), "{back:?}");
        cluster.status = Status::Deprovisioning;
        let out = step(patience, &cluster, silent, 999);
        assert!(matches!(out, Step::Move(Status::Cleanup, _)), "{out:?}");
    }

    #[test]
    fn a_foreign_agent_is_believed_when_it_says_that_it_is_not_ready() {
        let speaks = Voice::Speaks(Some(NOON));
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
            let cluster = Cluster { status, hosting, ..lost() };
            let to = match Patience::default().next_step(&cluster, speaks, NOON) {
                Step::Move(to, _) => Some(to),
                _ => None,
            };
            assert_eq!(to, expected, "{status} {is_ready}");
        }
    }

    fn lost() -> Cluster {
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
