//! What the runs in a folder have said, as lines for people, and what is noted of its state.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use model::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::workspace::Workspace;
use super::{folder, state};

/// In the order in which they are written.
const LOGS: [&str; 4] = ["notes.log", "init.log", "plan.log", "run.log"];
/// How far each log was told.
const TOLD: &str = "told.json";
/// What the state was when the last run had ended.
const SEEN: &str = "seen";
/// The most that is told at once of one log; what comes before it is left out.
const MOST_BYTES: u64 = 256 * 1024;
/// The most characters of a line.
const MAX_CHARS: usize = 1000;

impl Workspace {
    /// What was said since the last time, line by line, without secrets.
    pub(super) fn news(&self) -> Vec<String> {
        let told = folder::read(&self.at(TOLD)).ok().flatten();
        let mut told: BTreeMap<String, u64> =
            told.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let (before, mut lines) = (told.clone(), Vec::new());
        for log in LOGS {
            let from = told.entry(log.to_owned()).or_default();
            // One that can't be read now is told the next time.
            let _ = self.read_on(log, from, &mut lines);
        }
        if told == before {
            return Vec::new();
        }
        let _ = folder::write(&self.at(TOLD), &serde_json::to_string(&told).unwrap_or_default());
        let hidden = self.hidden();
        lines.iter().map(|line| cut(&hidden.blot(line))).collect()
    }

    /// How much the runs have written so far.
    pub(super) fn log_bytes(&self) -> u64 {
        LOGS.iter().map(|log| folder::log_length(&self.at(log))).sum()
    }

    /// Reads whole lines of a log from `from` on, and moves it.
    fn read_on(&self, log: &str, from: &mut u64, lines: &mut Vec<String>) -> io::Result<()> {
        let mut file = match File::open(self.at(log)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        if *from > length {
            // It was begun anew.
            *from = 0;
        }
        let skipped = (length - *from).saturating_sub(MOST_BYTES);
        file.seek(SeekFrom::Start(*from + skipped))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole == 0 && skipped == 0 {
            return Ok(());
        }
        if skipped > 0 {
            lines.push(format!("({skipped} bytes of {log} are left out.)"));
        }
        let text = String::from_utf8_lossy(&bytes[..whole]);
        lines.extend(text.lines().filter_map(readable));
        *from += skipped + whole as u64;
        Ok(())
    }

    /// Says something beside what the program says.
    pub(super) fn note(&self, line: &str) -> io::Result<()> {
        writeln!(folder::append(&self.at("notes.log"))?, "{line}")
    }

    /// A run begins: what those before have said was told.
    pub(super) fn forget_logs(&self) -> io::Result<()> {
        LOGS.iter().chain([&TOLD]).try_for_each(|name| folder::remove(&self.at(name)))
    }

    /// From here on the state may be changed by us.
    pub(super) fn forget_seen(&self) -> io::Result<()> {
        folder::remove(&self.at(SEEN))
    }

    /// What the state is now is our work.
    pub(super) fn note_seen(&self) -> io::Result<()> {
        folder::write(&self.at(SEEN), &print(self.state_here().as_ref()))
    }

    /// Is the state as our last run has left it, or does a run write it now?
    pub(super) fn is_ours(&self, here: Option<&Secret>) -> bool {
        let seen = folder::read(&self.at(SEEN));
        seen.is_ok_and(|seen| seen.is_none_or(|seen| seen == print(here)))
    }

    /// Says so if somebody else has changed the state since our last run had ended.
    pub(super) fn tell_unseen(&self, here: Option<&Secret>, newest: &Secret) -> io::Result<()> {
        if self.is_ours(here) {
            return Ok(());
        }
        let serial = state::serial(newest).unwrap_or_default();
        self.note(&format!(
            "Somebody else has changed the state since the last run; the newer one counts, its \
             serial is {serial}."
        ))
    }
}

fn print(state: Option<&Secret>) -> String {
    let text = state.map(Secret::reveal).unwrap_or_default();
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// A line as people read it; none if it tells them nothing.
fn readable(line: &str) -> Option<String> {
    let message: Value = match serde_json::from_str(line) {
        Ok(message @ Value::Object(_)) => message,
        _ => return Some(line.trim_end().to_owned()).filter(|line| !line.is_empty()),
    };
    let said = message["@message"].as_str().unwrap_or_default();
    match message["type"].as_str().unwrap_or_default() {
        "version" | "outputs" => None,
        "diagnostic" => {
            let detail = message["diagnostic"]["detail"].as_str().unwrap_or_default();
            let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(if detail.is_empty() { said.to_owned() } else { format!("{said}: {detail}") })
        }
        _ => Some(said.to_owned()).filter(|said| !said.is_empty()),
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_people_read_them() {
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
        assert_eq!(cut(&"x".repeat(5000)).chars().count(), MAX_CHARS + 1);
    }
}
