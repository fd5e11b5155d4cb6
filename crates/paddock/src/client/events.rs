//! `paddock events`: what has happened, and what happens.

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

/// Instances of whichever kind, as their users list them.
const ANY_INSTANCE: Kind<'static> = Kind { command: "service KIND", ..INSTANCE };

const HELP: &str = "\
With -f and -o json each event is one line.

Example:
  paddock events --since 10m --kind deployment
  paddock events -f --kind cluster --subject prod";

/// `paddock events`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Goes on with what happens from now on; with --since also what was since then
    #[arg(long, short)]
    follow: bool,
    /// Only of one kind of subject, such as cluster, deployment or instance
    #[arg(long)]
    kind: Option<String>,
    /// Only of one subject, by id; with --kind cluster, deployment, instance or environment also by
    /// name
    #[arg(long, value_name = "NAME-OR-ID")]
    subject: Option<String>,
    /// Only of one type, such as deployment.preempted
    #[arg(long = "type", value_name = "TYPE")]
    type_: Option<String>,
    /// Only since a time, or for how long, such as 10m
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

/// Shows what was, if asked, and then what happens. The stream is opened before the list is read,
/// so nothing falls between the two; what is in both is shown once.
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
        past.remark_cut(printer);
    }
    loop {
        let message = stream.next().await?;
        let event: Event = serde_json::from_str(&message.data).map_err(|_| api.foreign())?;
        if shown_seq.is_none_or(|shown| event.seq > shown) {
            shown_seq = print(api, printer, &message.data)?;
        }
    }
}

fn print(api: &Api, printer: &mut Printer, event: &str) -> Result<Option<i64>, Error> {
    let read: Event = serde_json::from_str(event).map_err(|_| api.foreign())?;
    printer.text(&if printer.is_json() { event.into() } else { view::line(&read) })?;
    Ok(Some(read.seq))
}

/// Names are looked up where it is known what they name.
async fn subject_id(
    api: &Api,
    kind: Option<&str>,
    which: Option<String>,
) -> Result<Option<String>, Error> {
    let Some(which) = which else { return Ok(None) };
    // What is deleted has an id but can't be found any more, and still has events.
    if subject::is_id(&which) {
        return Ok(Some(which));
    }
    let kind = match kind {
        Some("cluster") => &CLUSTER,
        Some("deployment") => &DEPLOYMENT,
        Some("instance") => &ANY_INSTANCE,
        Some("environment") => &ENVIRONMENT,
        _ => {
            let what = "--subject takes a name only with --kind cluster, deployment, instance or \
                        environment";
            return Err(Error::Usage(what.into()));
        }
    };
    Ok(Some(subject::find(api, kind, &which).await?.id))
}
