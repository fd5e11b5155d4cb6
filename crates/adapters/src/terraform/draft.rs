//! What a plan would change, field by field, and what of it must not be seen.

use std::collections::BTreeSet;

use model::resource::Difference;
use serde_json::{Map, Value, json};

use super::hidden::{BLOT, Hidden};

/// The most differences that are told.
const MOST: usize = 200;
/// The most characters of a value.
const MAX_CHARS: usize = 200;
/// Fields in each other; what is deeper is compared as a whole.
const DEEPEST: usize = 8;

/// What would change, from what `show -json` says of a plan.
pub(super) fn differences(plan: &Value, hidden: &Hidden) -> Vec<Difference> {
    let mut found = Vec::new();
    for one in plan["resource_changes"].as_array().into_iter().flatten() {
        let address = one["address"].as_str().unwrap_or_default();
        of_thing(address, one, hidden, &mut found);
    }
    for (name, change) in plan["output_changes"].as_object().into_iter().flatten() {
        if actions(change) != ["no-op"] {
            let field = format!("output.{name}");
            Fields { hidden, change, found: &mut found }.compare(&field, change, DEEPEST);
        }
    }
    bounded(found)
}

/// What would change, from what a plan says to people: things, without their fields.
pub(super) fn differences_from_text(text: &str) -> Vec<Difference> {
    let lines = text.lines().skip_while(|line| !line.contains("perform the following actions"));
    bounded(lines.filter_map(difference_from_line).collect())
}

fn difference_from_line(line: &str) -> Option<Difference> {
    let is_deep = line.starts_with("     ");
    let (sign, rest) = line.trim_start().split_once(' ')?;
    let address = rest.split_whitespace().next()?;
    let there = || Some(json!("there"));
    let (made, found) = match sign {
        "+" => (there(), None),
        "-" => (None, there()),
        "~" | "-/+" | "+/-" => (there(), Some(json!("changed"))),
        _ => return None,
    };
    let is_address = address.contains('.') && address.starts_with(|c: char| c.is_alphabetic());
    (!is_deep && is_address).then(|| Difference { field: address.to_owned(), made, found })
}

fn bounded(mut found: Vec<Difference>) -> Vec<Difference> {
    let more = found.len().saturating_sub(MOST);
    if more > 0 {
        found.truncate(MOST);
        found.push(Difference { field: format!("{more} more"), made: None, found: None });
    }
    found
}

fn actions(change: &Value) -> Vec<&str> {
    change["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn of_thing(address: &str, one: &Value, hidden: &Hidden, found: &mut Vec<Difference>) {
    let (field, there) = (address.to_owned(), || Some(json!("there")));
    let change = &one["change"];
    match actions(change)[..] {
        ["no-op" | "read"] | [] => {}
        ["create"] => found.push(Difference { field, made: there(), found: None }),
        ["delete" | "forget"] => found.push(Difference { field, made: None, found: there() }),
        _ => {
            let before = found.len();
            Fields { hidden, change, found }.compare(address, change, DEEPEST);
            if found.len() == before {
                let is_tainted = one["action_reason"] == "replace_because_tainted";
                let state = if is_tainted { "half made" } else { "changed" };
                found.push(Difference { field, made: there(), found: Some(json!(state)) });
            }
        }
    }
}

struct Fields<'a> {
    hidden: &'a Hidden,
    change: &'a Value,
    found: &'a mut Vec<Difference>,
}

impl Fields<'_> {
    /// Compares what there is with what shall be, as deep as both have fields.
    fn compare(&mut self, field: &str, at: &Value, depth: usize) {
        let side = |name: &str| at.get(name).unwrap_or(&Value::Null);
        let (before, after) = (side("before"), side("after"));
        let unknown = side("after_unknown");
        // What is only known afterwards follows from something else.
        if before == after || *unknown == true {
            return;
        }
        let hides = [side("before_sensitive"), side("after_sensitive")];
        let is_hidden = hides.iter().any(|hides| **hides == true);
        if let (Some(one), Some(other), false) = (before.as_object(), after.as_object(), is_hidden)
            && depth > 0
        {
            for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let of = |value: &Value| value.get(name).cloned().unwrap_or_default();
                let inside = json!({"before": of(before), "after": of(after),
                    "after_unknown": of(unknown),
                    "before_sensitive": of(hides[0]), "after_sensitive": of(hides[1])});
                self.compare(&format!("{field}.{name}"), &inside, depth - 1);
            }
            return;
        }
        let is_told = self.change.get("after_sensitive").is_some();
        let may_show = is_told && !hides.iter().any(|hides| has_true(hides));
        let shown = |value: &Value| (!value.is_null()).then(|| self.shown(value, may_show));
        let (made, found) = (shown(after), shown(before));
        self.found.push(Difference { field: field.to_owned(), made, found });
    }

    fn shown(&self, value: &Value, may_show: bool) -> Value {
        if !may_show {
            return json!(BLOT);
        }
        match value {
            Value::Bool(_) => value.clone(),
            Value::String(text) => json!(cut(&self.hidden.blot(text))),
            other => {
                let text = other.to_string();
                let blotted = self.hidden.blot(&text);
                let is_plain = blotted == text && text.chars().count() <= MAX_CHARS;
                if is_plain { other.clone() } else { json!(cut(&blotted)) }
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// All values that a plan says are sensitive: of variables, of outputs, and in things.
pub(super) fn secrets(plan: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let variables = plan["configuration"]["root_module"]["variables"].as_object();
    let variables = variables.into_iter().flatten().filter(|(_, one)| one["sensitive"] == true);
    found.extend(variables.map(|(name, _)| plan["variables"][name]["value"].clone()));
    for values in [&plan["planned_values"], &plan["prior_state"]["values"]] {
        let outputs = values["outputs"].as_object().into_iter().flat_map(Map::values);
        found
            .extend(outputs.filter(|one| one["sensitive"] == true).map(|one| one["value"].clone()));
        of_module(&values["root_module"], &mut found);
    }
    found.retain(|value| !value.is_null());
    found
}

fn of_module(module: &Value, found: &mut Vec<Value>) {
    for thing in module["resources"].as_array().into_iter().flatten() {
        masked(&thing["values"], &thing["sensitive_values"], found);
    }
    for inside in module["child_modules"].as_array().into_iter().flatten() {
        of_module(inside, found);
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
