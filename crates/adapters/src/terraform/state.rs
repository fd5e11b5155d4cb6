//! What Paddock has to know of a state: which of two is newer, and whether it holds anything.

use model::Secret;
use serde_json::{Map, Value};

/// How often a state was written; none if it can't be read. A text without anything is no state.
pub(super) fn serial(state: &Secret) -> Option<u64> {
    let parsed = parsed(state)?;
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

/// Which of two counts: the one in the folder, or the one that was kept. Both do if somebody has put
/// another one in place: then it is not ours to choose, and this says why. One that our own run has left
/// here `is_ours`, however it differs: Terraform of old writes several with the same serial in one run,
/// and one of the middle may have been kept.
pub(super) fn chosen(
    here: Option<Secret>,
    kept: Option<Secret>,
    is_ours: bool,
) -> Result<Option<Secret>, &'static str> {
    let (Some(one), Some(other)) = (here.as_ref().and_then(parsed), kept.as_ref().and_then(parsed))
    else {
        return Ok(newer(here, kept));
    };
    let holds = |state: &Option<Secret>| state.as_ref().is_some_and(holds);
    match (one["lineage"] == other["lineage"], holds(&here), holds(&kept)) {
        (false, true, true) => Err("it is another one than Paddock keeps (its lineage differs)"),
        // Nothing is forgotten for the sake of one that knows of nothing.
        (false, true, false) => Ok(here),
        (false, false, true) => Ok(kept),
        (true, ..)
            if !is_ours && one["serial"] == other["serial"] && content(one) != content(other) =>
        {
            Err("it was edited (it differs from what Paddock keeps, and its serial does not)")
        }
        _ => Ok(newer(here, kept)),
    }
}

fn parsed(state: &Secret) -> Option<Value> {
    serde_json::from_str(state.reveal()).ok()
}

/// A state without what the program writes anew without counting it.
fn content(mut state: Value) -> Value {
    if let Some(fields) = state.as_object_mut() {
        fields.remove("terraform_version");
        fields.remove("check_results");
    }
    state
}

/// Where a state is on its way: its lineage, and how often it was written.
pub(super) fn position(state: Option<&Secret>) -> String {
    let parsed = state.and_then(parsed);
    parsed.map(|state| format!("{} {}", state["lineage"], state["serial"])).unwrap_or_default()
}

/// May there be something to destroy? If in doubt, yes.
pub(super) fn holds(state: &Secret) -> bool {
    let Some(state) = parsed(state) else { return true };
    let is_empty = match (state["resources"].as_array(), state["modules"].as_array()) {
        (Some(all), _) => all.is_empty(),
        // Before Terraform 0.12 they were by module.
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

    #[test]
    fn a_state_that_somebody_else_put_in_place_is_told_apart() {
        let of = |serial: u64, lineage: &str, more: &str| {
            let text = format!(
                r#"{{"version":4,"serial":{serial},"lineage":"{lineage}","resources":[{{}}]{more}}}"#
            );
            Some(Secret::new(text))
        };
        let ours = of(3, "a", "");
        for (here, good) in [
            (None, true),
            (of(3, "a", ""), true),
            (of(2, "a", ""), true),
            (of(4, "a", ",\"outputs\":{}"), true),
            (of(3, "a", ",\"terraform_version\":\"9\""), true),
            (of(3, "a", ",\"outputs\":{}"), false),
            (of(1, "b", ""), false),
            (of(9, "b", ""), false),
        ] {
            let chosen = chosen(here.clone(), ours.clone(), false);
            assert_eq!(chosen.is_ok(), good, "{}", position(here.as_ref()));
        }
        let empty = Some(state(9, ""));
        for (here, kept) in [(&ours, &empty), (&empty, &ours)] {
            let chosen = chosen(here.clone(), kept.clone(), false);
            assert!(chosen == Ok(ours.clone()), "nothing is forgotten");
        }
    }

    #[test]
    fn what_our_own_run_has_left_counts_though_its_serial_is_the_same() {
        let of = |resources: &str| {
            let text = r#"{"version":3,"serial":3,"lineage":"a","resources":["#;
            Some(Secret::new(format!("{text}{resources}]}}")))
        };
        let (end, middle) = (of("{},{}"), of("{}"));
        assert!(chosen(end.clone(), middle.clone(), true) == Ok(end.clone()));
        assert!(chosen(end, middle, false).is_err());
    }

    #[test]
    fn states_of_old_say_by_module_what_they_hold() {
        let old = |resources: &str| {
            Secret::new(format!(r#"{{"version":3,"modules":[{{"resources":{resources}}}]}}"#))
        };
        assert!(!holds(&old("{}")));
        assert!(holds(&old(r#"{"null_resource.x":{}}"#)));
    }
}
