//! The changes of a plan, field by field, with sensitive values redacted.

use std::collections::BTreeSet;

use model::resource::Difference;
use serde_json::{Map, Value, json};

use super::redact::{REDACTED, Redactor};

/// The maximum number of differences.
const MAX_DIFFERENCES: usize = 200;
/// The maximum length of a value, in characters.
const MAX_CHARS: usize = 200;
/// The maximum nesting of fields; deeper ones are compared as a whole.
const MAX_DEPTH: usize = 8;

/// The changes in the output of `show -json`.
pub(super) fn differences(plan: &Value, redactor: &Redactor) -> Vec<Difference> {
    let mut found = Vec::new();
    for one in plan["resource_changes"].as_array().into_iter().flatten() {
        let address = one["address"].as_str().unwrap_or_default();
        resource_differences(address, one, redactor, &mut found);
    }
    for (name, change) in plan["output_changes"].as_object().into_iter().flatten() {
        if actions(change) != ["no-op"] {
            let field = format!("output.{name}");
            Fields { redactor, change, found: &mut found }.compare(&field, change, MAX_DEPTH);
        }
    }
    bounded(found)
}

/// The changes in the text output of a plan: resources, without their fields.
pub(super) fn differences_from_text(text: &str) -> Vec<Difference> {
    let lines = text.lines().skip_while(|line| !line.contains("perform the following actions"));
    bounded(lines.filter_map(difference_from_line).collect())
}

fn difference_from_line(line: &str) -> Option<Difference> {
    let is_deep = line.starts_with("     ");
    let (sign, rest) = line.trim_start().split_once(' ')?;
    let address = rest.split_whitespace().next()?;
    let exists = || Some(json!("exists"));
    let (made, found) = match sign {
        "+" => (exists(), None),
        "-" => (None, exists()),
        "~" | "-/+" | "+/-" => (exists(), Some(json!("changed"))),
        _ => return None,
    };
    let is_address = address.contains('.') && address.starts_with(|c: char| c.is_alphabetic());
    (!is_deep && is_address).then(|| Difference { field: address.to_owned(), made, found })
}

fn bounded(mut found: Vec<Difference>) -> Vec<Difference> {
    let more = found.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        found.truncate(MAX_DIFFERENCES);
        found.push(Difference { field: format!("{more} more"), made: None, found: None });
    }
    found
}

fn actions(change: &Value) -> Vec<&str> {
    change["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn resource_differences(
    address: &str,
    one: &Value,
    redactor: &Redactor,
    found: &mut Vec<Difference>,
) {
    let (field, exists) = (address.to_owned(), || Some(json!("exists")));
    let change = &one["change"];
    match actions(change)[..] {
        ["no-op" | "read"] | [] => {}
        ["create"] => found.push(Difference { field, made: exists(), found: None }),
        ["delete" | "forget"] => found.push(Difference { field, made: None, found: exists() }),
        _ => {
            let before = found.len();
            Fields { redactor, change, found }.compare(address, change, MAX_DEPTH);
            if found.len() == before {
                let is_tainted = one["action_reason"] == "replace_because_tainted";
                let state = if is_tainted { "tainted" } else { "changed" };
                found.push(Difference { field, made: exists(), found: Some(json!(state)) });
            }
        }
    }
}

struct Fields<'a> {
    redactor: &'a Redactor,
    change: &'a Value,
    found: &'a mut Vec<Difference>,
}

impl Fields<'_> {
    /// Compares the observed with the desired state, as deep as both have fields.
    fn compare(&mut self, field: &str, at: &Value, depth: usize) {
        let side = |name: &str| at.get(name).unwrap_or(&Value::Null);
        let (before, after) = (side("before"), side("after"));
        let unknown = side("after_unknown");
        // Values that are known only after the apply are consequences of other changes.
        if before == after || *unknown == true {
            return;
        }
        let masks = [side("before_sensitive"), side("after_sensitive")];
        let is_sensitive = masks.iter().any(|mask| **mask == true);
        if let (Some(one), Some(other), false) =
            (before.as_object(), after.as_object(), is_sensitive)
            && depth > 0
        {
            for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let get = |value: &Value| value.get(name).cloned().unwrap_or_default();
                let inside = json!({"before": get(before), "after": get(after),
                "after_unknown": get(unknown),
                "before_sensitive": get(masks[0]), "after_sensitive": get(masks[1])});
                self.compare(&format!("{field}.{name}"), &inside, depth - 1);
            }
            return;
        }
        let has_masks = self.change.get("after_sensitive").is_some();
        let may_show = has_masks && !masks.iter().any(|mask| has_true(mask));
        let shown = |value: &Value| (!value.is_null()).then(|| self.shown(value, may_show));
        let (made, found) = (shown(after), shown(before));
        self.found.push(Difference { field: field.to_owned(), made, found });
    }

    fn shown(&self, value: &Value, may_show: bool) -> Value {
        if !may_show {
            return json!(REDACTED);
        }
        match value {
            Value::Bool(_) => value.clone(),
            Value::String(text) => json!(truncate(&self.redactor.redact(text))),
            other => {
                let text = other.to_string();
                let redacted = self.redactor.redact(&text);
                let is_plain = redacted == text && text.chars().count() <= MAX_CHARS;
                if is_plain { other.clone() } else { json!(truncate(&redacted)) }
            }
        }
    }
}

fn has_true(value: &Value) -> bool {
    match value {
        Value::Bool(is) => *is,
        Value::Array(list) => list.iter().any(has_true),
        Value::Object(fields) => fields.values().any(has_true),
        _ => false,
    }
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// All values that a plan marks as sensitive: of variables, outputs and resources.
pub(super) fn secrets(plan: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let variables = plan["configuration"]["root_module"]["variables"].as_object();
    let variables = variables.into_iter().flatten().filter(|(_, one)| one["sensitive"] == true);
    found.extend(variables.map(|(name, _)| plan["variables"][name]["value"].clone()));
    for values in [&plan["planned_values"], &plan["prior_state"]["values"]] {
        let outputs = values["outputs"].as_object().into_iter().flat_map(Map::values);
        found
            .extend(outputs.filter(|one| one["sensitive"] == true).map(|one| one["value"].clone()));
        module_secrets(&values["root_module"], &mut found);
    }
    found.retain(|value| !value.is_null());
    found
}

fn module_secrets(module: &Value, found: &mut Vec<Value>) {
    for resource in module["resources"].as_array().into_iter().flatten() {
        masked(&resource["values"], &resource["sensitive_values"], found);
    }
    for inside in module["child_modules"].as_array().into_iter().flatten() {
        module_secrets(inside, found);
    }
}

fn masked(value: &Value, mask: &Value, found: &mut Vec<Value>) {
    match mask {
        Value::Bool(true) => found.push(value.clone()),
        Value::Array(masks) => {
            masks.iter().enumerate().for_each(|(at, mask)| masked(&value[at], mask, found));
        }
        Value::Object(masks) => {
            masks.iter().for_each(|(name, mask)| masked(&value[name], mask, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
