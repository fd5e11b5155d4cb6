//! Replicas: the units of a deployment that are placed, started and stopped individually.

use crate::Time;
use crate::agent::ReplicaId;
use crate::deployment::{Reason, Status};
use crate::world::Place;

/// One replica of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The id.
    pub id: ReplicaId,
    /// The node it is placed on.
    pub place: Option<Place>,
    /// The status.
    pub status: Status,
    /// The reason of the status.
    pub reason: Reason,
    /// Why the status may be outdated.
    pub caveat: Option<Reason>,
    /// Addresses at which it is reachable.
    pub endpoints: Vec<String>,
    /// Generation of the desired state, which reports echo.
    pub desired: i64,
    /// Time of the placement.
    pub placed_at: Option<Time>,
    /// Time of the start.
    pub started_at: Option<Time>,
    /// The machine whose capacity it holds besides its node's.
    pub machine: Option<String>,
}

/// The status of a deployment, derived from its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The status of the most advanced replica that has not ended.
    pub status: Status,
    /// The reason of the status.
    pub reason: Reason,
    /// The node of the first placed replica.
    pub place: Option<Place>,
    /// Addresses of all replicas.
    pub endpoints: Vec<String>,
    /// Start of the first replica.
    pub started_at: Option<Time>,
}

/// Summarizes replicas; none if all are being deleted.
pub fn summary(all: &[Replica]) -> Option<Summary> {
    let active: Vec<&Replica> = all.iter().filter(|r| r.status != Status::Deleting).collect();
    let leading = leading(&active)?;
    Some(Summary {
        status: leading.status,
        reason: with_caveat(reason(&active, leading), &active),
        place: all.iter().find_map(|replica| replica.place.clone()),
        endpoints: active.iter().flat_map(|replica| replica.endpoints.iter().cloned()).collect(),
        started_at: active.iter().filter_map(|replica| replica.started_at).min(),
    })
}

/// The replica that determines the status: one failure fails the deployment, and it is completed
/// when all replicas are.
fn leading<'a>(active: &[&'a Replica]) -> Option<&'a Replica> {
    use Status::{Completed, Failed, Preempted, Queued, Running, Scheduled, Starting};
    let order = [Failed, Running, Starting, Scheduled, Preempted, Queued, Completed];
    let with_status = |status: &Status| {
        let same = || active.iter().filter(|replica| replica.status == *status);
        // The original failure says more than a replica stopped because of it.
        same()
            .find(|replica| !matches!(replica.reason, Reason::SiblingFailed { .. }))
            .or(same().next())
            .copied()
    };
    order.iter().find_map(with_status)
}

fn with_caveat(reason: Reason, active: &[&Replica]) -> Reason {
    match active.iter().find_map(|replica| replica.caveat.as_ref()) {
        Some(Reason::ClusterUnreachable { since, .. }) => {
            Reason::ClusterUnreachable { since: *since, last: Box::new(reason) }
        }
        Some(caveat) => caveat.clone(),
        None => reason,
    }
}

fn reason(active: &[&Replica], leading: &Replica) -> Reason {
    let count =
        |status: Status| active.iter().filter(move |replica| replica.status == status).count();
    let (all, running) = (active.len(), count(Status::Running));
    if all == 1 || running == all || leading.status == Status::Completed {
        return leading.reason.clone();
    }
    if leading.status == Status::Failed {
        let reason = Box::new(leading.reason.clone());
        return Reason::ReplicaFailed { replica: leading.id.number, reason };
    }
    let pending = active.iter().find(|replica| replica.status.is_pending());
    if pending.is_none() && running + count(Status::Completed) == 0 {
        return leading.reason.clone();
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
    use crate::reason::StatusReason;
    use crate::{DeploymentId, Xid};

    fn replica(number: u32, status: Status) -> Replica {
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 0)), number };
        let reason = Reason::reported(format!("Reported {status}."));
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
            machine: None,
        }
    }

    fn summarize(statuses: &[Status]) -> (Status, String) {
        let all: Vec<Replica> =
            (0u32..).zip(statuses).map(|(number, status)| replica(number, *status)).collect();
        let summary = summary(&all).unwrap();
        (summary.status, summary.reason.to_string())
    }

    #[test]
    fn status_is_that_of_the_most_advanced_replica() {
        use Status::*;
        assert_eq!(summarize(&[Running]), (Running, "Reported running.".into()));
        assert_eq!(summarize(&[Running, Running]).0, Running);
        let (status, reason) = summarize(&[Queued, Running, Starting]);
        assert_eq!((status, &*reason), (Running, "1 of 3 replicas running. Reported queued."));
        assert_eq!(
            summarize(&[Queued, Queued]),
            (Queued, "0 of 2 replicas running. Reported queued.".into())
        );
        assert_eq!(summarize(&[Scheduled, Starting]).0, Starting);
        assert_eq!(summarize(&[Queued, Preempted]).0, Preempted);
    }

    #[test]
    fn caveat_wraps_the_reason() {
        let mut all = [replica(0, Status::Running), replica(1, Status::Running)];
        let since = Some(Time(0));
        all[1].caveat = Some(Reason::ClusterUnreachable { since, last: Box::default() });
        let summary = summary(&all).unwrap();
        assert_eq!(summary.status, Status::Running);
        let last = Box::new(Reason::reported("Reported running."));
        assert_eq!(summary.reason, Reason::ClusterUnreachable { since, last });
    }

    #[test]
    fn one_failure_fails_and_all_completed_complete_the_deployment() {
        use Status::*;
        let (status, reason) = summarize(&[Running, Failed]);
        assert_eq!((status, &*reason), (Failed, "Replica 1: Reported failed."));
        let mut both = [replica(0, Failed), replica(1, Failed)];
        both[0].reason = Reason::SiblingFailed { replica: 1 };
        assert_eq!(summary(&both).unwrap().reason.to_string(), "Replica 1: Reported failed.");
        assert_eq!(summarize(&[Completed, Running]).0, Running);
        assert_eq!(summarize(&[Completed, Completed]).0, Completed);
        assert_eq!(summarize(&[Running, Deleting]), (Running, "Reported running.".into()));
        assert_eq!(summary(&[replica(0, Deleting)]), None);
    }

    /// Replicas in these statuses that can be reached from `all` by one change of a deployment.
    fn successors(all: &[Status]) -> Vec<Vec<Status>> {
        use Status::*;
        let sum = summarize(all).0;
        let is_live = |status: &Status| status.is_placed() || status.is_pending();
        let mut next = Vec::new();
        for (i, from) in all.iter().enumerate() {
            // Only a new program, below, starts replicas that have ended.
            let has_ended = matches!(from, Failed | Completed);
            let steps = Status::ALL.iter().filter(|to| from.may_become(**to) && **to != Deleting);
            for &to in steps.filter(|_| !has_ended) {
                let mut changed = all.to_vec();
                changed[i] = to;
                if to == Failed {
                    changed.iter_mut().filter(|status| is_live(status)).for_each(|s| *s = Failed);
                }
                next.push(changed);
            }
            if is_live(&sum) && all.len() > 1 {
                let mut fewer = all.to_vec();
                fewer.remove(i);
                next.push(fewer);
            }
        }
        if is_live(&sum) {
            next.push([all, &[Queued]].concat());
        }
        if all.iter().all(|status| !status.is_pending()) {
            next.push(vec![Scheduled; all.len()]);
        }
        if all.iter().all(|status| *status == Queued) {
            next.push(vec![Running; all.len()]);
        }
        next
    }

    #[test]
    fn summary_of_reachable_replicas_follows_the_lifecycle() {
        use std::collections::BTreeSet;
        let mut seen: BTreeSet<Vec<&str>> = BTreeSet::new();
        let mut steps: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut open: Vec<Vec<Status>> = vec![vec![Status::Queued]];
        while let Some(all) = open.pop() {
            let mut key: Vec<&str> = all.iter().map(|status| status.as_str()).collect();
            key.sort_unstable();
            if all.len() > 4 || !seen.insert(key) {
                continue;
            }
            for next in successors(&all) {
                let (from, to) = (summarize(&all).0, summarize(&next).0);
                assert!(from.summary_may_become(to), "{from} to {to}: {all:?} to {next:?}");
                steps.insert((from.as_str(), to.as_str()));
                open.push(next);
            }
        }
        for from in Status::ALL.iter().filter(|from| **from != Status::Deleting) {
            for to in Status::ALL.iter().filter(|to| **to != Status::Deleting) {
                let is_taken = steps.contains(&(from.as_str(), to.as_str())) || from == to;
                assert_eq!(from.summary_may_become(*to), is_taken, "{from} to {to}");
            }
        }
    }
}
