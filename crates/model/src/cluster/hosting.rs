//! Reports of third-party agents: readiness and supported versions.

use super::{Hosting, OperatorVersion};
use crate::kind::compare_numerically;

/// Consecutive not-ready reports after which an agent counts as not ready, so that a single bad
/// report does not take a cluster out of service.
pub const NOT_READY_LIMIT: u32 = 3;

/// Readiness as reported by an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Ready.
    Ready,
    /// Not ready, or not reported.
    NotReady,
    /// Unknown to the agent: changes nothing.
    Unknown,
}

/// Readiness by the conditions (type and status) of a report. Only the type `Ready` counts.
pub fn readiness<'a>(conditions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Readiness {
    let ready = conditions.into_iter().find(|(kind, _)| *kind == "Ready");
    match ready.map(|(_, status)| status) {
        Some("True" | "true") => Readiness::Ready,
        Some("Unknown") => Readiness::Unknown,
        _ => Readiness::NotReady,
    }
}

impl Hosting {
    /// Applies a readiness report.
    pub fn apply_readiness(&mut self, reported: Readiness) {
        match reported {
            Readiness::Unknown => {}
            Readiness::Ready => (self.is_agent_ready, self.not_ready) = (true, 0),
            Readiness::NotReady => {
                self.not_ready = self.not_ready.saturating_add(1).min(NOT_READY_LIMIT);
                self.is_agent_ready &= self.not_ready < NOT_READY_LIMIT;
            }
        }
    }
}

/// Why a list of versions is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVersions {
    /// A version or one of its lists is empty.
    #[error("version {0:?} or one of its lists is empty")]
    Empty(String),
    /// The version can't be ordered.
    #[error("version {0:?} must end with a number such as 0.26.0-4")]
    Malformed(String),
}

/// Sorts versions, oldest first, and rejects incomplete ones and those that can't be ordered.
pub fn sorted_versions(
    mut list: Vec<OperatorVersion>,
    with_protocols: bool,
) -> Result<Vec<OperatorVersion>, InvalidVersions> {
    for one in &mut list {
        let is_blank = |list: &[String]| list.is_empty() || list.iter().any(String::is_empty);
        if one.operator.is_empty()
            || is_blank(&one.services)
            || (with_protocols && is_blank(&one.protocols))
        {
            return Err(InvalidVersions::Empty(one.operator.clone()));
        }
        one.services.sort_by(|a, b| compare_numerically(a, b));
        one.protocols.sort_by(|a, b| compare_numerically(a, b));
    }
    if let Some(bad) = list.iter().find(|one| numbers(&one.operator).is_none()) {
        return Err(InvalidVersions::Malformed(bad.operator.clone()));
    }
    list.sort_by_key(|one| numbers(&one.operator));
    Ok(list)
}

/// The numbers at the end of an operator version: `0.26.0-4`.
fn numbers(version: &str) -> Option<[u64; 4]> {
    let at = version.rfind(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    let tail = &version[at.map_or(0, |at| at + 1)..];
    let (rest, build) = tail.rsplit_once('-')?;
    let mut parts = rest.rsplit(|c: char| !c.is_ascii_digit()).map(str::parse::<u64>);
    let (patch, minor, major) = (parts.next()?, parts.next()?, parts.next()?);
    let is_dotted = rest.rsplit('-').next()?.matches('.').count() >= 2;
    let all = [major.ok()?, minor.ok()?, patch.ok()?, build.parse().ok()?];
    is_dotted.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(operator: &str) -> OperatorVersion {
        let services = ["3.10.0", "3.9.0"].map(str::to_owned).to_vec();
        let protocols = vec!["3.9".to_owned()];
        OperatorVersion { operator: operator.into(), is_ready: true, services, protocols }
    }

    #[test]
    fn readiness_is_read_from_the_ready_condition() {
        use Readiness::*;
        for (conditions, expected) in [
            (&[("Ready", "True")][..], Ready),
            (&[("Other", "False"), ("Ready", "True")], Ready),
            (&[("Ready", "False")], NotReady),
            (&[("Ready", "Unknown")], Unknown),
            (&[("ready", "True")], NotReady),
            (&[("Ready", "perhaps")], NotReady),
            (&[], NotReady),
        ] {
            assert_eq!(readiness(conditions.iter().copied()), expected, "{conditions:?}");
        }
    }

    #[test]
    fn three_consecutive_not_ready_reports_take_a_cluster_out() {
        use Readiness::*;
        let mut hosting = Hosting::default();
        for (reported, expected) in [
            (NotReady, false),
            (Unknown, false),
            (Ready, true),
            (NotReady, true),
            (Unknown, true),
            (NotReady, true),
            (Ready, true),
            (NotReady, true),
            (NotReady, true),
            (NotReady, false),
            (NotReady, false),
            (Unknown, false),
            (Ready, true),
        ] {
            hosting.apply_readiness(reported);
            assert_eq!(hosting.is_agent_ready, expected, "{reported:?}");
        }
    }

    #[test]
    fn versions_are_sorted_by_their_numbers() {
        let names = ["op.v0.26.0-10", "op.v0.26.0-4", "op.v0.9.0-1", "op.v1.0.0-0"];
        let sorted = sorted_versions(names.map(offered).to_vec(), true).unwrap();
        let found: Vec<&str> = sorted.iter().map(|one| &*one.operator).collect();
        assert_eq!(found, ["op.v0.9.0-1", "op.v0.26.0-4", "op.v0.26.0-10", "op.v1.0.0-0"]);
        assert_eq!(sorted[0].services, ["3.9.0", "3.10.0"]);
    }

    #[test]
    fn incomplete_versions_are_rejected() {
        let mut blank = offered("");
        let empty = |list| sorted_versions(list, true);
        assert!(matches!(empty(vec![blank.clone()]), Err(InvalidVersions::Empty(_))));
        blank = OperatorVersion { services: vec![], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank]), Err(InvalidVersions::Empty(_))));
        blank = OperatorVersion { services: vec![String::new()], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank]), Err(InvalidVersions::Empty(_))));
        blank = OperatorVersion { protocols: vec![], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank.clone()]), Err(InvalidVersions::Empty(_))));
        assert!(sorted_versions(vec![blank], false).is_ok());
        assert_eq!(sorted_versions(vec![], true), Ok(vec![]));
    }

    #[test]
    fn versions_that_cannot_be_ordered_are_rejected() {
        for (name, good) in [
            ("strimzi-cluster-operator.v0.26.0-4", true),
            ("0.26.0-4", true),
            ("op-1.2.3-4", true),
            ("op.v0.26.0", false),
            ("op.v0.26-4", false),
            ("op.v0.26.0-4x", false),
            ("op.v0.26.0-", false),
            ("op", false),
            ("op.v1-2-3-4", false),
            ("op.v99999999999999999999.0.0-1", false),
        ] {
            let sorted = sorted_versions(vec![offered(name)], true);
            assert_eq!(sorted.is_ok(), good, "{name}: {sorted:?}");
        }
    }
}
