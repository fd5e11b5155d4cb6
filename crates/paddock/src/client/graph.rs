//! `paddock graph`: shows dependencies and dependents.

mod tree;

use wire::graph::Graph;

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::print::Printer;

/// `paddock graph`.
#[derive(clap::Args)]
#[command(after_help = "\
dot is the Graphviz format; dot and svg are written to stdout.

Example:
  paddock graph environment/shop
  paddock graph cluster/prod --direction dependents
  paddock graph web-shop@1.4.0 --direction dependents --format svg > shop.svg")]
pub(crate) struct Args {
    /// Id, template as name@version, or kind/name, where kind is environment, template, resource,
    /// deployment, instance or cluster
    subject: String,
    #[command(flatten)]
    drawing: Drawing,
}

/// Selection and format of the graph.
#[derive(clap::Args)]
pub(crate) struct Drawing {
    /// Direction of the edges to follow
    #[arg(long, value_enum, default_value_t)]
    direction: Direction,
    /// Maximum depth [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=2000))]
    depth: Option<u16>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Direction {
    #[default]
    Dependencies,
    Dependents,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    // A text tree.
    #[default]
    Table,
    Dot,
    Svg,
    Json,
}

/// Prints the graph.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    draw(api, printer, &args.subject, &args.drawing).await
}

/// Prints the graph around a subject.
pub(crate) async fn draw(
    api: &Api,
    printer: &mut Printer,
    subject: &str,
    drawing: &Drawing,
) -> Result<(), Error> {
    let (direction, from_subject) = match drawing.direction {
        Direction::Dependencies => ("dependencies", true),
        Direction::Dependents => ("dependents", false),
    };
    let format = match drawing.format {
        Format::Dot => "dot",
        Format::Svg => "svg",
        Format::Table | Format::Json => "json",
    };
    let call = Call::get(&["graph"])
        .query("subject", Some(subject))
        .query("direction", Some(direction))
        .query("depth", drawing.depth)
        .query("format", Some(format));
    let response = api.send(&call).await?;
    if drawing.format != Format::Table {
        return printer.text(&response.body);
    }
    let graph: Graph = api.read(&response)?;
    printer.response(&response, || Ok(tree::tree(&graph, from_subject)))?;
    if graph.truncated {
        printer.note("graph truncated; limit it with --depth");
    }
    Ok(())
}
