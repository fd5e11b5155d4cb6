//! Replicas: what of a deployment is placed, started and stopped, one by one.

use crate::Time;
use crate::agent::ReplicaId;
use crate::deployment::{Reason, Status};
use crate::world::Place;

/// One replica of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Whose and which.
    pub id: ReplicaId,
    /// The node whose capacity it holds.
    pub place: Option<Place>,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    pub reason: Reason,
    /// Why that may be outdated.
    pub caveat: Option<Reason>,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// Counts the changes of what the agent shall do; reports carry it back.
    pub desired: i64,
    /// Since when it has its place.
    pub placed_at: Option<Time>,
    /// Since when it runs.
    pub started_at: Option<Time>,
}

/// What a deployment is, going by its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Where it is on its way: as far as the furthest of those that have not ended.
    pub status: Status,
    /// Why it has that status.
    pub reason: Reason,
    /// Where it is: where the first is that has a place.
    pub place: Option<Place>,
    /// Where all of them can be reached.
    pub endpoints: Vec<String>,
    /// Since when the first of them runs.
    pub started_at: Option<Time>,
}

/// Sums up. There must be at least one replica that is not on its way out.
pub fn summary(all: &[Replica]) -> Option<Summary> {
    let kept: Vec<&Replica> = all.iter().filter(|r| r.status != Status::Deleting).collect();
    let speaker = speaker(&kept)?;
    Some(Summary {
        status: speaker.status,
        reason: with_caveat(reason(&kept, speaker), &kept),
        place: all.iter().find_map(|replica| replica.place.clone()),
        endpoints: kept.iter().flat_map(|replica| replica.endpoints.iter().cloned()).collect(),
        started_at: kept.iter().filter_map(|replica| replica.started_at).min(),
    })
}

/// Whose status is the deployment's: one failure fails it, and it is completed when all are.
fn speaker<'a>(kept: &[&'a Replica]) -> Option<&'a Replica> {
    use Status::{Completed, Failed, Preempted, Queued, Running, Scheduled, Starting};
    let order = [Failed, Running, Starting, Scheduled, Preempted, Queued, Completed];
    let of = |status: &Status| {
        let same = || kept.iter().filter(|replica| replica.status == *status);
        // Who failed says more than who was stopped with it.
        same()
            .find(|replica| !matches!(replica.reason, Reason::SiblingFailed { .. }))
            .or(same().next())
            .copied()
    };
    order.iter().find_map(of)
}

fn with_caveat(reason: Reason, kept: &[&Replica]) -> Reason {
    match kept.iter().find_map(|replica| replica.caveat.as_ref()) {
        Some(Reason::ClusterUnreachable { since, .. }) => {
            Reason::ClusterUnreachable { since: *since, last: Box::new(reason) }
        }
        Some(caveat) => caveat.clone(),
        None => reason,
    }
}

fn reason(kept: &[&Replica], speaker: &Replica) -> Reason {
    let of = |status: Status| kept.iter().filter(move |replica| replica.status == status).count();
    let (all, running) = (kept.len(), of(Status::Running));
    if all == 1 || running == all || speaker.status == Status::Completed {
        return speaker.reason.clone();
    }
    if speaker.status == Status::Failed {
        let reason = Box::new(speaker.reason.clone());
        return Reason::ReplicaFailed { replica: speaker.id.number, reason };
    }
    let pending = kept.iter().find(|replica| replica.status.is_waiting());
    if pending.is_none() && running + of(Status::Completed) == 0 {
        return speaker.reason.clone();
    }
    let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
    Reason::ReplicasUnavailable {
        running: number(running),
        replicas: number(all),
        pending: pending.map(|replica| Box::new(replica.reason.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Coded;
    use crate::{DeploymentId, Xid};

    fn replica(number: u32, status: Status) -> Replica {
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 0)), number };
        let reason = Reason::reported(format!("It is {status}."));
        Replica {
            id,
            place: None,
            status,
            reason,
            caveat: None,
            endpoints: Vec::new(),
            desired: 0,
            placed_at: None,
            started_at: None,
        }
    }

    fn of(statuses: &[Status]) -> (Status, String) {
        let all: Vec<Replica> =
            (0u32..).zip(statuses).map(|(number, status)| replica(number, *status)).collect();
        let summary = summary(&all).unwrap();
        (summary.status, summary.reason.to_string())
    }

    #[test]
    fn a_deployment_is_as_far_as_its_furthest_replica() {
        use Status::*;
        assert_eq!(of(&[Running]), (Running, "It is running.".into()));
        assert_eq!(of(&[Running, Running]).0, Running);
        let (status, reason) = of(&[Queued, Running, Starting]);
        assert_eq!((status, &*reason), (Running, "1 of 3 replicas running. It is queued."));
        assert_eq!(
            of(&[Queued, Queued]),
            (Queued, "0 of 2 replicas running. It is queued.".into())
        );
        assert_eq!(of(&[Scheduled, Starting]).0, Starting);
        assert_eq!(of(&[Queued, Preempted]).0, Preempted);
    }

    #[test]
    fn a_caveat_is_said_with_the_reason() {
        let mut all = [replica(0, Status::Running), replica(1, Status::Running)];
        let since = Some(Time(0));
        all[1].caveat = Some(Reason::ClusterUnreachable { since, last: Box::default() });
        let summary = summary(&all).unwrap();
        assert_eq!(summary.status, Status::Running);
        let last = Box::new(Reason::reported("It is running."));
        assert_eq!(summary.reason, Reason::ClusterUnreachable { since, last });
    }

    #[test]
    fn one_failure_fails_it_and_it_is_completed_when_all_are() {
        use Status::*;
        let (status, reason) = of(&[Running, Failed]);
        assert_eq!((status, &*reason), (Failed, "Replica 1: It is failed."));
        let mut both = [replica(0, Failed), replica(1, Failed)];
        both[0].reason = Reason::SiblingFailed { replica: 1 };
        assert_eq!(summary(&both).unwrap().reason.to_string(), "Replica 1: It is failed.");
        assert_eq!(of(&[Completed, Running]).0, Running);
        assert_eq!(of(&[Completed, Completed]).0, Completed);
        assert_eq!(of(&[Running, Deleting]), (Running, "It is running.".into()));
        assert_eq!(summary(&[replica(0, Deleting)]), None);
    }
}
