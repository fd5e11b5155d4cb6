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

/// The server's maximum for `tail`.
const MAX_TAIL: i64 = 100_000;
/// Pause before reopening a broken log.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum consecutive attempts without a new line.
const MAX_TRIES: u32 = 60;

/// Selection and format of log lines.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Follow the log
    #[arg(long, short)]
    follow: bool,
    /// Number of most recent lines to show
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_TAIL))]
    tail: Option<u32>,
    /// Show the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// Owner of a log.
pub(crate) enum Owner<'a> {
    /// Cluster by id.
    Cluster(&'a str),
    /// Resource of an environment.
    Resource {
        /// Id of the environment.
        environment: &'a str,
        /// Name of the resource.
        name: &'a str,
    },
}

impl Owner<'_> {
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
                let response = api.send(&Call::get(&["environments", environment])).await?;
                Ok(is_busy_with(&api.read(&response)?, name))
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
    let text = if is_terminal { table::tame(&line.text) } else { line.text.clone() };
    format!("{at}{text}")
}

/// A log and the read position in it.
struct Log<'a> {
    api: &'a Api,
    owner: Owner<'a>,
    /// Number of the last printed line.
    last: Option<i64>,
    timestamps: bool,
}

/// Shows a log, and with `-f` follows it.
pub(crate) async fn show(
    api: &Api,
    printer: &mut Printer,
    owner: Owner<'_>,
    options: &Options,
) -> Result<(), Error> {
    let mut log = Log { api, owner, last: None, timestamps: options.timestamps };
    let read = async {
        if options.follow {
            log.follow(options.tail, printer).await
        } else {
            log.once(options.tail, printer).await
        }
    };
    tokio::select! {
        outcome = read => outcome,
        // Ctrl-C is a normal way to stop following.
        () = base::signals::interrupted() => Ok(()),
    }
}

impl Log<'_> {
    fn call(&self, tail: Option<u32>) -> Call {
        self.owner.logs().query("tail", tail)
    }

    /// Prints the log up to now.
    async fn once(&mut self, tail: Option<u32>, printer: &mut Printer) -> Result<(), Error> {
        match self.drain(&self.call(tail), printer).await? {
            End::Complete => Ok(()),
            _ => Err(Error::failed_with_hint("connection lost", "run the command again")),
        }
    }

    /// Follows the log until the operation ends. The end of a stream alone is not enough: a stopped
    /// server looks the same.
    async fn follow(&mut self, tail: Option<u32>, printer: &mut Printer) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let after = self.last;
            let tail = tail.filter(|_| after.is_none());
            let call = self.call(tail).query("follow", Some(true)).query("after", after);
            let outcome = match self.drain(&call, printer).await {
                Ok(_) if !self.may_grow().await? => return Ok(()),
                outcome => outcome,
            };
            tries = if self.last == after { tries + 1 } else { 0 };
            match outcome {
                Err(error) if !error.is_transient() || tries > MAX_TRIES => return Err(error),
                _ => sleep(PAUSE).await,
            }
        }
    }

    /// Prints all lines of a stream and returns the reason for its end.
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
                Err(End::Invalid) => return Err(self.api.invalid_response()),
                Err(end) => return Ok(end),
            }
        }
    }

    /// Whether more lines may follow.
    async fn may_grow(&self) -> Result<bool, Error> {
        match self.owner.is_busy(self.api).await {
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) if error.is_transient() => Ok(true),
            other => other,
        }
    }
}

/// Whether a resource is being worked on. Pending resources of a failed environment are not.
fn is_busy_with(environment: &Environment, name: &str) -> bool {
    let resource = environment.resources.iter().flatten().find(|resource| resource.name == name);
    resource.is_some_and(|resource| match resource.status.as_str() {
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
    fn lines_are_parsed_and_formatted() {
        let raw = r#"{"number":7,"at":"2026-01-02T03:04:05Z","text":"a\u001b[2J"}"#;
        let Received { line, raw: original } = parse(raw.as_bytes()).unwrap();
        assert_eq!((line.number, original.as_str()), (7, raw));
        assert_eq!(render(&line, false, false), "a\u{1b}[2J");
        assert_eq!(render(&line, true, true), "2026-01-02T03:04:05Z a\u{fffd}[2J");
        assert!(parse(b"<html>").is_none());
    }

    #[test]
    fn log_may_grow_while_its_resource_is_busy() {
        for (environment, resource, want) in [
            ("deploying", "applying", true),
            ("deploying", "pending", true),
            ("failed", "pending", false),
            ("failed", "applying", true),
            ("deployed", "applied", false),
            ("deploying", "failed", false),
        ] {
            let resources = [json!({"name": "web", "status": resource})];
            let observed =
                fixture::environment(&json!({"status": environment, "resources": resources}));
            assert_eq!(is_busy_with(&observed, "web"), want, "{environment} {resource}");
            assert!(!is_busy_with(&observed, "bus"));
        }
    }
}
