//! Changes of an instance by administrators, checked in the order of the fleet managers.

use std::time::Duration;

use super::{Instance, Reason, Status, Suspension, Versions};
use crate::Time;
use crate::cluster::OperatorVersion;
use crate::kind::{Kind, compare_numerically};
use crate::reason::Requester;

/// Fields to change; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Operator version.
    pub operator: Option<String>,
    /// Service version.
    pub service: Option<String>,
    /// Inter-node protocol version.
    pub protocol: Option<String>,
    /// Retention, as a quantity of bytes.
    pub retention: Option<String>,
    /// Suspend (true) or resume (false).
    pub suspended: Option<bool>,
}

/// The context of a check.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// Versions that its cluster supports.
    pub offered: &'a [OperatorVersion],
    /// Retention of its size in bytes, if limited.
    pub retention_bytes: Option<i64>,
    /// The current time.
    pub now: Time,
}

/// Why a change is refused. The messages are for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No field is given.
    #[error("Name at least one field to change.")]
    Nothing,
    /// The retention is not a quantity of bytes.
    #[error("'{}' is not a quantity of bytes, for example 100Gi.", .0.escape_default())]
    NotBytes(String),
    /// The retention would decrease.
    #[error("Retention can only increase; it is {current} bytes.")]
    RetentionShrinks {
        /// The current retention.
        current: i64,
    },
    /// The status allows no change.
    #[error("Instance cannot be changed while it is {0}.")]
    Fixed(Status),
    /// An upgrade of this version is in progress.
    #[error("An upgrade of the {word} version is in progress. Retry when it has finished.")]
    Upgrading {
        /// The kind's term for the part.
        word: String,
    },
    /// The cluster does not support the operator version.
    #[error("Cluster does not support the operator version '{}'.", .0.escape_default())]
    UnknownOperator(String),
    /// The operator does not support the version.
    #[error("Operator {operator} does not support '{}'; supported versions are {offered}.", .version.escape_default())]
    UnknownVersion {
        /// The operator.
        operator: String,
        /// The requested version.
        version: String,
        /// The supported versions.
        offered: String,
    },
    /// The protocol would be downgraded.
    #[error("Protocol {new} is older than the current {now}.")]
    OlderProtocol {
        /// The requested protocol.
        new: String,
        /// The current protocol.
        now: String,
    },
    /// The protocol would be newer than the service.
    #[error("Protocol {protocol} is newer than the service version {service}.")]
    NewerProtocol {
        /// The requested protocol.
        protocol: String,
        /// The service version.
        service: String,
    },
    /// The service would be downgraded.
    #[error("Service version {new} is older than the current {now}.")]
    OlderService {
        /// The requested version.
        new: String,
        /// The current version.
        now: String,
    },
    /// Only ready instances can be suspended.
    #[error("Only ready instances can be suspended; this one is {0}.")]
    NotReady(Status),
    /// Only suspended instances can be resumed.
    #[error("Only suspended instances can be resumed; this one is {0}.")]
    NotSuspended(Status),
    /// The instance is about to be deleted and can't be resumed.
    #[error("Instance cannot be resumed: its entitlement expired and it will be deleted soon.")]
    Expiring,
}

/// The changed instance, and its next status with the reason.
pub fn check(
    instance: &Instance,
    change: &Change,
    against: Context<'_>,
) -> Result<(Instance, Option<(Status, Reason)>), ChangeError> {
    if *change == Change::default() {
        return Err(ChangeError::Nothing);
    }
    let mut changed = instance.clone();
    if let Some(text) = &change.retention {
        changed.detail.retention_bytes = Some(retention(instance, text, against.retention_bytes)?);
    }
    is_changeable(instance.status)?;
    is_not_upgrading(instance, change, against.kind)?;
    changed.detail.desired = versions(instance, change, against)?;
    let step =
        change.suspended.map(|suspend| suspension(instance, suspend, against)).transpose()?;
    if let Some((to, _)) = &step {
        changed.detail.rest = (*to == Status::Suspending).then_some(Suspension::Asked);
        // Only new reports of the agent count.
        changed.detail.is_agent_ready = false;
    }
    changed.generation += 1;
    Ok((changed, step))
}

fn retention(instance: &Instance, text: &str, of_size: Option<i64>) -> Result<i64, ChangeError> {
    let parsed: Option<crate::Quantity> = text.parse().ok();
    let bytes = parsed.filter(|q| q.milli() % 1000 == 0).map(|q| q.milli() / 1000);
    let Some(bytes) = bytes else {
        return Err(ChangeError::NotBytes(text.to_owned()));
    };
    let current = instance.detail.retention_bytes.or(of_size).unwrap_or_default();
    if bytes < current {
        return Err(ChangeError::RetentionShrinks { current });
    }
    Ok(bytes)
}

fn is_changeable(status: Status) -> Result<(), ChangeError> {
    match status {
        Status::Accepted | Status::Deleting => Err(ChangeError::Fixed(status)),
        _ => Ok(()),
    }
}

fn is_not_upgrading(instance: &Instance, change: &Change, kind: &Kind) -> Result<(), ChangeError> {
    let words = &kind.words;
    let protocol = words.ibp.as_deref().unwrap_or("protocol");
    for (part, word, requested) in [
        ("operator", words.operator.as_str(), &change.operator),
        ("service", &words.version, &change.service),
        ("protocol", protocol, &change.protocol),
    ] {
        if requested.is_some() && instance.detail.upgrading.iter().any(|one| one == part) {
            return Err(ChangeError::Upgrading { word: word.to_owned() });
        }
    }
    Ok(())
}

/// The desired versions, if its cluster supports them together.
fn versions(
    instance: &Instance,
    change: &Change,
    against: Context<'_>,
) -> Result<Versions, ChangeError> {
    let before = &instance.detail.desired;
    let new = Versions {
        operator: change.operator.clone().unwrap_or_else(|| before.operator.clone()),
        service: change.service.clone().unwrap_or_else(|| before.service.clone()),
        protocol: change.protocol.clone().unwrap_or_else(|| before.protocol.clone()),
    };
    if new == *before {
        return Ok(new);
    }
    is_offered(&new, against)?;
    let is_older = |new: &str, old: &str| !old.is_empty() && compare_numerically(new, old).is_lt();
    let actual = &instance.detail.actual;
    let protocol = if actual.protocol.is_empty() { &before.protocol } else { &actual.protocol };
    let service = if actual.service.is_empty() { &before.service } else { &actual.service };
    if is_older(&new.protocol, protocol) {
        return Err(ChangeError::OlderProtocol { new: new.protocol, now: protocol.clone() });
    }
    if compare_numerically(major_minor(&new.protocol), major_minor(&new.service)).is_gt() {
        return Err(ChangeError::NewerProtocol { protocol: new.protocol, service: new.service });
    }
    if is_older(major_minor(&new.service), major_minor(service)) {
        return Err(ChangeError::OlderService { new: new.service, now: service.clone() });
    }
    Ok(new)
}

fn is_offered(new: &Versions, against: Context<'_>) -> Result<(), ChangeError> {
    let offered = against.offered.iter().find(|one| one.operator == new.operator);
    let Some(offered) = offered.filter(|one| one.is_ready) else {
        return Err(ChangeError::UnknownOperator(new.operator.clone()));
    };
    let lists = [(&offered.services, &new.service), (&offered.protocols, &new.protocol)];
    for (list, requested) in lists {
        if !requested.is_empty() && !list.contains(requested) {
            return Err(ChangeError::UnknownVersion {
                operator: new.operator.clone(),
                version: requested.clone(),
                offered: list.join(", "),
            });
        }
    }
    Ok(())
}

/// The first two numbers of a version: `3.9` of `3.9.1`.
fn major_minor(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at])
}

fn suspension(
    instance: &Instance,
    suspend: bool,
    against: Context<'_>,
) -> Result<(Status, Reason), ChangeError> {
    let by = Some(Requester::Administrator { name: None });
    if suspend {
        if instance.status != Status::Ready {
            return Err(ChangeError::NotReady(instance.status));
        }
        return Ok((Status::Suspending, Reason::SuspensionRequested { by }));
    }
    if instance.status != Status::Suspended {
        return Err(ChangeError::NotSuspended(instance.status));
    }
    let grace = against.kind.grace_days(&instance.instance_type, &instance.detail.billing.model);
    let last = instance.expires_at.map(|end| end - Duration::from_hours(24 * u64::from(grace)));
    if last.is_some_and(|last| against.now >= last) {
        return Err(ChangeError::Expiring);
    }
    Ok((Status::Resuming, Reason::ResumeRequested { by }))
}

#[cfg(test)]
mod tests;
