//! `paddock quota`: shows quotas and usage, of the organization and per service kind.

use model::Quantity;
use wire::quota::{OrganizationQuota, QuotaUsage, Quotas};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::table::Table;

/// Shows quota and usage.
pub(crate) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = api.send(&Call::get(&["quota"])).await?;
    let quotas: Quotas = api.read(&response)?;
    let text = || Ok(format!("{}\n{}", organization(&quotas.organization), table(&quotas.items)));
    printer.response(&response, text)?;
    if !quotas.is_limited {
        printer.note("no quota of service kinds is granted on this server");
    }
    Ok(())
}

/// The quotas of an organization.
pub(crate) fn organization(items: &[OrganizationQuota]) -> String {
    let row = |table: Table, item: &OrganizationQuota| {
        table.row([
            item.kind.clone(),
            item.used.to_short_string(),
            amount(item.limit),
            if item.is_default { "default" } else { "organization" }.into(),
        ])
    };
    items.iter().fold(Table::new(&["QUOTA", "USED", "LIMIT", "SOURCE"]), row).render()
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

/// Maximum amount.
fn amount(limit: Option<Quantity>) -> String {
    limit.map_or_else(|| "unlimited".into(), Quantity::to_short_string)
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

    #[test]
    fn quotas_of_the_organization_say_where_they_are_set() {
        let items: Vec<OrganizationQuota> = serde_json::from_str(
            r#"[{"kind":"deployments","used":3,"limit":1000,"is_default":true},
                {"kind":"cpu","used":1.5,"limit":8,"is_default":false},
                {"kind":"ram","used":2147483648,"limit":null,"is_default":true}]"#,
        )
        .unwrap();
        let want = "\
QUOTA        USED  LIMIT      SOURCE
deployments  3     1000       default
cpu          1.5   8          organization
ram          2Gi   unlimited  default
";
        assert_eq!(organization(&items), want);
    }
}
