//! `paddock search`: full-text search.

use wire::search::{Item, Match, Results};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::table::Table;

/// `paddock search`.
#[derive(clap::Args)]
#[command(after_help = "\
All words must match in names, ids, tags or descriptions. Prefixes match, and longer words match
with typos.

Example:
  paddock search web shop
  paddock search databsae --kind environment --limit 5")]
pub(crate) struct Args {
    /// Words to search for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Filter by kind: organization, user, cluster, deployment, instance, template, environment or
    /// resource
    #[arg(long)]
    kind: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
}

/// Lists the results.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let call = Call::get(&["search"])
        .query("q", Some(args.words.join(" ")))
        .query("kind", args.kind)
        .query("limit", Some(args.limit));
    let response = api.send(&call).await?;
    let found: Results = api.read(&response)?;
    printer.response(&response, || Ok(table(&found)))?;
    if found.items.is_empty() {
        printer.note("no results; try fewer words or a prefix");
    } else if found.items.len() >= usize::from(args.limit) {
        printer.note(&format!("showing the best {}; use --limit for more", args.limit));
    }
    Ok(())
}

fn table(found: &Results) -> String {
    let header = ["KIND", "NAME", "STATUS", "ID", "MATCHED"];
    found.items.iter().fold(Table::new(&header), |table, item| table.row(row(item))).render()
}

fn row(item: &Item) -> [String; 5] {
    [
        item.kind.clone(),
        item.name.clone(),
        format::optional(item.status.as_ref()),
        item.id.to_string(),
        format::join(item.matched.iter().map(matched)),
    ]
}

/// Field and word of a match; `~` marks a match with typos.
fn matched(found: &Match) -> String {
    let sign = if found.typos > 0 { "~" } else { "=" };
    format!("{}{sign}{}", found.field, found.word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_show_matched_fields() {
        let found: Results = serde_json::from_str(
            r#"{"items":[{"kind":"environment","id":"9m4e2mr0ui3e8a215n4g","name":"web-shop",
                "status":"deployed","description":"","tags":{},"href":"","score":1.0,
                "matched":[{"field":"name","word":"web","typos":0},
                           {"field":"tag","word":"shop","typos":1}]},
                {"kind":"user","id":"9m4e2mr0ui3e8a215n50","name":"ann","status":null,
                 "description":"","tags":{},"href":"","score":0.5,"matched":[]}]}"#,
        )
        .unwrap();
        let want = "\
KIND         NAME      STATUS    ID                    MATCHED
environment  web-shop  deployed  9m4e2mr0ui3e8a215n4g  name=web,tag~shop
user         ann       -         9m4e2mr0ui3e8a215n50  -
";
        assert_eq!(table(&found), want);
    }
}
