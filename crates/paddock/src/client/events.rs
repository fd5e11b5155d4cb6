//! `paddock events`: lists and follows events.

mod view;

use super::call::Call;
use super::error::Error;
use super::follow::Follow;
use super::http::Api;
use super::page::{self, Limit};
use super::parse;
use super::print::Printer;
use super::subject::{self, CLUSTER, DEPLOYMENT, ENVIRONMENT, INSTANCE, Kind};
use wire::event::Event;

/// Instances of any service kind.
const ANY_INSTANCE: Kind<'static> = Kind { command: "service KIND", ..INSTANCE };

const HELP: &str = "\
With -f and -o json, each event is one line.

Example:
  paddock events --since 10m --kind deployment
  paddock events -f --kind cluster --subject prod";

/// `paddock events`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Follow new events; with --since also show past ones
    #[arg(long, short)]
    follow: bool,
    /// Filter by kind of subject, such as cluster, deployment or instance
    #[arg(long)]
    kind: Option<String>,
    /// Filter by subject id; with --kind cluster, deployment, instance or environment also by name
    #[arg(long, value_name = "NAME-OR-ID")]
    subject: Option<String>,
    /// Filter by event type, such as deployment.preempted
    #[arg(long = "type", value_name = "TYPE")]
    type_: Option<String>,
    /// Show events since a time, or since a duration ago, such as 10m
    #[arg(long, value_name = "TIME", value_parser = parse::since)]
    since: Option<String>,
    #[command(flatten)]
    limit: Limit,
}

/// Lists or follows events.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject_id(api, args.kind.as_deref(), args.subject).await?;
    let call = Call::get(&["events"])
        .query("kind", args.kind)
        .query("subject", subject)
        .query("type", args.type_);
    match (args.follow, args.since) {
        (true, since) => follow(api, printer, call, since, args.limit.limit).await,
        (false, since) => list(api, printer, call.query("since", since), args.limit.limit).await,
    }
}

async fn list(api: &Api, printer: &mut Printer, call: Call, limit: usize) -> Result<(), Error> {
    page::list(api, call, limit).await?.print(api, printer, view::table)
}

/// Prints past events if requested, then new ones. The stream is opened before the list is read, so
/// that no event is missed; events in both are printed once.
async fn follow(
    api: &Api,
    printer: &mut Printer,
    call: Call,
    since: Option<String>,
    limit: usize,
) -> Result<(), Error> {
    let mut stream = Follow::open(api, call.clone()).await?;
    if !printer.is_json() {
        printer.text(&view::header_line())?;
    }
    let mut shown_seq = None;
    if let Some(since) = since {
        let past = page::list(api, call.query("since", Some(since)), limit).await?;
        for item in past.raw() {
            shown_seq = print(api, printer, item)?.max(shown_seq);
        }
        past.note_truncated(printer);
    }
    loop {
        let message = stream.next().await?;
        let event: Event =
            serde_json::from_str(&message.data).map_err(|_| api.invalid_response())?;
        if shown_seq.is_none_or(|shown| event.seq > shown) {
            shown_seq = print(api, printer, &message.data)?;
        }
    }
}

fn print(api: &Api, printer: &mut Printer, event: &str) -> Result<Option<i64>, Error> {
    let read: Event = serde_json::from_str(event).map_err(|_| api.invalid_response())?;
    printer.text(&if printer.is_json() { event.into() } else { view::line(&read) })?;
    Ok(Some(read.seq))
}

/// Resolves a name to an id for kinds that have names.
async fn subject_id(
    api: &Api,
    kind: Option<&str>,
    which: Option<String>,
) -> Result<Option<String>, Error> {
    let Some(which) = which else { return Ok(None) };
    // Ids are not looked up: deleted subjects still have events.
    if subject::is_id(&which) {
        return Ok(Some(which));
    }
    let kind = match kind {
        Some("cluster") => &CLUSTER,
        Some("deployment") => &DEPLOYMENT,
        Some("instance") => &ANY_INSTANCE,
        Some("environment") => &ENVIRONMENT,
        _ => {
            let message = "--subject accepts a name only with --kind cluster, deployment, instance \
                           or environment; add --kind, or use an id";
            return Err(Error::Usage(message.into()));
        }
    };
    Ok(Some(subject::find(api, kind, &which).await?.id))
}
