//! Diagnostics of Terraform, mapped to faults.

use port::Fault;
use serde_json::Value;

use super::redact::Redactor;

/// The maximum length of a diagnostic, in characters.
const MAX_CHARS: usize = 600;

/// Texts in diagnostics of temporary failures: networks, rate limits, locks. Others are mistakes in
/// the module or its inputs.
const TEMPORARY: [&str; 22] = [
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

/// An error that Terraform reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diagnostic {
    /// File and line.
    place: Option<String>,
    summary: String,
    detail: String,
}

impl Diagnostic {
    /// Parses a diagnostic event.
    pub(super) fn from_json(diagnostic: &Value) -> Self {
        let text = |field: &str| one_line(diagnostic[field].as_str().unwrap_or_default());
        let range = &diagnostic["range"];
        let place = range["filename"].as_str().map(|file| match range["start"]["line"].as_u64() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        });
        Self { place, summary: text("summary"), detail: text("detail") }
    }

    /// Parses the text output of commands without events.
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

    fn message(&self) -> String {
        let place = self.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let detail = self.detail.trim_end_matches('.');
        let colon = if detail.is_empty() { "" } else { ": " };
        format!("{place}{}{colon}{detail}", self.summary)
    }

    fn is_temporary(&self) -> bool {
        let message = self.message().to_lowercase();
        TEMPORARY.iter().any(|text| message.contains(text))
    }
}

/// The fault of a failed command: its best diagnostic, and how many more there are.
pub(super) fn fault(failed: &str, mut diagnostics: Vec<Diagnostic>, redactor: &Redactor) -> Fault {
    // One with a location is more specific than a summary.
    diagnostics.sort_by_key(|one| one.place.is_none());
    diagnostics.dedup();
    let Some(first) = diagnostics.first() else {
        return Fault::Unavailable(format!("{failed}: no details given"));
    };
    let message = truncate(&redactor.redact(&first.message()));
    let more = match diagnostics.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let message = format!("{failed}: {message}{more}");
    if diagnostics.iter().any(Diagnostic::is_temporary) {
        return Fault::Unavailable(message);
    }
    Fault::Refused(message)
}

/// The last lines of a command that failed without a diagnostic.
pub(super) fn last_lines(text: &str, redactor: &Redactor) -> Vec<Diagnostic> {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" ");
    let summary = one_line(&redactor.redact(&last));
    if summary.is_empty() {
        return Vec::new();
    }
    vec![Diagnostic { place: None, summary, detail: String::new() }]
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
