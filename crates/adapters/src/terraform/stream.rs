//! What Terraform tells a program about its run: one JSON object per line.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::Complaint;

/// What was told so far.
#[derive(Default)]
pub(super) struct Told {
    planned: BTreeSet<String>,
    begun: BTreeSet<String>,
    /// What is being done now: address and action, the newest last.
    now: Vec<(String, String)>,
    pub(super) complaints: Vec<Complaint>,
    /// What is no JSON.
    pub(super) rest: String,
    /// Was anything told in JSON at all?
    pub(super) is_stream: bool,
}

impl Told {
    /// Reads what there is; a line that is not yet whole is left out.
    pub(super) fn read(text: &str) -> Self {
        let mut told = Self::default();
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(message) if message.is_object() => told.hear(&message),
                _ => told.rest.extend([line, "\n"]),
            }
        }
        told
    }

    fn hear(&mut self, message: &Value) {
        self.is_stream = true;
        match message["type"].as_str().unwrap_or_default() {
            "planned_change" => self.plan(&message["change"]),
            "apply_start" => self.begin(&message["hook"]),
            "apply_complete" | "apply_errored" => self.end(&message["hook"]),
            "diagnostic" if message["diagnostic"]["severity"] == "error" => {
                self.complaints.push(Complaint::from_json(&message["diagnostic"]));
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

    /// How much of what was planned is done, in percent; never all of it.
    pub(super) fn percent(&self) -> Option<u8> {
        let (done, all) =
            (self.begun.len() - self.busy(), self.planned.len().max(self.begun.len()));
        let percent = (100 * done).checked_div(all)?.min(99);
        u8::try_from(percent).ok()
    }

    fn busy(&self) -> usize {
        self.now.iter().map(|(address, _)| address).collect::<BTreeSet<_>>().len()
    }

    /// How far it is, as a sentence.
    pub(super) fn sentence(&self) -> String {
        let (begun, all) = (self.begun.len(), self.planned.len().max(self.begun.len()));
        match self.now.last() {
            Some((address, action)) => {
                format!("Terraform is {} {address} ({begun} of {all}).", doing(action))
            }
            None if all > 0 => format!("Terraform has done {begun} of {all}."),
            None => "Terraform looks at what there is.".to_owned(),
        }
    }
}

fn named(of: &Value) -> (Option<String>, Option<String>) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    (text(&of["resource"]["addr"]), text(&of["action"]))
}

fn doing(action: &str) -> &'static str {
    match action {
        "create" => "creating",
        "update" => "changing",
        "delete" | "remove" | "forget" => "removing",
        "replace" => "replacing",
        "read" => "reading",
        _ => "at",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(kind: &str, field: &str, address: &str, action: &str) -> String {
        let said = json!({"resource": {"addr": address}, "action": action});
        format!("{}\n", json!({"type": kind, field: said}))
    }

    #[test]
    fn the_sentence_follows_the_run() {
        let mut log = String::from("{\"type\":\"version\"}\nsomething else\n");
        let mut check = |more: String, sentence: &str| {
            log += &more;
            assert_eq!(Told::read(&log).sentence(), sentence);
        };
        check(String::new(), "Terraform looks at what there is.");
        check(
            line("planned_change", "change", "x.a", "create")
                + &line("planned_change", "change", "x.b", "replace")
                + &line("planned_change", "change", "x.c", "read"),
            "Terraform has done 0 of 2.",
        );
        check(line("apply_start", "hook", "x.a", "create"), "Terraform is creating x.a (1 of 2).");
        check(line("apply_start", "hook", "x.b", "delete"), "Terraform is removing x.b (2 of 2).");
        check(
            line("apply_complete", "hook", "x.b", "delete"),
            "Terraform is creating x.a (2 of 2).",
        );
        assert_eq!(Told::read(&log).percent(), Some(50));
        let mut check = |more: String, sentence: &str| {
            log += &more;
            assert_eq!(Told::read(&log).sentence(), sentence);
        };
        check(line("apply_errored", "hook", "x.a", "create"), "Terraform has done 2 of 2.");
        assert_eq!(Told::read(&log).percent(), Some(99), "it may still be writing");
        assert_eq!(Told::read("").percent(), None);
        assert_eq!(Told::read(&log).rest, "something else\n");
    }
}
