//! What Paddock has to know of a state: which of two is newer, and whether it holds anything.

use model::Secret;
use serde_json::Value;

/// How often a state was written; none if it can't be read. A text without anything is no state.
pub(super) fn serial(state: &Secret) -> Option<u64> {
    let parsed: Value = serde_json::from_str(state.reveal()).ok()?;
    parsed["version"].as_u64()?;
    parsed["serial"].as_u64()
}

/// The newer of two. The first, if they are the same.
pub(super) fn newer(one: Option<Secret>, other: Option<Secret>) -> Option<Secret> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if serial(&other) > serial(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// May there be something to destroy? If in doubt, yes.
pub(super) fn holds(state: &Secret) -> bool {
    let parsed: Result<Value, _> = serde_json::from_str(state.reveal());
    parsed.map_or(true, |state| state["resources"].as_array().is_none_or(|all| !all.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(serial: u64, resources: &str) -> Secret {
        Secret::new(format!(r#"{{"version":4,"serial":{serial},"resources":[{resources}]}}"#))
    }

    #[test]
    fn the_one_that_was_written_more_often_is_newer() {
        let (old, new) = (state(9, ""), state(10, "{}"));
        let torn = Secret::new("{\"version\":4,\"ser");
        for (one, other, newest) in [
            (Some(&old), Some(&new), Some(&new)),
            (Some(&new), Some(&old), Some(&new)),
            (Some(&torn), Some(&old), Some(&old)),
            (Some(&old), Some(&torn), Some(&old)),
            (None, Some(&old), Some(&old)),
            (Some(&old), None, Some(&old)),
            (None, None, None),
        ] {
            assert!(newer(one.cloned(), other.cloned()).as_ref() == newest);
        }
    }

    #[test]
    fn what_can_not_be_read_may_hold_something() {
        assert!(!holds(&state(1, "")));
        assert!(holds(&state(1, "{}")));
        assert!(holds(&Secret::new("{\"version\":4,\"ser")));
        assert!(holds(&Secret::new("{}")));
    }
}
