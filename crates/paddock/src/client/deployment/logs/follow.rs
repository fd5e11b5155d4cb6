//! `-f`: each replica's log on a connection of its own, which is made again where it broke.
//!
//! Looks at the deployment again and again: only it tells the end of a log from a server that
//! stopped, and replicas come, move and go.

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
use super::reader::{Opening, Reader};
use super::show::Show;
use super::{Log, replicas};

/// How often the deployment is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the server may be away.
const GIVE_UP_AFTER: Duration = Duration::from_mins(1);
/// Each replica takes a connection.
const MAX_FOLLOWED: usize = 100;

/// A line, or why there are no more, of one replica.
type Item = (u32, Result<Line, End>);

/// What is followed.
pub(super) struct Follow<'a> {
    log: Log<'a>,
    show: Show,
    tail: Option<u32>,
    readers: BTreeMap<u32, Reader>,
    open: BTreeMap<u32, AbortHandle>,
    lines: SelectAll<BoxStream<'static, Item>>,
}

impl<'a> Follow<'a> {
    /// Prepares to follow; of what was said before, only the last `tail` lines of each replica.
    pub(super) fn new(log: Log<'a>, show: Show, tail: Option<u32>) -> Self {
        let (readers, open) = (BTreeMap::new(), BTreeMap::new());
        Self { log, show, tail, readers, open, lines: SelectAll::new() }
    }

    /// Shows what is said until all have ended.
    pub(super) async fn run(
        mut self,
        first: Deployment,
        printer: &mut Printer,
    ) -> Result<(), Error> {
        let mut seen = Ok(Some(first));
        let mut well_at = base::monotonic();
        let mut trouble = false;
        loop {
            let next_look = base::monotonic() + LOOK_EVERY;
            let outcome = match seen {
                Ok(Some(deployment)) => self.enter(&deployment).await,
                Ok(None) => return self.read_until(next_look, printer).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => (well_at, trouble) = (base::monotonic(), false),
                Err(error) if !error.is_passing() => return Err(error),
                Err(error) if well_at.elapsed() > GIVE_UP_AFTER => return Err(error),
                Err(error) if !trouble => {
                    printer.note(&format!("{}; trying again", error.what()));
                    trouble = true;
                }
                Err(_) => {}
            }
            self.read_until(next_look, printer).await?;
            // Also when none is left, as of one replica that was one too many.
            if self.readers.values().all(Reader::is_done) {
                return Ok(());
            }
            seen = self.look().await;
        }
    }

    /// What the deployment is now; nothing if it is gone.
    async fn look(&self) -> Result<Option<Deployment>, Error> {
        match self.log.look().await {
            Ok(deployment) => Ok(Some(deployment)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens what can be read now, and closes what has no more to say.
    async fn enter(&mut self, deployment: &Deployment) -> Result<(), Error> {
        let replicas = replicas(deployment);
        if replicas.len() > MAX_FOLLOWED {
            return Err(Error::failed_but(
                format!("at most {MAX_FOLLOWED} of {} replicas can be followed", replicas.len()),
                "choose one with --replica",
            ));
        }
        if replicas.len() > 1 {
            self.show.with_numbers();
        }
        // What is there when we begin has a past, of which only the tail may be wanted.
        let tail = self.tail.take();
        self.readers.retain(|number, _| replicas.iter().any(|replica| replica.number == *number));
        let mut outcome = Ok(());
        for replica in replicas {
            let number = replica.number;
            let reader = self.readers.entry(number).or_insert_with(|| Reader::new(tail));
            let is_open = self.open.contains_key(&number);
            match reader.next(replica, is_open) {
                Opening::Keep => {}
                Opening::Close => {
                    if let Some(handle) = self.open.remove(&number) {
                        handle.abort();
                    }
                }
                Opening::Open => outcome = outcome.and(self.open(number).await),
            }
        }
        outcome
    }

    async fn open(&mut self, number: u32) -> Result<(), Error> {
        let Some(reader) = self.readers.get(&number) else { return Ok(()) };
        let call = self.log.call().query("follow", Some(true)).query("replica", Some(number));
        let lines = match Lines::open(self.log.api, &reader.from(call)).await {
            Ok(lines) => lines,
            // It went between the look and now.
            Err(error) if error.status() == Some(404) => return Ok(()),
            Err(error) => return Err(error),
        };
        let (lines, handle) = stream::abortable(items(number, lines));
        self.lines.push(lines.boxed());
        self.open.insert(number, handle);
        Ok(())
    }

    /// Shows lines until it is time to look again.
    async fn read_until(&mut self, time: Instant, printer: &mut Printer) -> Result<(), Error> {
        loop {
            match timeout_at(time, self.lines.next()).await {
                Ok(Some((number, Ok(line)))) => self.take(number, &line, printer)?,
                Ok(Some((_, Err(End::Foreign)))) => return Err(self.log.api.foreign()),
                Ok(Some((number, Err(end)))) => self.close(number, end),
                Ok(None) => {
                    tokio::time::sleep_until(time).await;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }

    fn take(&mut self, number: u32, line: &Line, printer: &mut Printer) -> Result<(), Error> {
        let is_new = self.readers.get_mut(&number).is_none_or(|reader| reader.take(line));
        if is_new { self.show.print(printer, line) } else { Ok(()) }
    }

    fn close(&mut self, number: u32, end: End) {
        self.open.remove(&number);
        if let Some(reader) = self.readers.get_mut(&number) {
            reader.closed(end);
        }
    }
}

/// The lines of one replica, and then why there are no more.
fn items(number: u32, lines: Lines) -> impl futures_util::Stream<Item = Item> + Send + 'static {
    stream::unfold(Some(lines), move |lines| async move {
        let mut lines = lines?;
        let next = lines.next(Line::read).await;
        let rest = next.is_ok().then_some(lines);
        Some(((number, next), rest))
    })
}
