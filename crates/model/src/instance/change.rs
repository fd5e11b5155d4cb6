//! What an administrator changes of an instance, checked in the order of the fleet managers.

use std::time::Duration;

use super::{Instance, Rest, Status, Versions};
use crate::Time;
use crate::cluster::Offered;
use crate::kind::{Kind, by_numbers};

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

/// Why a change is not possible, with its number in the fleet managers' catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The number.
    pub code: u16,
    /// A sentence.
    pub reason: String,
}

fn refused<T>(code: u16, reason: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { code, reason: reason.into() })
}

/// The instance as it shall be, and where it goes, with the reason.
pub fn check(
    seen: &Instance,
    change: &Change,
    against: Against<'_>,
) -> Result<(Instance, Option<(Status, String)>), Refused> {
    if *change == Change::default() {
        return refused(37, "Name at least one field to change.");
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
        return refused(
            37,
            format!("'{}' is no amount of bytes, like 100Gi.", text.escape_default()),
        );
    };
    let current = seen.detail.retention_bytes.or(of_size).unwrap_or_default();
    if bytes < current {
        return refused(37, format!("It keeps {current} bytes now; that can only become more."));
    }
    Ok(bytes)
}

fn is_changeable(status: Status) -> Result<(), Refused> {
    match status {
        Status::Accepted | Status::Deleting => {
            refused(8, format!("It can't be changed while it is {status}."))
        }
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
            return refused(
                8,
                format!("Its {word} version is being changed already; wait for that."),
            );
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
        return refused(8, format!("The protocol {} is older than {protocol}.", new.protocol));
    }
    if by_numbers(major_minor(&new.protocol), major_minor(&new.service)).is_gt() {
        let (protocol, service) = (&new.protocol, &new.service);
        return refused(8, format!("The protocol {protocol} is newer than the version {service}."));
    }
    if is_older(major_minor(&new.service), major_minor(service)) {
        return refused(8, format!("The version {} is older than {service}.", new.service));
    }
    Ok(new)
}

fn is_offered(new: &Versions, against: Against<'_>) -> Result<(), Refused> {
    let offered = against.offered.iter().find(|one| one.operator == new.operator);
    let Some(offered) = offered.filter(|one| one.is_ready) else {
        let reason =
            format!("Its cluster can't run the operator '{}'.", new.operator.escape_default());
        return refused(8, reason);
    };
    let lists = [(&offered.services, &new.service), (&offered.protocols, &new.protocol)];
    for (list, asked) in lists {
        if !asked.is_empty() && !list.contains(asked) {
            let (asked, list) = (asked.escape_default(), list.join(", "));
            let operator = &new.operator;
            return refused(
                8,
                format!("The operator {operator} can't run '{asked}'; it runs {list}."),
            );
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
) -> Result<(Status, String), Refused> {
    if rest {
        if seen.status != Status::Ready {
            return refused(
                8,
                format!("Only what is ready can be suspended; it is {}.", seen.status),
            );
        }
        return Ok((Status::Suspending, "It shall rest: an administrator said so.".into()));
    }
    if seen.status != Status::Suspended {
        return refused(
            8,
            format!("Only what is suspended can be resumed; it is {}.", seen.status),
        );
    }
    let grace = against.kind.grace_days(&seen.instance_type, &seen.detail.billing.model);
    let last = seen.expires_at.map(|end| end - Duration::from_hours(24 * u64::from(grace)));
    if last.is_some_and(|last| against.now >= last) {
        return refused(
            8,
            "It ends soon, because nobody is entitled to it any more: it can't be resumed.",
        );
    }
    Ok((Status::Resuming, "It shall work again: an administrator said so.".into()))
}

#[cfg(test)]
mod tests;
