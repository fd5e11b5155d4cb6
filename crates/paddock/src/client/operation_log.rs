//! The logs of operations: `paddock env logs` and `paddock cluster logs`.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::sleep;
use wire::cluster::Cluster;
use wire::environment::Environment;
use wire::resource::Line;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::lines::{End, Lines};
use super::print::Printer;
use super::table;

/// The largest number of lines that are kept.
const MAX_TAIL: i64 = 100_000;
/// How long to pause before a log that broke off is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// So often in a row it is opened in vain.
const MAX_TRIES: u32 = 60;

/// Which part of a log is shown, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Goes on as more is said
    #[arg(long, short)]
    follow: bool,
    /// Only the last lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_TAIL))]
    tail: Option<u32>,
    /// With the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// Whose log is read.
pub(crate) enum Of<'a> {
    /// The cluster of this id.
    Cluster(&'a str),
    /// A resource of the environment of this id.
    Resource {
        /// The environment's id.
        environment: &'a str,
        /// The resource's name.
        name: &'a str,
    },
}

impl Of<'_> {
    fn logs(&self) -> Call {
        match self {
            Self::Cluster(id) => Call::get(&["clusters", id, "logs"]),
            Self::Resource { environment, name } => {
                Call::get(&["environments", environment, "resources", name, "logs"])
            }
        }
    }

    /// Whether an operation is running, or about to start.
    async fn is_busy(&self, api: &Api) -> Result<bool, Error> {
        match self {
            Self::Cluster(id) => {
                let now: Cluster = api.read(&api.send(&Call::get(&["clusters", id])).await?)?;
                Ok(!matches!(now.status.as_str(), "ready" | "failed" | "unreachable"))
            }
            Self::Resource { environment, name } => {
                let answer = api.send(&Call::get(&["environments", environment])).await?;
                Ok(is_busy_with(&api.read(&answer)?, name))
            }
        }
    }
}

/// A log line and its original JSON.
struct Received {
    line: Line,
    raw: String,
}

fn parse(bytes: &[u8]) -> Option<Received> {
    let raw = String::from_utf8(bytes.to_vec()).ok()?;
    Some(Received { line: serde_json::from_str(&raw).ok()?, raw })
}

fn render(line: &Line, timestamps: bool, is_terminal: bool) -> String {
    let at = if timestamps { format!("{} ", line.at) } else { String::new() };
    let said = if is_terminal { table::tame(&line.text) } else { line.text.clone() };
    format!("{at}{said}")
}

/// A log, and how far it was read.
struct Log<'a> {
    api: &'a Api,
    of: Of<'a>,
    /// The number of the last line that was shown.
    last: Option<i64>,
    timestamps: bool,
}

/// Shows a log, and with `-f` goes on.
pub(crate) async fn show(
    api: &Api,
    printer: &mut Printer,
    of: Of<'_>,
    options: &Options,
) -> Result<(), Error> {
    let mut log = Log { api, of, last: None, timestamps: options.timestamps };
    let read = async {
        if options.follow {
            log.follow(options.tail, printer).await
        } else {
            log.once(options.tail, printer).await
        }
    };
    tokio::select! {
        outcome = read => outcome,
        // Ctrl-C ends the log without an error.
        () = base::signals::interrupted() => Ok(()),
    }
}

impl Log<'_> {
    fn call(&self, tail: Option<u32>) -> Call {
        self.of.logs().query("tail", tail)
    }

    /// What was said until now.
    async fn once(&mut self, tail: Option<u32>, printer: &mut Printer) -> Result<(), Error> {
        match self.drain(&self.call(tail), printer).await? {
            End::Whole => Ok(()),
            _ => Err(Error::failed_but("the log broke off", "run the command again")),
        }
    }

    /// Goes on until the step is over. A server that stopped looks the same at first.
    async fn follow(&mut self, tail: Option<u32>, printer: &mut Printer) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let seen = self.last;
            let tail = tail.filter(|_| seen.is_none());
            let call = self.call(tail).query("follow", Some(true)).query("after", seen);
            let outcome = match self.drain(&call, printer).await {
                Ok(_) if !self.goes_on().await? => return Ok(()),
                outcome => outcome,
            };
            tries = if self.last == seen { tries + 1 } else { 0 };
            match outcome {
                Err(error) if !error.is_passing() || tries > MAX_TRIES => return Err(error),
                _ => sleep(PAUSE).await,
            }
        }
    }

    /// Shows all lines of an open log, and says why there are no more.
    async fn drain(&mut self, call: &Call, printer: &mut Printer) -> Result<End, Error> {
        let mut lines = Lines::open(self.api, call).await?;
        let is_terminal = io::stdout().is_terminal();
        loop {
            match lines.next(parse).await {
                Ok(Received { line, raw }) => {
                    self.last = Some(line.number);
                    let text = if printer.is_json() {
                        raw
                    } else {
                        render(&line, self.timestamps, is_terminal)
                    };
                    printer.bytes(format!("{text}\n").as_bytes())?;
                }
                Err(End::Foreign) => return Err(self.api.foreign()),
                Err(end) => return Ok(end),
            }
        }
    }

    /// Whether more lines may come.
    async fn goes_on(&self) -> Result<bool, Error> {
        match self.of.is_busy(self.api).await {
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) if error.is_passing() => Ok(true),
            other => other,
        }
    }
}

/// Nobody's turn comes in an environment that has failed.
fn is_busy_with(environment: &Environment, name: &str) -> bool {
    let one = environment.resources.iter().flatten().find(|one| one.name == name);
    one.is_some_and(|one| match one.status.as_str() {
        "planning" | "applying" | "destroying" => true,
        "pending" => matches!(environment.status.as_str(), "deploying" | "destroying"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::env::fixture;
    use super::*;

    #[test]
    fn a_line_says_what_was_asked_for() {
        let raw = r#"{"number":7,"at":"2026-01-02T03:04:05Z","text":"a\u001b[2J"}"#;
        let Received { line, raw: kept } = parse(raw.as_bytes()).unwrap();
        assert_eq!((line.number, kept.as_str()), (7, raw));
        assert_eq!(render(&line, false, false), "a\u{1b}[2J");
        assert_eq!(render(&line, true, true), "2026-01-02T03:04:05Z a\u{fffd}[2J");
        assert!(parse(b"<html>").is_none());
    }

    #[test]
    fn a_log_goes_on_while_something_is_done() {
        for (environment, resource, want) in [
            ("deploying", "applying", true),
            ("deploying", "pending", true),
            ("failed", "pending", false),
            ("failed", "applying", true),
            ("deployed", "applied", false),
            ("deploying", "failed", false),
        ] {
            let resources = [json!({"name": "web", "status": resource})];
            let seen =
                fixture::environment(&json!({"status": environment, "resources": resources}));
            assert_eq!(is_busy_with(&seen, "web"), want, "{environment} {resource}");
            assert!(!is_busy_with(&seen, "bus"));
        }
    }
}
