//! `paddock env drift`: what is not as it was made.

use std::time::Duration;

use tokio::time::sleep;
use wire::environment::Environment;
use wire::environment::drift::{Drift, Drifted};
use wire::resource::Resource;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::table::Table;

/// How often to see whether all was looked at, and for how long.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const GIVE_UP_AFTER: Duration = Duration::from_mins(2);

/// `paddock env drift`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --now it is what was found when the server last looked.

Example:
  paddock env drift shop
  paddock env drift shop --now")]
pub(crate) struct Args {
    /// The environment, by name or id
    #[arg(value_name = "NAME-OR-ID")]
    which: String,
    /// Has everything be looked at first
    #[arg(long)]
    now: bool,
}

/// Shows what has drifted.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let subject = subject::find(api, &ENVIRONMENT, &args.which).await?;
    if args.now {
        api.send(&Call::post(&["environments", &subject.id, "observe"], None)).await?;
        looked_at(api, &subject).await?;
    }
    let answer = api.send(&Call::get(&["environments", &subject.id, "drift"])).await?;
    printer.answer(&answer, || Ok(text(&api.read(&answer)?)))?;
    let drift: Drift = api.read(&answer)?;
    if drift.resources.iter().any(|one| !one.differences.is_empty()) {
        printer.note(&format!(r#"to mend it, run "paddock env repair {}""#, subject.label()));
    }
    Ok(())
}

/// Waits until every resource that can be looked at has been. No event tells of a look that found
/// nothing new.
async fn looked_at(api: &Api, subject: &Subject) -> Result<(), Error> {
    let give_up_at = base::monotonic() + GIVE_UP_AFTER;
    loop {
        let answer = api.send(&Call::get(&["environments", &subject.id])).await?;
        let environment: Environment = api.read(&answer)?;
        let Some(unseen) = unseen(&environment) else { return Ok(()) };
        if base::monotonic() > give_up_at {
            let (name, reason) = (&unseen.name, &unseen.status_reason);
            return Err(Error::failed_but(
                format!("{name} was not looked at within {} s: {reason}", GIVE_UP_AFTER.as_secs()),
                format!(
                    r#"without --now, "paddock env drift {}" shows the last look"#,
                    subject.label()
                ),
            ));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// A resource that is there and that nobody has looked at yet.
fn unseen(environment: &Environment) -> Option<&Resource> {
    let is_there = |one: &&Resource| matches!(one.status.as_str(), "applied" | "drifted");
    let all = environment.resources.iter().flatten();
    all.filter(is_there).find(|one| one.observed_at.is_none())
}

/// One line a field, and one for everything that should not be there.
fn text(drift: &Drift) -> String {
    let rows: Vec<[String; 5]> = drift.resources.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return "Everything is as it was made.\n".into();
    }
    let header = ["RESOURCE", "FIELD", "MADE", "FOUND", "SEEN"];
    rows.into_iter().fold(Table::new(&header), Table::row).render()
}

fn rows(of: &Drifted) -> Vec<[String; 5]> {
    let seen = || format::timestamp(of.observed_at);
    let differences = of.differences.iter().map(|one| {
        let found = Some(&one.found).filter(|found| !found.is_null());
        let found = found.map_or_else(|| "gone".into(), |found| format::value(Some(found)));
        [of.name.clone(), one.field.clone(), format::value(Some(&one.made)), found, seen()]
    });
    let unexpected = of.unexpected.iter().map(|what| {
        [of.name.clone(), what.clone(), String::new(), "not made by Paddock".into(), seen()]
    });
    differences.chain(unexpected).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::environment;
    use super::*;

    #[test]
    fn each_field_has_its_line() {
        let drift: Drift = serde_json::from_str(
            r#"{"drifted":true,"resources":[
                {"name":"kv","status":"drifted","observed_at":"2026-01-02T03:04:05.6Z",
                 "differences":[{"field":"values.a","made":"1","found":"2"},
                                {"field":"values.b","made":{"x":1},"found":null}],
                 "unexpected":["shop/c"]}]}"#,
        )
        .unwrap();
        let want = "\
RESOURCE  FIELD     MADE     FOUND                SEEN
kv        values.a  1        2                    2026-01-02T03:04:05Z
kv        values.b  {\"x\":1}  gone                 2026-01-02T03:04:05Z
kv        shop/c    -        not made by Paddock  2026-01-02T03:04:05Z
";
        assert_eq!(text(&drift), want);
        assert_eq!(
            text(&Drift { drifted: false, resources: vec![] }),
            "Everything is as it was made.\n"
        );
    }

    #[test]
    fn only_what_is_there_can_be_looked_at() {
        for (resources, want) in [
            (
                json!([{"name": "a", "status": "applied", "observed_at": "2026-01-02T03:04:05Z"}]),
                None,
            ),
            (json!([{"name": "a", "status": "applied", "observed_at": null}]), Some("a")),
            (json!([{"name": "a"}, {"name": "b", "status": "drifted"}]), Some("b")),
            (json!([{"name": "a", "status": "applying"}]), None),
        ] {
            let environment = environment(&json!({"resources": resources}));
            assert_eq!(unseen(&environment).map(|one| one.name.as_str()), want, "{resources}");
        }
    }
}
