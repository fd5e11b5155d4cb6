//! What Terraform says about its errors, made fit for our sentences.

use port::Fault;
use serde_json::Value;

use super::hidden::Hidden;

/// The most characters of what Terraform says.
const MAX_CHARS: usize = 600;

/// Words of what passes: networks, limits, somebody else's lock. The rest is the module's or its
/// user's mistake, and stays.
const PASSES: [&str; 22] = [
    "error acquiring the state lock",
    "could not connect to",
    "failed to query available provider packages",
    "connection refused",
    "connection reset",
    "connection timed out",
    "no such host",
    "no route to host",
    "network is unreachable",
    "temporary failure in name resolution",
    "tls handshake timeout",
    "i/o timeout",
    "unexpected eof",
    "context deadline exceeded",
    "client.timeout",
    "too many requests",
    "rate limit",
    "rate exceeded",
    "throttl",
    "requestlimitexceeded",
    "service unavailable",
    "no space left on device",
];

/// One thing that Terraform complains about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    /// File and line.
    place: Option<String>,
    summary: String,
    detail: String,
}

impl Complaint {
    /// From a diagnostic of Terraform's stream.
    pub(super) fn from_json(diagnostic: &Value) -> Self {
        let text = |field: &str| one_line(diagnostic[field].as_str().unwrap_or_default());
        let range = &diagnostic["range"];
        let place = range["filename"].as_str().map(|file| match range["start"]["line"].as_u64() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        });
        Self { place, summary: text("summary"), detail: text("detail") }
    }

    /// From what is written for people, in commands that have no stream.
    pub(super) fn all_from_text(text: &str) -> Vec<Self> {
        let plain = text.lines().map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']).trim());
        let mut found: Vec<Vec<&str>> = Vec::new();
        for line in plain {
            if line.starts_with("Error: ") || line.starts_with("Warning: ") {
                found.push(vec![line]);
            } else if let Some(last) = found.last_mut() {
                last.push(line);
            }
        }
        found.iter().filter_map(|lines| Self::from_lines(lines)).collect()
    }

    fn from_lines(lines: &[&str]) -> Option<Self> {
        let mut parts = lines.split(|line| line.is_empty()).filter(|part| !part.is_empty());
        let summary = one_line(parts.next()?.join(" ").strip_prefix("Error: ")?);
        let mut parts = parts.peekable();
        let place = parts.next_if(|part| part[0].starts_with("on ")).and_then(|part| {
            let (file, rest) = part[0].strip_prefix("on ")?.split_once(" line ")?;
            let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some(format!("{file}:{line}"))
        });
        let detail = parts.map(|part| part.join(" ")).collect::<Vec<_>>().join(" ");
        Some(Self { place, summary, detail: one_line(&detail) })
    }

    fn sentence(&self) -> String {
        let place = self.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let detail = self.detail.trim_end_matches('.');
        let colon = if detail.is_empty() { "" } else { ": " };
        format!("{place}{}{colon}{detail}", self.summary)
    }

    fn passes(&self) -> bool {
        let said = self.sentence().to_lowercase();
        PASSES.iter().any(|words| said.contains(words))
    }
}

/// A fault of all complaints: the best one, and how many more there are. `what` is what can't be done.
pub(super) fn fault(what: &str, mut complaints: Vec<Complaint>, hidden: &Hidden) -> Fault {
    // One that names its place says more than one that sums up.
    complaints.sort_by_key(|one| one.place.is_none());
    complaints.dedup();
    let Some(first) = complaints.first() else {
        return Fault::Unavailable(format!("{what}: Terraform does not say why"));
    };
    let said = cut(&hidden.blot(&first.sentence()));
    let more = match complaints.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let said = format!("{what}: {said}{more}");
    if complaints.iter().any(Complaint::passes) {
        return Fault::Unavailable(said);
    }
    Fault::Refused(said)
}

/// What a program said that ended without a complaint: its last lines.
pub(super) fn last_words(text: &str, hidden: &Hidden) -> Vec<Complaint> {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" ");
    let summary = one_line(&hidden.blot(&last));
    if summary.is_empty() {
        return Vec::new();
    }
    vec![Complaint { place: None, summary, detail: String::new() }]
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
