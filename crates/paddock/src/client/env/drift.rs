//! `paddock env drift`: what is not as it was made.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

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

#[derive(Debug, Deserialize)]
struct Drift {
    #[serde(default)]
    resources: Vec<Drifted>,
}

/// A resource that is not as it was made, or has something beside it.
#[derive(Debug, Deserialize)]
struct Drifted {
    name: String,
    #[serde(default)]
    differences: Vec<Difference>,
    #[serde(default)]
    unexpected: Vec<String>,
    #[serde(default)]
    observed_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Difference {
    field: String,
    #[serde(default)]
    made: Option<Value>,
    #[serde(default)]
    found: Option<Value>,
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
        let Some(unseen) = environment.unseen() else { return Ok(()) };
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

#[derive(Debug, Deserialize)]
struct Environment {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
    status: String,
    #[serde(default)]
    status_reason: String,
    #[serde(default)]
    observed_at: Option<String>,
}

impl Environment {
    /// A resource that is there and that nobody has looked at yet.
    fn unseen(&self) -> Option<&Resource> {
        let is_there = |one: &Resource| matches!(one.status.as_str(), "applied" | "drifted");
        self.resources.iter().find(|one| is_there(one) && one.observed_at.is_none())
    }
}

/// One line a field, and one for everything that should not be there.
fn text(drift: &Drift) -> String {
    let rows: Vec<[String; 5]> = drift.resources.iter().flat_map(Drifted::rows).collect();
    if rows.is_empty() {
        return "Everything is as it was made.\n".into();
    }
    let header = ["RESOURCE", "FIELD", "MADE", "FOUND", "SEEN"];
    rows.into_iter().fold(Table::new(&header), Table::row).render()
}

impl Drifted {
    fn rows(&self) -> Vec<[String; 5]> {
        let seen = || format::time(self.observed_at.as_deref());
        let differences = self.differences.iter().map(|one| {
            let (made, found) = (one.made.as_ref(), one.found.as_ref());
            let found = if found.is_none() { "gone".into() } else { format::value(found) };
            [self.name.clone(), one.field.clone(), format::value(made), found, seen()]
        });
        let unexpected = self.unexpected.iter().map(|what| {
            [self.name.clone(), what.clone(), String::new(), "not made by Paddock".into(), seen()]
        });
        differences.chain(unexpected).collect()
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(text(&Drift { resources: vec![] }), "Everything is as it was made.\n");
    }

    #[test]
    fn only_what_is_there_can_be_looked_at() {
        for (resources, want) in [
            (r#"[{"name":"a","status":"applied","observed_at":"t"}]"#, None),
            (r#"[{"name":"a","status":"applied","observed_at":null}]"#, Some("a")),
            (r#"[{"name":"a","status":"pending"},{"name":"b","status":"drifted"}]"#, Some("b")),
            (r#"[{"name":"a","status":"applying"}]"#, None),
        ] {
            let environment: Environment =
                serde_json::from_str(&format!(r#"{{"resources":{resources}}}"#)).unwrap();
            assert_eq!(environment.unseen().map(|one| one.name.as_str()), want, "{resources}");
        }
    }
}
