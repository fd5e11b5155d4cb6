//! `paddock quota`: shows quota and usage per service kind.

use wire::quota::{QuotaUsage, Quotas};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::table::Table;

/// Shows quota and usage.
pub(crate) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = api.send(&Call::get(&["quota"])).await?;
    let allowance: Quotas = api.read(&response)?;
    printer.response(&response, || Ok(table(&allowance.items)))?;
    if !allowance.is_limited {
        printer.note("no quota is granted on this server, so usage is not limited");
    }
    Ok(())
}

fn table(items: &[QuotaUsage]) -> String {
    let header = ["KIND", "TYPE", "BILLING MODEL", "USED", "LIMIT", "HOLDER", "EXPIRES"];
    let row = |table: Table, item: &QuotaUsage| {
        table.row([
            item.kind.clone(),
            item.instance_type.clone(),
            item.billing_model.clone(),
            item.used.to_string(),
            limit(item.limit),
            // The id after the slash is always the caller's.
            item.holder.split('/').next().unwrap_or_default().into(),
            format::timestamp(item.expires_at),
        ])
    };
    items.iter().fold(Table::new(&header), row).render()
}

/// Maximum number of units.
pub(crate) fn limit(limit: Option<i64>) -> String {
    limit.map_or_else(|| "unlimited".into(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_usage_and_limit() {
        let items: Vec<QuotaUsage> = serde_json::from_str(
            r#"[{"kind":"rhino","instance_type":"grown","billing_model":"standard",
                 "holder":"organization/9m4e2mr0ui3e8a215n4g","limit":3,"used":1,
                 "expires_at":"2030-01-01T00:00:00Z"},
                {"kind":"rhino","instance_type":"baby","billing_model":"standard",
                 "holder":"trial/9m4e2mr0ui3e8a215n4g/ann","limit":null,"used":0,"expires_at":null}]"#,
        )
        .unwrap();
        let want = "\
KIND   TYPE   BILLING MODEL  USED  LIMIT      HOLDER        EXPIRES
rhino  grown  standard       1     3          organization  2030-01-01T00:00:00Z
rhino  baby   standard       0     unlimited  trial         -
";
        assert_eq!(table(&items), want);
    }
}
