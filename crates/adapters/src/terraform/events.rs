//! The events of a Terraform run (`-json`): one JSON object per line.

use std::collections::BTreeSet;

use serde_json::Value;

use super::diagnostic::Diagnostic;

/// The events of a run so far.
#[derive(Default)]
pub(super) struct Events {
    planned: BTreeSet<String>,
    begun: BTreeSet<String>,
    /// The running actions: address and action, the newest last.
    now: Vec<(String, String)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The lines that are not JSON.
    pub(super) rest: String,
    /// Whether any line was JSON.
    pub(super) is_stream: bool,
}

impl Events {
    /// Parses a log; an incomplete last line counts as text.
    pub(super) fn parse(text: &str) -> Self {
        let mut events = Self::default();
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(message) if message.is_object() => events.receive(&message),
                _ => events.rest.extend([line, "\n"]),
            }
        }
        events
    }

    fn receive(&mut self, message: &Value) {
        self.is_stream = true;
        match message["type"].as_str().unwrap_or_default() {
            "planned_change" => self.plan(&message["change"]),
            "apply_start" => self.begin(&message["hook"]),
            "apply_complete" | "apply_errored" => self.end(&message["hook"]),
            "diagnostic" if message["diagnostic"]["severity"] == "error" => {
                self.diagnostics.push(Diagnostic::from_json(&message["diagnostic"]));
            }
            _ => {}
        }
    }

    fn plan(&mut self, change: &Value) {
        let (Some(address), Some(action)) = named(change) else { return };
        if matches!(action.as_str(), "noop" | "read") {
            return;
        }
        self.planned.insert(address);
    }

    fn begin(&mut self, hook: &Value) {
        let (Some(address), Some(action)) = named(hook) else { return };
        self.begun.insert(address.clone());
        self.now.push((address, action));
    }

    fn end(&mut self, hook: &Value) {
        let (Some(address), Some(action)) = named(hook) else { return };
        self.now.retain(|now| *now != (address.clone(), action.clone()));
    }

    /// The completed part of the plan, in percent; at most 99.
    pub(super) fn percent(&self) -> Option<u8> {
        let (done, all) =
            (self.begun.len() - self.busy(), self.planned.len().max(self.begun.len()));
        let percent = (100 * done).checked_div(all)?.min(99);
        u8::try_from(percent).ok()
    }

    fn busy(&self) -> usize {
        self.now.iter().map(|(address, _)| address).collect::<BTreeSet<_>>().len()
    }

    /// The progress, as a message.
    pub(super) fn message(&self) -> String {
        let (begun, all) = (self.begun.len(), self.planned.len().max(self.begun.len()));
        match self.now.last() {
            Some((address, action)) => {
                format!("Terraform is {} {address} ({begun} of {all}).", gerund(action))
            }
            None if all > 0 => format!("Terraform has completed {begun} of {all} actions."),
            None => "Terraform is refreshing the state.".to_owned(),
        }
    }
}

fn named(of: &Value) -> (Option<String>, Option<String>) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    (text(&of["resource"]["addr"]), text(&of["action"]))
}

fn gerund(action: &str) -> &'static str {
    match action {
        "create" => "creating",
        "update" => "updating",
        "delete" | "remove" | "forget" => "deleting",
        "replace" => "replacing",
        "read" => "reading",
        _ => "processing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(kind: &str, field: &str, address: &str, action: &str) -> String {
        let hook = json!({"resource": {"addr": address}, "action": action});
        format!("{}\n", json!({"type": kind, field: hook}))
    }

    #[test]
    fn message_follows_the_run() {
        let mut log = String::from("{\"type\":\"version\"}\nsomething else\n");
        let mut check = |more: String, message: &str| {
            log += &more;
            assert_eq!(Events::parse(&log).message(), message);
        };
        check(String::new(), "Terraform is refreshing the state.");
        check(
            line("planned_change", "change", "x.a", "create")
                + &line("planned_change", "change", "x.b", "replace")
                + &line("planned_change", "change", "x.c", "read"),
            "Terraform has completed 0 of 2 actions.",
        );
        check(line("apply_start", "hook", "x.a", "create"), "Terraform is creating x.a (1 of 2).");
        check(line("apply_start", "hook", "x.b", "delete"), "Terraform is deleting x.b (2 of 2).");
        check(
            line("apply_complete", "hook", "x.b", "delete"),
            "Terraform is creating x.a (2 of 2).",
        );
        assert_eq!(Events::parse(&log).percent(), Some(50));
        let mut check = |more: String, message: &str| {
            log += &more;
            assert_eq!(Events::parse(&log).message(), message);
        };
        check(
            line("apply_errored", "hook", "x.a", "create"),
            "Terraform has completed 2 of 2 actions.",
        );
        assert_eq!(Events::parse(&log).percent(), Some(99), "it may still be writing");
        assert_eq!(Events::parse("").percent(), None);
        assert_eq!(Events::parse(&log).rest, "something else\n");
    }
}
