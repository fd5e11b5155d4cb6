//! Writes container logs: one JSON document per line, in numbered files of limited size.

use base::{Clock as _, SystemClock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use model::log::Source;

/// Longer lines are split.
const MAX_LINE: usize = 16 << 10;

/// A line of a log file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Microseconds since the Unix epoch.
    pub(crate) at: i64,
    pub(crate) from: Source,
    pub(crate) text: String,
}

/// Name of a log file. Numbers never change, so that a reader's position stays valid.
pub(crate) fn file_name(number: u32) -> String {
    format!("{number:08}.jsonl")
}

/// Numbers of the existing log files, oldest first.
pub(crate) fn numbers(directory: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".jsonl")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Log writer of a container.
pub(super) struct Log {
    directory: PathBuf,
    max_bytes: u64,
    keep: u32,
    number: u32,
    file: File,
    written: u64,
    /// Incomplete line of each source.
    partial: [Vec<u8>; 2],
}

impl Log {
    pub(super) fn open(directory: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let number = numbers(directory).last().map_or(1, |last| last + 1);
        let file = File::create(directory.join(file_name(number)))?;
        let directory = directory.to_owned();
        Ok(Self {
            directory,
            max_bytes,
            keep,
            number,
            file,
            written: 0,
            partial: <[_; 2]>::default(),
        })
    }

    /// Appends output of the container.
    pub(super) fn write(&mut self, from: Source, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.partial[from as usize].extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.line(from);
        }
        self.partial[from as usize].extend_from_slice(bytes);
        if self.partial[from as usize].len() >= MAX_LINE {
            self.line(from);
        }
    }

    /// Writes incomplete lines.
    pub(super) fn flush(&mut self) {
        for from in [Source::Stdout, Source::Stderr] {
            if !self.partial[from as usize].is_empty() {
                self.line(from);
            }
        }
    }

    /// Adds a line of the shim itself.
    pub(super) fn write_line(&mut self, text: &str) {
        self.write(Source::Stderr, format!("{text}\n").as_bytes());
    }

    fn line(&mut self, from: Source) {
        let bytes = std::mem::take(&mut self.partial[from as usize]);
        for bytes in bytes.chunks(MAX_LINE).chain(bytes.is_empty().then_some(&[][..])) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let record = Record { at: now(), from, text };
            // A full disk loses lines but does not end the container.
            let _ = self.put(&record);
        }
    }

    fn put(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.written > 0 && self.written + line.len() as u64 > self.max_bytes {
            self.rotate()?;
        }
        self.written += line.len() as u64;
        self.file.write_all(&line)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.number += 1;
        self.file = File::create(self.directory.join(file_name(self.number)))?;
        self.written = 0;
        for old in numbers(&self.directory) {
            if old + self.keep <= self.number {
                fs::remove_file(self.directory.join(file_name(old)))?;
            }
        }
        Ok(())
    }
}

fn now() -> i64 {
    SystemClock.now().0
}
