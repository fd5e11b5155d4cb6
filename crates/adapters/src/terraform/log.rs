//! The logs of a workspace as readable lines, and the hash of its state.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use model::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::workspace::Workspace;
use super::{folder, state};

/// The log files, in the order in which they are written.
const LOGS: [&str; 4] = ["notes.log", "init.log", "plan.log", "run.log"];
/// The file with the position up to which each log was read.
const POSITIONS: &str = "told.json";
/// The file with the hash of the state after the last run.
const STATE_HASH: &str = "seen";
/// The maximum size that is read at once of one log; earlier bytes are skipped.
const MAX_BYTES: u64 = 256 * 1024;
/// The maximum length of a line, in characters.
const MAX_CHARS: usize = 1000;

impl Workspace {
    /// The log lines since the last call, without secrets.
    pub(super) fn new_log_lines(&self) -> Vec<String> {
        let positions = folder::read(&self.at(POSITIONS)).ok().flatten();
        let mut positions: BTreeMap<String, u64> =
            positions.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let (before, mut lines) = (positions.clone(), Vec::new());
        for log in LOGS {
            let from = positions.entry(log.to_owned()).or_default();
            // A log that can't be read now is read the next time.
            let _ = self.read_lines(log, from, &mut lines);
        }
        if positions == before {
            return Vec::new();
        }
        let text = serde_json::to_string(&positions).unwrap_or_default();
        let _ = folder::write(&self.at(POSITIONS), &text);
        let redactor = self.redactor();
        lines.iter().map(|line| truncate(&redactor.redact(line))).collect()
    }

    /// The total size of the logs.
    pub(super) fn log_bytes(&self) -> u64 {
        LOGS.iter().map(|log| folder::log_length(&self.at(log))).sum()
    }

    /// Reads complete lines of a log from the position `from`, and advances it.
    fn read_lines(&self, log: &str, from: &mut u64, lines: &mut Vec<String>) -> io::Result<()> {
        let mut file = match File::open(self.at(log)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        if *from > length {
            // The log was recreated.
            *from = 0;
        }
        let skipped = (length - *from).saturating_sub(MAX_BYTES);
        file.seek(SeekFrom::Start(*from + skipped))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole == 0 && skipped == 0 {
            return Ok(());
        }
        if skipped > 0 {
            lines.push(format!("(Skipped {skipped} bytes of {log}.)"));
        }
        let text = String::from_utf8_lossy(&bytes[..whole]);
        lines.extend(text.lines().filter_map(readable));
        *from += skipped + whole as u64;
        Ok(())
    }

    /// Appends a line of Paddock to the log.
    pub(super) fn append_note(&self, line: &str) -> io::Result<()> {
        writeln!(folder::append(&self.at("notes.log"))?, "{line}")
    }

    /// Deletes the logs before a run starts.
    pub(super) fn delete_logs(&self) -> io::Result<()> {
        LOGS.iter().chain([&POSITIONS]).try_for_each(|name| folder::remove(&self.at(name)))
    }

    /// Forgets the hash of the state before a run changes it.
    pub(super) fn forget_state_hash(&self) -> io::Result<()> {
        folder::remove(&self.at(STATE_HASH))
    }

    /// Records the hash of the state after a run.
    pub(super) fn record_state_hash(&self) -> io::Result<()> {
        folder::write(&self.at(STATE_HASH), &hash(self.local_state().as_ref()))
    }

    /// Whether the state is that of the last run, or a run is writing it.
    pub(super) fn is_own_state(&self, local: Option<&Secret>) -> bool {
        let recorded = folder::read(&self.at(STATE_HASH));
        recorded.is_ok_and(|recorded| recorded.is_none_or(|recorded| recorded == hash(local)))
    }

    /// Logs that the state was changed externally since the last run.
    pub(super) fn note_external_change(
        &self,
        local: Option<&Secret>,
        newest: &Secret,
    ) -> io::Result<()> {
        if self.is_own_state(local) {
            return Ok(());
        }
        let serial = state::serial(newest).unwrap_or_default();
        self.append_note(&format!(
            "The state was changed externally since the last run; using the newer one, serial \
             {serial}."
        ))
    }
}

fn hash(state: Option<&Secret>) -> String {
    let text = state.map(Secret::reveal).unwrap_or_default();
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// The readable form of a line; none if it is not worth logging.
fn readable(line: &str) -> Option<String> {
    let message: Value = match serde_json::from_str(line) {
        Ok(message @ Value::Object(_)) => message,
        _ => return Some(line.trim_end().to_owned()).filter(|line| !line.is_empty()),
    };
    let text = message["@message"].as_str().unwrap_or_default();
    match message["type"].as_str().unwrap_or_default() {
        "version" | "outputs" => None,
        "diagnostic" => {
            let detail = message["diagnostic"]["detail"].as_str().unwrap_or_default();
            let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") })
        }
        _ => Some(text.to_owned()).filter(|text| !text.is_empty()),
    }
}

fn truncate(line: &str) -> String {
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_converted_to_readable_text() {
        for (line, read) in [
            (r#"{"@message":"Terraform 1.15.5","type":"version"}"#, None),
            (r#"{"@message":"Outputs: 2","type":"outputs","outputs":{"a":{"value":1}}}"#, None),
            (
                r#"{"@message":"x.a: Creating...","type":"apply_start","hook":{}}"#,
                Some("x.a: Creating..."),
            ),
            (
                r#"{"@message":"Error: No","type":"diagnostic","diagnostic":{"detail":"a\n  b"}}"#,
                Some("Error: No: a b"),
            ),
            (r#"{"@message":"Error: No","type":"diagnostic"}"#, Some("Error: No")),
            ("plain ", Some("plain")),
            ("{ no json", Some("{ no json")),
            ("[1]", Some("[1]")),
            ("", None),
        ] {
            assert_eq!(readable(line).as_deref(), read, "{line}");
        }
        assert_eq!(truncate(&"x".repeat(5000)).chars().count(), MAX_CHARS + 1);
    }
}
