//! `-f`: follows each replica's log on its own connection and resumes broken connections.
//!
//! Polls the deployment: only its state distinguishes the end of a log from a stopped server, and
//! replicas are added, moved and removed.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use futures_util::StreamExt as _;
use futures_util::stream::{self, AbortHandle, BoxStream, SelectAll};
use tokio::time::timeout_at;
use wire::deployment::Deployment;

use super::super::super::error::Error;
use super::super::super::lines::{End, Lines};
use super::super::super::print::Printer;
use super::line::Line;
use super::reader::{Action, Reader};
use super::show::Show;
use super::{Log, replicas};

/// Polling interval of the deployment.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to retry while the server is unreachable.
const GIVE_UP_AFTER: Duration = Duration::from_mins(1);
/// Maximum replicas: each one needs a connection.
const MAX_FOLLOWED: usize = 100;

/// A line of one replica, or the end of its log.
type Item = (u32, Result<Line, End>);

/// State of the followed logs.
pub(super) struct Follow<'a> {
    log: Log<'a>,
    show: Show,
    tail: Option<u32>,
    readers: BTreeMap<u32, Reader>,
    open: BTreeMap<u32, AbortHandle>,
    lines: SelectAll<BoxStream<'static, Item>>,
}

impl<'a> Follow<'a> {
    /// Starts with the last `tail` lines of each replica.
    pub(super) fn new(log: Log<'a>, show: Show, tail: Option<u32>) -> Self {
        let (readers, open) = (BTreeMap::new(), BTreeMap::new());
        Self { log, show, tail, readers, open, lines: SelectAll::new() }
    }

    /// Prints lines until all replicas have ended.
    pub(super) async fn run(
        mut self,
        first: Deployment,
        printer: &mut Printer,
    ) -> Result<(), Error> {
        let mut observed = Ok(Some(first));
        let mut last_success = base::monotonic();
        let mut is_failing = false;
        loop {
            let next_poll = base::monotonic() + POLL_INTERVAL;
            let outcome = match observed {
                Ok(Some(deployment)) => self.update(&deployment).await,
                Ok(None) => return self.read_until(next_poll, printer).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => (last_success, is_failing) = (base::monotonic(), false),
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) if last_success.elapsed() > GIVE_UP_AFTER => return Err(error),
                Err(error) if !is_failing => {
                    printer.note(&format!("{}; retrying", error.message()));
                    is_failing = true;
                }
                Err(_) => {}
            }
            self.read_until(next_poll, printer).await?;
            // True also if no reader is left, for example after a scale-down.
            if self.readers.values().all(Reader::is_done) {
                return Ok(());
            }
            observed = self.fetch().await;
        }
    }

    /// Fetches the deployment; `None` if it is deleted.
    async fn fetch(&self) -> Result<Option<Deployment>, Error> {
        match self.log.fetch().await {
            Ok(deployment) => Ok(Some(deployment)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens logs that can be read now, and closes logs that have ended.
    async fn update(&mut self, deployment: &Deployment) -> Result<(), Error> {
        let replicas = replicas(deployment);
        if replicas.len() > MAX_FOLLOWED {
            return Err(Error::failed_with_hint(
                format!("cannot follow {} replicas; the maximum is {MAX_FOLLOWED}", replicas.len()),
                "select one with --replica",
            ));
        }
        if replicas.len() > 1 {
            self.show.with_numbers();
        }
        // `tail` applies only to replicas that exist at the start.
        let tail = self.tail.take();
        self.readers.retain(|number, _| replicas.iter().any(|replica| replica.number == *number));
        let mut outcome = Ok(());
        for replica in replicas {
            let number = replica.number;
            let reader = self.readers.entry(number).or_insert_with(|| Reader::new(tail));
            let is_open = self.open.contains_key(&number);
            match reader.next(replica, is_open) {
                Action::Keep => {}
                Action::Close => {
                    if let Some(handle) = self.open.remove(&number) {
                        handle.abort();
                    }
                }
                Action::Open => outcome = outcome.and(self.open(number).await),
            }
        }
        outcome
    }

    async fn open(&mut self, number: u32) -> Result<(), Error> {
        let Some(reader) = self.readers.get(&number) else { return Ok(()) };
        let call = self.log.call().query("follow", Some(true)).query("replica", Some(number));
        let lines = match Lines::open(self.log.api, &reader.resume(call)).await {
            Ok(lines) => lines,
            // The replica was removed since the last poll.
            Err(error) if error.status() == Some(404) => return Ok(()),
            Err(error) => return Err(error),
        };
        let (lines, handle) = stream::abortable(items(number, lines));
        self.lines.push(lines.boxed());
        self.open.insert(number, handle);
        Ok(())
    }

    /// Prints lines until the next poll.
    async fn read_until(&mut self, time: Instant, printer: &mut Printer) -> Result<(), Error> {
        loop {
            match timeout_at(time, self.lines.next()).await {
                Ok(Some((number, Ok(line)))) => self.print(number, &line, printer)?,
                Ok(Some((_, Err(End::Invalid)))) => return Err(self.log.api.invalid_response()),
                Ok(Some((number, Err(end)))) => self.close(number, end),
                Ok(None) => {
                    tokio::time::sleep_until(time).await;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }

    fn print(&mut self, number: u32, line: &Line, printer: &mut Printer) -> Result<(), Error> {
        let is_new = self.readers.get_mut(&number).is_none_or(|reader| reader.accept(line));
        if is_new { self.show.print(printer, line) } else { Ok(()) }
    }

    fn close(&mut self, number: u32, end: End) {
        self.open.remove(&number);
        if let Some(reader) = self.readers.get_mut(&number) {
            reader.closed(end);
        }
    }
}

/// The lines of one replica, followed by the end of its log.
fn items(number: u32, lines: Lines) -> impl futures_util::Stream<Item = Item> + Send + 'static {
    stream::unfold(Some(lines), move |lines| async move {
        let mut lines = lines?;
        let next = lines.next(Line::read).await;
        let rest = next.is_ok().then_some(lines);
        Some(((number, next), rest))
    })
}
