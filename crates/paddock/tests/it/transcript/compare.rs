//! Compares output of different runs.
//!
//! Ids, times, ports, hashes, generated secrets and durations differ between runs. Those of the
//! document are bound to the actual ones by position, and replaced by them in later commands. Runs
//! of progress lines (`deployment web: starting`) are compared by their last line: which states are
//! seen on the way depends on timing. A line `…` stands for any number of lines.

use std::sync::LazyLock;

use regex::Regex;

/// Values that differ between runs.
static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b[\d.]+Mi +sha256:[0-9a-f]{64}\b",        // image
        r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", // time
        r"|\b\d\d:\d\d UTC",
        r"|127\.0\.0\.1:\d+", // endpoint
        r"|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
        r"|\b[0-9a-z]{20,}\b",       // id, password, code, hash
        r"|\b\d+(\.\d+)? ?(ms|s)\b", // duration
    ))
    .unwrap()
});
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(cluster|deployment|environment|instance|kafka|dinosaur|page|worker|board) \S+: ")
        .unwrap()
});
const OMITTED: &str = "…";
/// The default address, which the documentation shows.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8001";

/// Values of the document with those of this run.
pub(super) struct Bindings {
    pairs: Vec<(String, String)>,
}

impl Bindings {
    /// Bindings for a server at this address.
    pub(super) fn new(address: &str) -> Self {
        Self { pairs: vec![(DEFAULT_ADDRESS.into(), address.into())] }
    }

    /// Replaces values of the document by those of this run.
    pub(super) fn substitute(&self, command: &str) -> String {
        let bind = |text: String, (documented, actual): &(String, String)| {
            text.replace(documented.as_str(), actual)
        };
        self.pairs.iter().rev().fold(command.to_owned(), bind)
    }

    /// Compares output with the documented output, binds its values, and describes the first
    /// difference.
    pub(super) fn compare(&mut self, documented: &[String], actual: &[String]) -> Option<String> {
        let actual = match documented.iter().position(|line| line == OMITTED) {
            Some(before) => &omit(actual, before, documented.len() - before - 1),
            None => actual,
        };
        let [documented, actual] = [documented, actual].map(last_of_progress);
        for n in 0..documented.len().max(actual.len()) {
            let [old, new] = [&documented, &actual].map(|lines| lines.get(n).copied());
            if let (Some(old), Some(new)) = (old, new) {
                self.bind(old, new);
            }
            if old.map(normal) != new.map(normal) {
                return Some(format!(
                    "documented: {}\nactual:     {}\nall:\n{}",
                    old.unwrap_or("(nothing)"),
                    new.unwrap_or("(nothing)"),
                    actual.join("\n")
                ));
            }
        }
        None
    }

    /// The command to document, with the values of this run.
    pub(super) fn record_command(&self, command: &str) -> String {
        self.documented(&self.substitute(command))
    }

    /// The output to document, with as many lines before and after `…` as documented now.
    pub(super) fn record(&self, documented: &[String], actual: &[String]) -> Vec<String> {
        let actual: Vec<String> = actual.iter().map(|line| self.documented(line)).collect();
        match documented.iter().position(|line| line == OMITTED) {
            Some(before) => omit(&actual, before, documented.len() - before - 1),
            None => actual,
        }
    }

    /// The text with the default address instead of the server's.
    fn documented(&self, text: &str) -> String {
        let (default, address) = &self.pairs[0];
        text.replace(address.as_str(), default)
    }

    fn bind(&mut self, old: &str, new: &str) {
        let [old, new] =
            [old, new].map(|line| VOLATILE.find_iter(line).map(|found| found.as_str()));
        for (old, new) in old.zip(new) {
            if !self.pairs.iter().any(|(documented, _)| documented == old) {
                self.pairs.push((old.into(), new.into()));
            }
        }
    }
}

/// The first and last lines, with `…` between them.
fn omit(lines: &[String], before: usize, after: usize) -> Vec<String> {
    if lines.len() <= before + after {
        return lines.to_vec();
    }
    let (head, tail) = (&lines[..before], &lines[lines.len() - after..]);
    [head, &[OMITTED.into()], tail].concat()
}

/// The lines without progress lines that another progress line follows.
fn last_of_progress(lines: &[String]) -> Vec<&str> {
    let is_progress = |n: usize| lines.get(n).is_some_and(|line| PROGRESS.is_match(line));
    (0..lines.len())
        .filter(|n| !is_progress(*n) || !is_progress(n + 1))
        .map(|n| lines[n].as_str())
        .collect()
}

/// The line without what differs between runs. Columns are as wide as their values.
fn normal(line: &str) -> String {
    let line = VOLATILE.replace_all(line, "*");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn values_are_bound_by_position() {
    let mut bindings = Bindings::new("127.0.0.1:45678");
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let documented = lines(
        "deployment web: starting\ndeployment web: running\nID  NAME\ndbt8780ej6hg01800030  web  \
         127.0.0.1:40407",
    );
    let actual =
        lines("deployment web: running\nID   NAME\ndbumf1om500cp1o0003g  web   127.0.0.1:41169");
    assert_eq!(bindings.compare(&documented, &actual), None);
    let command = bindings.substitute("curl http://127.0.0.1:40407/ http://127.0.0.1:8001/");
    assert_eq!(command, "curl http://127.0.0.1:41169/ http://127.0.0.1:45678/");
    let stopped = lines("deployment web: failed\nID NAME\ndbumf1om500cp1o0003g web 127.0.0.1:1");
    assert!(bindings.compare(&documented, &stopped).unwrap().contains("failed"));
    assert_eq!(bindings.record(&[], &lines("at 127.0.0.1:45678")), ["at 127.0.0.1:8001"]);
    let long = lines("a\nb\nc\nd");
    assert_eq!(bindings.compare(&lines("a\n…\nd"), &long), None);
    assert_eq!(bindings.record(&lines("x\n…\ny"), &long), ["a", "…", "d"]);
    assert!(bindings.compare(&lines("a\n…\nc"), &long).is_some());
}
