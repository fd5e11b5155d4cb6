//! `paddock service kinds`: lists service kinds, plans and regions.

use wire::kind::{Kind, KindRegion, Plan};

use super::super::error::Error;
use super::super::format;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::table::Table;
use super::catalog;

/// Lists service kinds.
pub(super) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = catalog::fetch(api).await?;
    printer.response(&response, || Ok(tables(&catalog::read(api, &response)?)))
}

/// Separate tables, because a kind has several plans and regions.
fn tables(services: &[Kind]) -> String {
    [kinds(services), plans(services), regions(services)].join("\n")
}

fn kinds(services: &[Kind]) -> String {
    let row = |table: Table, kind: &Kind| {
        table.row([
            kind.name.clone(),
            kind.display_name.clone(),
            format::optional(kind.trial.as_ref()),
            format::join(kind.versions.clone()),
        ])
    };
    let header = ["KIND", "DISPLAY NAME", "TRIAL", "VERSIONS"];
    services.iter().fold(Table::new(&header), row).render()
}

fn plans(services: &[Kind]) -> String {
    let header = ["KIND", "PLAN", "UNITS", "RESOURCES", "LIFETIME", "BILLING MODELS"];
    let all = services.iter().flat_map(|kind| kind.plans.iter().map(move |plan| (kind, plan)));
    all.fold(Table::new(&header), |table, (kind, plan)| table.row(plan_row(kind, plan))).render()
}

fn plan_row(kind: &Kind, plan: &Plan) -> [String; 6] {
    [
        kind.name.clone(),
        plan.name.clone(),
        plan.units.to_string(),
        format::resources(&plan.resources),
        plan.lifespan_seconds.map(|seconds| format::span(seconds.into())).unwrap_or_default(),
        format::join(plan.billing_models.clone()),
    ]
}

fn regions(services: &[Kind]) -> String {
    let header = ["KIND", "CLOUD PROVIDER", "REGION", "DEFAULT", "TYPES"];
    let all =
        services.iter().flat_map(|kind| kind.regions.iter().map(move |region| (kind, region)));
    all.fold(Table::new(&header), |table, (kind, region)| table.row(region_row(kind, region)))
        .render()
}

fn region_row(kind: &Kind, region: &KindRegion) -> [String; 5] {
    [
        kind.name.clone(),
        region.cloud_provider.clone(),
        region.region.clone(),
        format::yes_or_no(region.is_default),
        format::join(region.instance_types.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_plans_and_regions_are_separate_tables() {
        let services: Vec<Kind> = serde_json::from_str(
            r#"[{"name":"rhino","display_name":"Rhino","api":"rhinos_mgmt","trial":"baby",
                "plans":[{"name":"baby.x1","display_name":"Baby","billing_models":["standard"],"units":1,
                          "resources":{"cpu":0.25,"ram":536870912},"lifespan_seconds":172800},
                         {"name":"grown.x1","display_name":"Grown","billing_models":["standard","eval"],"units":2,
                          "resources":{"cpu":1},"lifespan_seconds":null}],
                "regions":[{"cloud_provider":"aws","region":"us-east-1","is_default":true,
                            "instance_types":["baby","grown"]}],
                "versions":["1.0","1.1"]}]"#,
        )
        .unwrap();
        let want = "\
KIND   DISPLAY NAME  TRIAL  VERSIONS
rhino  Rhino         baby   1.0,1.1

KIND   PLAN      UNITS  RESOURCES           LIFETIME  BILLING MODELS
rhino  baby.x1   1      cpu=0.25,ram=512Mi  2d        standard
rhino  grown.x1  2      cpu=1               -         standard,eval

KIND   CLOUD PROVIDER  REGION     DEFAULT  TYPES
rhino  aws             us-east-1  yes      baby,grown
";
        assert_eq!(tables(&services), want);
    }
}
