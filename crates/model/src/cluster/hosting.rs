//! What a foreign agent says of its cluster: is it ready, and what can it run?

use super::{Hosting, Offered};
use crate::kind::by_numbers;

/// So many times in a row an agent must say that it is not ready before it is believed: one bad report
/// does not take a cluster out.
pub const NOT_READY_LIMIT: u32 = 3;

/// Is the agent ready, as it says itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Yes.
    Ready,
    /// No, or it does not say.
    NotReady,
    /// It does not know: nothing follows.
    Unknown,
}

/// What the conditions of a report (type and status) say. Only the type `Ready`, spelt so, counts.
pub fn readiness<'a>(conditions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Readiness {
    let ready = conditions.into_iter().find(|(about, _)| *about == "Ready");
    match ready.map(|(_, status)| status) {
        Some("True" | "true") => Readiness::Ready,
        Some("Unknown") => Readiness::Unknown,
        _ => Readiness::NotReady,
    }
}

impl Hosting {
    /// Takes in what the agent says of itself.
    pub fn hear(&mut self, said: Readiness) {
        match said {
            Readiness::Unknown => {}
            Readiness::Ready => (self.is_agent_ready, self.not_ready) = (true, 0),
            Readiness::NotReady => {
                self.not_ready = self.not_ready.saturating_add(1).min(NOT_READY_LIMIT);
                self.is_agent_ready &= self.not_ready < NOT_READY_LIMIT;
            }
        }
    }
}

/// What is wrong with a list of versions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misreport {
    /// Something is missing.
    #[error("a version, or one of its lists, is empty: {0}")]
    Empty(String),
    /// It can't be put in order.
    #[error("the version {0:?} does not end like 0.26.0-4")]
    Malformed(String),
}

/// Versions oldest first, if each is complete and can be put in order.
pub fn sorted_versions(
    mut list: Vec<Offered>,
    with_protocols: bool,
) -> Result<Vec<Offered>, Misreport> {
    for one in &mut list {
        let is_blank = |list: &[String]| list.is_empty() || list.iter().any(String::is_empty);
        if one.operator.is_empty()
            || is_blank(&one.services)
            || (with_protocols && is_blank(&one.protocols))
        {
            return Err(Misreport::Empty(one.operator.clone()));
        }
        one.services.sort_by(|a, b| by_numbers(a, b));
        one.protocols.sort_by(|a, b| by_numbers(a, b));
    }
    if let Some(bad) = list.iter().find(|one| numbers(&one.operator).is_none()) {
        return Err(Misreport::Malformed(bad.operator.clone()));
    }
    list.sort_by_key(|one| numbers(&one.operator));
    Ok(list)
}

/// The numbers that an operator's version ends with: `0.26.0-4`.
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

    fn offered(operator: &str) -> Offered {
        let services = ["3.10.0", "3.9.0"].map(str::to_owned).to_vec();
        let protocols = vec!["3.9".to_owned()];
        Offered { operator: operator.into(), is_ready: true, services, protocols }
    }

    #[test]
    fn what_an_agent_says_of_itself() {
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
    fn one_bad_report_does_not_take_a_cluster_out_and_three_do() {
        use Readiness::*;
        let mut hosting = Hosting::default();
        for (said, expected) in [
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
            hosting.hear(said);
            assert_eq!(hosting.is_agent_ready, expected, "{said:?}");
        }
    }

    #[test]
    fn versions_are_put_in_order_by_their_numbers() {
        let names = ["op.v0.26.0-10", "op.v0.26.0-4", "op.v0.9.0-1", "op.v1.0.0-0"];
        let sorted = sorted_versions(names.map(offered).to_vec(), true).unwrap();
        let found: Vec<&str> = sorted.iter().map(|one| &*one.operator).collect();
        assert_eq!(found, ["op.v0.9.0-1", "op.v0.26.0-4", "op.v0.26.0-10", "op.v1.0.0-0"]);
        assert_eq!(sorted[0].services, ["3.9.0", "3.10.0"]);
    }

    #[test]
    fn versions_that_are_not_complete() {
        let mut blank = offered("");
        let empty = |list| sorted_versions(list, true);
        assert!(matches!(empty(vec![blank.clone()]), Err(Misreport::Empty(_))));
        blank = Offered { services: vec![], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank]), Err(Misreport::Empty(_))));
        blank = Offered { services: vec![String::new()], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank]), Err(Misreport::Empty(_))));
        blank = Offered { protocols: vec![], ..offered("op.v0.1.0-1") };
        assert!(matches!(empty(vec![blank.clone()]), Err(Misreport::Empty(_))));
        assert!(sorted_versions(vec![blank], false).is_ok());
        assert_eq!(sorted_versions(vec![], true), Ok(vec![]));
    }

    #[test]
    fn versions_that_can_not_be_put_in_order() {
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
