//! `paddock env graph`: what needs what.

use serde::Deserialize;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT};
use crate::client::table::Table;

/// `paddock env graph`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  paddock env graph shop
  paddock env graph shop --format svg > shop.svg
  paddock env graph shop --format dot | dot -Tpng > shop.png")]
pub(crate) struct Args {
    /// The environment, by name or id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// A table, or a drawing
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// What it needs, or what needs it [default: dependencies]
    #[arg(long, value_parser = ["dependencies", "dependents"])]
    direction: Option<String>,
    /// How many steps away from it at most
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    // Plain comments: documented values would make the help longer without saying more.
    #[default]
    Table,
    Dot,
    Svg,
}

/// What needs what.
#[derive(Debug, Deserialize)]
struct Graph {
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    edges: Vec<Edge>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    from: String,
    to: String,
}

/// Shows the graph around an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    let format = match args.format {
        Format::Table => None,
        Format::Dot => Some("dot"),
        Format::Svg => Some("svg"),
    };
    let call = Call::get(&["graph"])
        .query("subject", Some(&subject.id))
        .query("direction", args.direction)
        .query("depth", args.depth)
        .query("format", format);
    let answer = api.send(&call).await?;
    if format.is_some() {
        return printer.text(&answer.body);
    }
    printer.answer(&answer, || Ok(table(&api.read(&answer)?)))?;
    if api.read::<Graph>(&answer)?.truncated {
        printer.note("there is more than is shown");
    }
    Ok(())
}

/// One line a node, with what it needs.
fn table(graph: &Graph) -> String {
    let name = |id: &str| {
        let node = graph.nodes.iter().find(|node| node.id == id);
        node.map_or(id, |node| node.name.as_str()).to_owned()
    };
    let row = |table: Table, node: &Node| {
        let needs = graph.edges.iter().filter(|edge| edge.from == node.id);
        table.row([
            node.kind.clone(),
            node.name.clone(),
            format::optional(node.status.as_ref()),
            format::join(needs.map(|edge| name(&edge.to))),
        ])
    };
    graph.nodes.iter().fold(Table::new(&["KIND", "NAME", "STATUS", "NEEDS"]), row).render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_its_line_with_what_it_needs() {
        let graph: Graph = serde_json::from_str(
            r#"{"nodes":[{"id":"e","kind":"environment","name":"shop","status":"deployed"},
                         {"id":"w","kind":"resource","name":"web","status":"applied"},
                         {"id":"t","kind":"template","name":"web-shop@1","status":null}],
                "edges":[{"from":"e","to":"w","why":"part"},{"from":"e","to":"t","why":"made from"}],
                "truncated":false}"#,
        )
        .unwrap();
        let want = "\
KIND         NAME        STATUS    NEEDS
environment  shop        deployed  web,web-shop@1
resource     web         applied   -
template     web-shop@1  -         -
";
        assert_eq!(table(&graph), want);
    }
}
