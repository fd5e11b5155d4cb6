//! What a foreign agent says of an instance, and what follows from it.
//!
//! Reports may be late, repeated or wrong: whatever does not fit to where the instance is changes nothing.

use super::{Instance, Reason, Route, Status, Versions};
use crate::Xid;
use crate::kind::{Words, route};

/// What an agent says when a cluster has no room for what it was given.
const FULL: &str = "Cluster has insufficient resources";
/// How much of an agent's message is kept.
const MAX_MESSAGE: usize = 1000;

/// One condition of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// What it is about: `Ready`.
    pub about: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, as a sentence.
    pub message: String,
}

/// What an agent says of one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How it is doing.
    pub conditions: Vec<Condition>,
    /// Which software runs; empty texts say nothing.
    pub actual: Versions,
    /// What leads to it: prefix of its host, and router.
    pub routes: Vec<(String, String)>,
    /// Where it is administered.
    pub admin_url: Option<String>,
}

/// What it comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It rests.
    Suspended,
    /// It can be used.
    Ready,
    /// The agent does not know: nothing follows.
    Unknown,
    /// The agent is at it.
    Installing,
    /// It is gone.
    Deleted,
    /// It does not run.
    Error(String),
    /// The agent does not take it.
    Rejected,
    /// The agent does not take it, because it has no room.
    Full,
}

/// Where the report comes from.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The words of the kind.
    pub words: &'a Words,
    /// The name under which clients reach the cluster.
    pub dns: Option<&'a str>,
    /// Names the next try to make the instance, if there has to be one.
    pub next_try: Xid,
}

/// What follows from a report, beside what is said in the instance itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// It stays where it is.
    Stay,
    /// It moves on, with this reason.
    Move(Status, Reason),
    /// It needs another cluster.
    Elsewhere,
}

/// A report that makes no sense, as a sentence for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Odd(pub String);

/// What the conditions come down to. The first test that holds decides.
pub fn read(conditions: &[Condition]) -> Said {
    let ready = conditions.iter().find(|one| one.about.eq_ignore_ascii_case("ready"));
    let Some(ready) = ready else { return Said::Installing };
    match (ready.reason.as_str(), ready.status.as_str()) {
        ("Suspended", _) => Said::Suspended,
        (_, "True") => Said::Ready,
        (_, "Unknown") => Said::Unknown,
        ("Deleted", _) => Said::Deleted,
        ("Error", _) => Said::Error(ready.message.chars().take(MAX_MESSAGE).collect()),
        ("Rejected", _) if ready.message == FULL => Said::Full,
        ("Rejected", _) => Said::Rejected,
        _ => Said::Installing,
    }
}

/// The instance after a report, and where it goes; nothing if the report is no news.
pub fn apply(
    seen: &Instance,
    report: &Report,
    at: Site<'_>,
) -> Result<Option<(Instance, Then)>, Odd> {
    let said = read(&report.conditions);
    if matches!(seen.status, Status::Accepted | Status::Preparing | Status::Deleting) {
        return Ok(None);
    }
    let mut now = seen.clone();
    let then = match said {
        Said::Unknown => Then::Stay,
        Said::Deleted => deleted(seen)?,
        _ if seen.status == Status::Deprovision => return Ok(None),
        Said::Ready => arrived(&mut now, report, at)?,
        Said::Installing => {
            now.detail.is_agent_ready = false;
            keep_routes(&mut now, report, at)?;
            Then::Stay
        }
        Said::Suspended => rested(&mut now),
        Said::Error(message) => broke(&mut now, &message),
        Said::Rejected => tried_again(&mut now, at.next_try),
        Said::Full if seen.pinned_to.is_some() => tried_again(&mut now, at.next_try),
        Said::Full if seen.status == Status::Provisioning => Then::Elsewhere,
        Said::Full => Then::Stay,
    };
    if seen.status != Status::Deprovision {
        note_versions(&mut now, report, at.words);
    }
    let is_news = then != Then::Stay || now != *seen;
    Ok(is_news.then_some((now, then)))
}

fn deleted(seen: &Instance) -> Result<Then, Odd> {
    if seen.status == Status::Deprovision {
        return Ok(Then::Move(Status::Deleting, Reason::CleaningUp));
    }
    Err(Odd(format!("it is said to be gone, and nobody asked for that: it is {}", seen.status)))
}

/// It can be used, as soon as its names lead to it: that is its worker's to see.
fn arrived(now: &mut Instance, report: &Report, at: Site<'_>) -> Result<Then, Odd> {
    if now.status.is_resting() {
        return Ok(Then::Stay);
    }
    keep_routes(now, report, at)?;
    now.detail.is_agent_ready = true;
    if report.admin_url.is_some() {
        now.detail.admin_url.clone_from(&report.admin_url);
    }
    Ok(Then::Stay)
}

fn rested(now: &mut Instance) -> Then {
    now.detail.is_agent_ready = false;
    if now.status == Status::Suspending {
        return Then::Move(Status::Suspended, now.reason.clone());
    }
    Then::Stay
}

fn broke(now: &mut Instance, message: &str) -> Then {
    now.detail.is_agent_ready = false;
    if !now.status.may_become(Status::Failed) || now.status.is_resting() {
        return Then::Stay;
    }
    Then::Move(Status::Failed, Reason::AgentError { message: message.to_owned() })
}

fn tried_again(now: &mut Instance, next_try: Xid) -> Then {
    if now.status == Status::Provisioning {
        now.detail.placement = Some(next_try);
    }
    Then::Stay
}

/// Keeps what leads to it: once, and only what leads into its cluster.
fn keep_routes(now: &mut Instance, report: &Report, at: Site<'_>) -> Result<(), Odd> {
    let Some(host) = now.host.as_deref().filter(|_| now.detail.routes.is_empty()) else {
        return Ok(());
    };
    let home = at.dns.map(|dns| dns.strip_prefix("apps.").unwrap_or(dns));
    let stray = report.routes.iter().find(|(_, router)| !is_within(router, home));
    if let Some((_, router)) = stray {
        let home = home.unwrap_or("anything");
        return Err(Odd(format!("the router {router:?} does not lead into the cluster, {home}")));
    }
    let routes = report
        .routes
        .iter()
        .map(|(prefix, router)| Route { domain: route(prefix, host), router: router.clone() });
    now.detail.routes = routes.collect();
    Ok(())
}

/// Does a name lie in this domain, or is it the domain itself? Without a domain, any will do.
fn is_within(router: &str, home: Option<&str>) -> bool {
    let Some(home) = home else { return !router.is_empty() };
    router == home || router.strip_suffix(home).is_some_and(|rest| rest.ends_with('.'))
}

fn note_versions(now: &mut Instance, report: &Report, words: &Words) {
    let actual = &mut now.detail.actual;
    for (known, said) in [
        (&mut actual.operator, &report.actual.operator),
        (&mut actual.service, &report.actual.service),
        (&mut actual.protocol, &report.actual.protocol),
    ] {
        if !said.is_empty() {
            known.clone_from(said);
        }
    }
    let ready = report.conditions.iter().find(|one| one.about.eq_ignore_ascii_case("ready"));
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
    now.detail.upgrading = upgrading.map(|(part, _)| part.to_owned()).collect();
}

#[cfg(test)]
mod tests;
