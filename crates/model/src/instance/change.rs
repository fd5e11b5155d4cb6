//! What an administrator changes of an instance, checked in the order of the fleet managers.

use std::time::Duration;

use super::{Instance, Reason, Rest, Status, Versions};
use crate::Time;
use crate::cluster::Offered;
use crate::kind::{Kind, by_numbers};
use crate::reason::By;

/// What shall change; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The operator's version.
    pub operator: Option<String>,
    /// The service's version.
    pub service: Option<String>,
    /// The version of the protocol between its parts.
    pub protocol: Option<String>,
    /// How much it keeps, as a quantity.
    pub retention: Option<String>,
    /// Whether it shall rest.
    pub suspended: Option<bool>,
}

/// What it is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Against<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// What its cluster can run.
    pub offered: &'a [Offered],
    /// How much its size keeps, in bytes, if that is limited.
    pub retention_bytes: Option<i64>,
    /// The time.
    pub now: Time,
}

/// Why a change is not possible. The sentences are for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No field is named.
    #[error("Name at least one field to change.")]
    Nothing,
    /// The retention can't be read.
    #[error("'{}' is no amount of bytes, like 100Gi.", .0.escape_default())]
    NotBytes(String),
    /// The retention would become less.
    #[error("It keeps {current} bytes now; that can only become more.")]
    RetentionShrinks {
        /// How much it is now.
        current: i64,
    },
    /// In this status nothing can be changed.
    #[error("It can't be changed while it is {0}.")]
    Fixed(Status),
    /// This version is being changed already.
    #[error("Its {word} version is being changed already; wait for that.")]
    Upgrading {
        /// What the kind calls it.
        word: String,
    },
    /// Its cluster does not have the operator.
    #[error("Its cluster can't run the operator '{}'.", .0.escape_default())]
    UnknownOperator(String),
    /// The operator does not have the version.
    #[error("The operator {operator} can't run '{}'; it runs {offered}.", .version.escape_default())]
    UnknownVersion {
        /// The operator.
        operator: String,
        /// The version that was asked for.
        version: String,
        /// The versions that it has.
        offered: String,
    },
    /// The protocol would become older.
    #[error("The protocol {new} is older than {now}.")]
    OlderProtocol {
        /// The protocol that was asked for.
        new: String,
        /// The protocol now.
        now: String,
    },
    /// The protocol would be newer than the service.
    #[error("The protocol {protocol} is newer than the version {service}.")]
    NewerProtocol {
        /// The protocol that was asked for.
        protocol: String,
        /// The version of the service.
        service: String,
    },
    /// The service would become older.
    #[error("The version {new} is older than {now}.")]
    OlderService {
        /// The version that was asked for.
        new: String,
        /// The version now.
        now: String,
    },
    /// It is not ready, so that it can't be suspended.
    #[error("Only what is ready can be suspended; it is {0}.")]
    NotReady(Status),
    /// It is not suspended, so that it can't be resumed.
    #[error("Only what is suspended can be resumed; it is {0}.")]
    NotSuspended(Status),
    /// It is deleted soon, so that it can't be resumed.
    #[error("It ends soon, because nobody is entitled to it any more: it can't be resumed.")]
    Expiring,
}

/// The instance as it shall be, and where it goes, with the reason.
pub fn check(
    seen: &Instance,
    change: &Change,
    against: Against<'_>,
) -> Result<(Instance, Option<(Status, Reason)>), Refused> {
    if *change == Change::default() {
        return Err(Refused::Nothing);
    }
    let mut now = seen.clone();
    if let Some(text) = &change.retention {
        now.detail.retention_bytes = Some(retention(seen, text, against.retention_bytes)?);
    }
    is_changeable(seen.status)?;
    is_not_upgrading(seen, change, against.kind)?;
    now.detail.desired = versions(seen, change, against)?;
    let step = change.suspended.map(|rest| suspension(seen, rest, against)).transpose()?;
    if let Some((to, _)) = &step {
        now.detail.rest = (*to == Status::Suspending).then_some(Rest::Asked);
        // Only what its agent says from now on counts.
        now.detail.is_agent_ready = false;
    }
    now.generation += 1;
    Ok((now, step))
}

fn retention(seen: &Instance, text: &str, of_size: Option<i64>) -> Result<i64, Refused> {
    let parsed: Option<crate::Quantity> = text.parse().ok();
    let bytes = parsed.filter(|it| it.milli() % 1000 == 0).map(|it| it.milli() / 1000);
    let Some(bytes) = bytes else {
        return Err(Refused::NotBytes(text.to_owned()));
    };
    let current = seen.detail.retention_bytes.or(of_size).unwrap_or_default();
    if bytes < current {
        return Err(Refused::RetentionShrinks { current });
    }
    Ok(bytes)
}

fn is_changeable(status: Status) -> Result<(), Refused> {
    match status {
        Status::Accepted | Status::Deleting => Err(Refused::Fixed(status)),
        _ => Ok(()),
    }
}

fn is_not_upgrading(seen: &Instance, change: &Change, kind: &Kind) -> Result<(), Refused> {
    let words = &kind.words;
    let protocol = words.ibp.as_deref().unwrap_or("protocol");
    for (part, word, asked) in [
        ("operator", words.operator.as_str(), &change.operator),
        ("service", &words.version, &change.service),
        ("protocol", protocol, &change.protocol),
    ] {
        if asked.is_some() && seen.detail.upgrading.iter().any(|one| one == part) {
            return Err(Refused::Upgrading { word: word.to_owned() });
        }
    }
    Ok(())
}

/// The versions that it shall have, if its cluster can run them together.
fn versions(seen: &Instance, change: &Change, against: Against<'_>) -> Result<Versions, Refused> {
    let before = &seen.detail.desired;
    let new = Versions {
        operator: change.operator.clone().unwrap_or_else(|| before.operator.clone()),
        service: change.service.clone().unwrap_or_else(|| before.service.clone()),
        protocol: change.protocol.clone().unwrap_or_else(|| before.protocol.clone()),
    };
    if new == *before {
        return Ok(new);
    }
    is_offered(&new, against)?;
    let is_older = |new: &str, old: &str| !old.is_empty() && by_numbers(new, old).is_lt();
    let actual = &seen.detail.actual;
    let protocol = if actual.protocol.is_empty() { &before.protocol } else { &actual.protocol };
    let service = if actual.service.is_empty() { &before.service } else { &actual.service };
    if is_older(&new.protocol, protocol) {
        return Err(Refused::OlderProtocol { new: new.protocol, now: protocol.clone() });
    }
    if by_numbers(major_minor(&new.protocol), major_minor(&new.service)).is_gt() {
        return Err(Refused::NewerProtocol { protocol: new.protocol, service: new.service });
    }
    if is_older(major_minor(&new.service), major_minor(service)) {
        return Err(Refused::OlderService { new: new.service, now: service.clone() });
    }
    Ok(new)
}

fn is_offered(new: &Versions, against: Against<'_>) -> Result<(), Refused> {
    let offered = against.offered.iter().find(|one| one.operator == new.operator);
    let Some(offered) = offered.filter(|one| one.is_ready) else {
        return Err(Refused::UnknownOperator(new.operator.clone()));
    };
    let lists = [(&offered.services, &new.service), (&offered.protocols, &new.protocol)];
    for (list, asked) in lists {
        if !asked.is_empty() && !list.contains(asked) {
            return Err(Refused::UnknownVersion {
                operator: new.operator.clone(),
                version: asked.clone(),
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
    seen: &Instance,
    rest: bool,
    against: Against<'_>,
) -> Result<(Status, Reason), Refused> {
    let by = Some(By::Administrator { name: None });
    if rest {
        if seen.status != Status::Ready {
            return Err(Refused::NotReady(seen.status));
        }
        return Ok((Status::Suspending, Reason::SuspensionRequested { by }));
    }
    if seen.status != Status::Suspended {
        return Err(Refused::NotSuspended(seen.status));
    }
    let grace = against.kind.grace_days(&seen.instance_type, &seen.detail.billing.model);
    let last = seen.expires_at.map(|end| end - Duration::from_hours(24 * u64::from(grace)));
    if last.is_some_and(|last| against.now >= last) {
        return Err(Refused::Expiring);
    }
    Ok((Status::Resuming, Reason::ResumeRequested { by }))
}

#[cfg(test)]
mod tests;
