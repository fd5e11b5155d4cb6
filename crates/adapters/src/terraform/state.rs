//! Terraform states: which of two is newer, and whether one has resources.

use model::Secret;
use serde_json::{Map, Value};

/// The serial number of a state; none if it can't be parsed. An empty text is not a state.
pub(super) fn serial(state: &Secret) -> Option<u64> {
    let parsed = parsed(state)?;
    parsed["version"].as_u64()?;
    parsed["serial"].as_u64()
}

/// The newer of two states; the first one if both have the same serial.
pub(super) fn newer(one: Option<Secret>, other: Option<Secret>) -> Option<Secret> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if serial(&other) > serial(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Selects the local or the stored state. It fails if both count because the local one was replaced
/// externally. A state that Paddock's own run left (`is_own`) may differ: old Terraform versions
/// write several states with the same serial in one run, and an intermediate one may have been
/// stored.
pub(super) fn select(
    local: Option<Secret>,
    stored: Option<Secret>,
    is_own: bool,
) -> Result<Option<Secret>, &'static str> {
    let (Some(one), Some(other)) =
        (local.as_ref().and_then(parsed), stored.as_ref().and_then(parsed))
    else {
        return Ok(newer(local, stored));
    };
    let has_resources = |state: &Option<Secret>| state.as_ref().is_some_and(may_have_resources);
    match (one["lineage"] == other["lineage"], has_resources(&local), has_resources(&stored)) {
        (false, true, true) => Err("its lineage differs from the stored state"),
        // A state with resources is never replaced by an empty one.
        (false, true, false) => Ok(local),
        (false, false, true) => Ok(stored),
        (true, ..)
            if !is_own && one["serial"] == other["serial"] && content(one) != content(other) =>
        {
            Err("it was edited: it differs from the stored state, but has the same serial")
        }
        _ => Ok(newer(local, stored)),
    }
}

fn parsed(state: &Secret) -> Option<Value> {
    serde_json::from_str(state.reveal()).ok()
}

/// A state without fields that the program rewrites without a new serial.
fn content(mut state: Value) -> Value {
    if let Some(fields) = state.as_object_mut() {
        fields.remove("terraform_version");
        fields.remove("check_results");
    }
    state
}

/// The lineage and serial of a state.
pub(super) fn position(state: Option<&Secret>) -> String {
    let parsed = state.and_then(parsed);
    parsed.map(|state| format!("{} {}", state["lineage"], state["serial"])).unwrap_or_default()
}

/// Whether there may be resources to destroy. If in doubt, true.
pub(super) fn may_have_resources(state: &Secret) -> bool {
    let Some(state) = parsed(state) else { return true };
    let is_empty = match (state["resources"].as_array(), state["modules"].as_array()) {
        (Some(all), _) => all.is_empty(),
        // Before Terraform 0.12 resources were by module.
        (_, Some(modules)) => {
            let none = |module: &Value| module["resources"].as_object().is_some_and(Map::is_empty);
            modules.iter().all(none)
        }
        _ => false,
    };
    !is_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(serial: u64, resources: &str) -> Secret {
        Secret::new(format!(r#"{{"version":4,"serial":{serial},"resources":[{resources}]}}"#))
    }

    #[test]
    fn state_with_the_higher_serial_is_newer() {
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
    fn unparsable_state_may_have_resources() {
        assert!(!may_have_resources(&state(1, "")));
        assert!(may_have_resources(&state(1, "{}")));
        assert!(may_have_resources(&Secret::new("{\"version\":4,\"ser")));
        assert!(may_have_resources(&Secret::new("{}")));
    }

    #[test]
    fn external_state_is_detected() {
        let new = |serial: u64, lineage: &str, more: &str| {
            let text = format!(
                r#"{{"version":4,"serial":{serial},"lineage":"{lineage}","resources":[{{}}]{more}}}"#
            );
            Some(Secret::new(text))
        };
        let ours = new(3, "a", "");
        for (local, good) in [
            (None, true),
            (new(3, "a", ""), true),
            (new(2, "a", ""), true),
            (new(4, "a", ",\"outputs\":{}"), true),
            (new(3, "a", ",\"terraform_version\":\"9\""), true),
            (new(3, "a", ",\"outputs\":{}"), false),
            (new(1, "b", ""), false),
            (new(9, "b", ""), false),
        ] {
            let selected = select(local.clone(), ours.clone(), false);
            assert_eq!(selected.is_ok(), good, "{}", position(local.as_ref()));
        }
        let empty = Some(state(9, ""));
        for (local, stored) in [(&ours, &empty), (&empty, &ours)] {
            let selected = select(local.clone(), stored.clone(), false);
            assert!(selected == Ok(ours.clone()), "no resource is lost");
        }
    }

    #[test]
    fn own_state_counts_even_with_the_same_serial() {
        let new = |resources: &str| {
            let text = r#"{"version":3,"serial":3,"lineage":"a","resources":["#;
            Some(Secret::new(format!("{text}{resources}]}}")))
        };
        let (end, middle) = (new("{},{}"), new("{}"));
        assert!(select(end.clone(), middle.clone(), true) == Ok(end.clone()));
        assert!(select(end, middle, false).is_err());
    }

    #[test]
    fn old_states_list_resources_by_module() {
        let old = |resources: &str| {
            Secret::new(format!(r#"{{"version":3,"modules":[{{"resources":{resources}}}]}}"#))
        };
        assert!(!may_have_resources(&old("{}")));
        assert!(may_have_resources(&old(r#"{"null_resource.x":{}}"#)));
    }
}
