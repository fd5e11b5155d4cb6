//! `paddock quota`: what one may have of each kind of service, and what of it is in use.

use wire::quota::{Allowance, Allowed};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::table::Table;

/// Shows what one may have, and has.
pub(crate) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = api.send(&Call::get(&["quota"])).await?;
    let allowance: Allowance = api.read(&answer)?;
    printer.answer(&answer, || Ok(table(&allowance.items)))?;
    if !allowance.is_limited {
        printer.note("nobody was granted quota here, so everybody may have everything");
    }
    Ok(())
}

fn table(items: &[Allowed]) -> String {
    let header = ["KIND", "TYPE", "BILLING MODEL", "USED", "LIMIT", "WHOSE", "EXPIRES"];
    let row = |table: Table, one: &Allowed| {
        table.row([
            one.kind.clone(),
            one.instance_type.clone(),
            one.billing_model.clone(),
            one.used.to_string(),
            limit(one.limit),
            // The id behind the slash is one's own.
            one.holder.split('/').next().unwrap_or_default().into(),
            format::timestamp(one.expires_at),
        ])
    };
    items.iter().fold(Table::new(&header), row).render()
}

/// How many units, at most.
pub(crate) fn limit(limit: Option<i64>) -> String {
    limit.map_or_else(|| "none".into(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_says_what_is_left_of_what() {
        let items: Vec<Allowed> = serde_json::from_str(
            r#"[{"kind":"rhino","instance_type":"grown","billing_model":"standard",
                 "holder":"organization/9m4e2mr0ui3e8a215n4g","limit":3,"used":1,
                 "expires_at":"2030-01-01T00:00:00Z"},
                {"kind":"rhino","instance_type":"baby","billing_model":"standard",
                 "holder":"trial/9m4e2mr0ui3e8a215n4g/ann","limit":null,"used":0,"expires_at":null}]"#,
        )
        .unwrap();
        let want = "\
KIND   TYPE   BILLING MODEL  USED  LIMIT  WHOSE         EXPIRES
rhino  grown  standard       1     3      organization  2030-01-01T00:00:00Z
rhino  baby   standard       0     none   trial         -
";
        assert_eq!(table(&items), want);
    }
}
