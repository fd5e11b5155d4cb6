//! Applies reports of third-party agents to instances.
//!
//! Reports may be late, repeated or wrong: a report that does not match the status changes nothing.

use super::{Instance, Reason, Route, Status, Versions};
use crate::Xid;
use crate::kind::{WireNames, route};

/// Message of an agent whose cluster has insufficient capacity.
const FULL: &str = "Cluster has insufficient resources";
/// Maximum length of an agent's message.
const MAX_MESSAGE: usize = 1000;

/// A condition of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// The condition type: `Ready`.
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in CamelCase.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// A report of an agent on one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Actual versions; empty means not reported.
    pub actual: Versions,
    /// Routes: prefix of the host, and router.
    pub routes: Vec<(String, String)>,
    /// URL of the admin API.
    pub admin_url: Option<String>,
}

/// The state of an instance according to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Suspended.
    Suspended,
    /// Ready for use.
    Ready,
    /// Unknown to the agent: changes nothing.
    Unknown,
    /// Being installed.
    Installing,
    /// Deleted.
    Deleted,
    /// Failed.
    Error(String),
    /// Rejected by the agent.
    Rejected,
    /// Rejected for insufficient capacity.
    Full,
}

/// The context of a report.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The terms of the kind.
    pub words: &'a WireNames,
    /// DNS name of the cluster.
    pub dns: Option<&'a str>,
    /// Id of the next provisioning attempt, if one is needed.
    pub next_attempt: Xid,
}

/// The consequence of a report, besides changed fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The status stays.
    Stay,
    /// The status changes, with this reason.
    Move(Status, Reason),
    /// The instance needs another cluster.
    Reschedule,
}

/// A report that contradicts the instance; the message is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidReport(pub String);

/// The state according to the conditions; the first match decides.
pub fn reported_state(conditions: &[Condition]) -> State {
    let ready = conditions.iter().find(|one| one.condition_type.eq_ignore_ascii_case("ready"));
    let Some(ready) = ready else { return State::Installing };
    match (ready.reason.as_str(), ready.status.as_str()) {
        ("Suspended", _) => State::Suspended,
        (_, "True") => State::Ready,
        (_, "Unknown") => State::Unknown,
        ("Deleted", _) => State::Deleted,
        ("Error", _) => State::Error(ready.message.chars().take(MAX_MESSAGE).collect()),
        ("Rejected", _) if ready.message == FULL => State::Full,
        ("Rejected", _) => State::Rejected,
        _ => State::Installing,
    }
}

/// Applies a report. Returns the changed instance and the consequence; none if nothing changes.
pub fn apply(
    instance: &Instance,
    report: &Report,
    context: Context<'_>,
) -> Result<Option<(Instance, Outcome)>, InvalidReport> {
    let state = reported_state(&report.conditions);
    if matches!(instance.status, Status::Accepted | Status::Preparing | Status::Deleting) {
        return Ok(None);
    }
    let mut updated = instance.clone();
    let then = match state {
        State::Unknown => Outcome::Stay,
        State::Deleted => deleted(instance)?,
        _ if instance.status == Status::Deprovision => return Ok(None),
        State::Ready => ready(&mut updated, report, context)?,
        State::Installing => {
            updated.detail.is_agent_ready = false;
            store_routes(&mut updated, report, context)?;
            Outcome::Stay
        }
        State::Suspended => suspended(&mut updated),
        State::Error(message) => failed(&mut updated, &message),
        State::Rejected => retry(&mut updated, context.next_attempt),
        State::Full if instance.pinned_to.is_some() => retry(&mut updated, context.next_attempt),
        State::Full if instance.status == Status::Provisioning => Outcome::Reschedule,
        State::Full => Outcome::Stay,
    };
    if instance.status != Status::Deprovision {
        record_versions(&mut updated, report, context.words);
    }
    let is_changed = then != Outcome::Stay || updated != *instance;
    Ok(is_changed.then_some((updated, then)))
}

fn deleted(instance: &Instance) -> Result<Outcome, InvalidReport> {
    if instance.status == Status::Deprovision {
        return Ok(Outcome::Move(Status::Deleting, Reason::CleaningUp));
    }
    Err(InvalidReport(format!(
        "reported as deleted without a request; its status is {}",
        instance.status
    )))
}

/// Records readiness. The worker makes the instance ready once its DNS records exist.
fn ready(
    instance: &mut Instance,
    report: &Report,
    context: Context<'_>,
) -> Result<Outcome, InvalidReport> {
    if instance.status.is_suspended() {
        return Ok(Outcome::Stay);
    }
    store_routes(instance, report, context)?;
    instance.detail.is_agent_ready = true;
    if report.admin_url.is_some() {
        instance.detail.admin_url.clone_from(&report.admin_url);
    }
    Ok(Outcome::Stay)
}

fn suspended(instance: &mut Instance) -> Outcome {
    instance.detail.is_agent_ready = false;
    if instance.status == Status::Suspending {
        return Outcome::Move(Status::Suspended, instance.reason.clone());
    }
    Outcome::Stay
}

fn failed(instance: &mut Instance, message: &str) -> Outcome {
    instance.detail.is_agent_ready = false;
    if !instance.status.may_become(Status::Failed) || instance.status.is_suspended() {
        return Outcome::Stay;
    }
    Outcome::Move(Status::Failed, Reason::AgentError { message: message.to_owned() })
}

fn retry(instance: &mut Instance, next_try: Xid) -> Outcome {
    if instance.status == Status::Provisioning {
        instance.detail.placement = Some(next_try);
    }
    Outcome::Stay
}

/// Stores the routes once, if they lead into the cluster.
fn store_routes(
    instance: &mut Instance,
    report: &Report,
    context: Context<'_>,
) -> Result<(), InvalidReport> {
    let Some(host) = instance.host.as_deref().filter(|_| instance.detail.routes.is_empty()) else {
        return Ok(());
    };
    let domain = context.dns.map(|dns| dns.strip_prefix("apps.").unwrap_or(dns));
    let outside = report.routes.iter().find(|(_, router)| !is_within(router, domain));
    if let Some((_, router)) = outside {
        let domain = domain.unwrap_or("anything");
        return Err(InvalidReport(format!(
            "router {router:?} is not within the cluster's domain {domain}"
        )));
    }
    let routes = report
        .routes
        .iter()
        .map(|(prefix, router)| Route { domain: route(prefix, host), router: router.clone() });
    instance.detail.routes = routes.collect();
    Ok(())
}

/// Is the router within the domain? Without a domain any router is.
fn is_within(router: &str, domain: Option<&str>) -> bool {
    let Some(domain) = domain else { return !router.is_empty() };
    router == domain || router.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn record_versions(instance: &mut Instance, report: &Report, words: &WireNames) {
    let actual = &mut instance.detail.actual;
    for (recorded, reported) in [
        (&mut actual.operator, &report.actual.operator),
        (&mut actual.service, &report.actual.service),
        (&mut actual.protocol, &report.actual.protocol),
    ] {
        if !reported.is_empty() {
            recorded.clone_from(reported);
        }
    }
    let ready =
        report.conditions.iter().find(|one| one.condition_type.eq_ignore_ascii_case("ready"));
    let reason = ready.map(|ready| ready.reason.as_str()).unwrap_or_default();
    let ibp = words.ibp.as_deref();
    let parts = [
        ("operator", Some(words.operator.as_str())),
        ("service", Some(&words.version)),
        ("protocol", ibp),
    ];
    let upgrading = parts.into_iter().filter(|(_, word)| {
        word.is_some_and(|word| !reason.is_empty() && words.updating(word) == reason)
    });
    instance.detail.upgrading = upgrading.map(|(part, _)| part.to_owned()).collect();
}

#[cfg(test)]
mod tests;
