//! Instances as people see them.

use serde::Deserialize;

use super::super::format;
use super::super::table::{self, Table};

/// The part of an instance that the client shows.
#[derive(Debug, Deserialize)]
pub(crate) struct Instance {
    id: String,
    #[serde(default)]
    kind: String,
    name: String,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    organization_id: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    plan: Option<String>,
    #[serde(default)]
    billing_model: Option<String>,
    #[serde(default)]
    cloud_provider: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    multi_az: bool,
    #[serde(default)]
    reauthentication: bool,
    #[serde(default)]
    cluster_id: Option<String>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    endpoints: Vec<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    expires_at: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

/// One line an instance of one kind.
pub(crate) fn table(instances: &[Instance]) -> String {
    let header = [
        "ID",
        "NAME",
        "STATUS",
        "PLAN",
        "CLOUD",
        "REGION",
        "OWNER",
        "HOST",
        "ENDPOINTS",
        "CREATED",
        "REASON",
    ];
    instances.iter().fold(Table::new(&header), |table, one| table.row(row(one))).render()
}

fn row(instance: &Instance) -> [String; 11] {
    [
        instance.id.clone(),
        instance.name.clone(),
        instance.status.clone(),
        format::optional(instance.plan.as_ref()),
        format::optional(instance.cloud_provider.as_ref()),
        format::optional(instance.region.as_ref()),
        format::optional(instance.owner.as_ref()),
        format::optional(instance.host.as_ref()),
        format::join(instance.endpoints.clone()),
        format::time(instance.created_at.as_deref()),
        format::optional(instance.status_reason.as_ref()),
    ]
}

/// One line an instance of whichever kind and organization.
pub(crate) fn admin_table(instances: &[Instance]) -> String {
    let header = [
        "ID",
        "KIND",
        "NAME",
        "STATUS",
        "PLAN",
        "CLOUD",
        "REGION",
        "ORGANIZATION",
        "OWNER",
        "CLUSTER",
        "CREATED",
        "REASON",
    ];
    instances.iter().fold(Table::new(&header), |table, one| table.row(admin_row(one))).render()
}

fn admin_row(instance: &Instance) -> [String; 12] {
    [
        instance.id.clone(),
        instance.kind.clone(),
        instance.name.clone(),
        instance.status.clone(),
        format::optional(instance.plan.as_ref()),
        format::optional(instance.cloud_provider.as_ref()),
        format::optional(instance.region.as_ref()),
        format::optional(instance.organization_id.as_ref()),
        format::optional(instance.owner.as_ref()),
        format::optional(instance.cluster_id.as_ref()),
        format::time(instance.created_at.as_deref()),
        format::optional(instance.status_reason.as_ref()),
    ]
}

/// All of one instance.
pub(crate) fn details(instance: &Instance) -> String {
    table::fields(&[
        ("ID", instance.id.clone()),
        ("KIND", instance.kind.clone()),
        ("NAME", instance.name.clone()),
        ("STATUS", instance.status.clone()),
        ("REASON", format::optional(instance.status_reason.as_ref())),
        ("PLAN", format::optional(instance.plan.as_ref())),
        ("BILLING MODEL", format::optional(instance.billing_model.as_ref())),
        ("OWNER", format::optional(instance.owner.as_ref())),
        ("CLOUD", format::optional(instance.cloud_provider.as_ref())),
        ("REGION", format::optional(instance.region.as_ref())),
        ("SPANS ZONES", format::yes_or_no(instance.multi_az)),
        ("CLUSTER", format::optional(instance.cluster_id.as_ref())),
        ("HOST", format::optional(instance.host.as_ref())),
        ("ENDPOINTS", format::join(instance.endpoints.clone())),
        ("VERSION", format::optional(instance.version.as_ref())),
        ("REAUTHENTICATION", format::yes_or_no(instance.reauthentication)),
        ("CREATED", format::time(instance.created_at.as_deref())),
        ("EXPIRES", format::time(instance.expires_at.as_deref())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","kind":"rhino","organization_id":"o1","owner":"ann",
                "name":"big","cloud_provider":"aws","region":"us-east-1","multi_az":true,
                "plan":"grown.x1","billing_model":"standard","reauthentication":true,
                "status":"ready","status_reason":"It can be used.","cluster_id":"c1",
                "host":"big.example","endpoints":["127.0.0.1:9"],"version":"1.1","expires_at":null,
                "created_at":"2026-01-02T03:04:05.6Z"}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_list_has_one_line_an_instance() {
        let want = "\
ID                    NAME  STATUS  PLAN      CLOUD  REGION     OWNER  HOST         ENDPOINTS    CREATED               REASON
9m4e2mr0ui3e8a215n4g  big   ready   grown.x1  aws    us-east-1  ann    big.example  127.0.0.1:9  2026-01-02T03:04:05Z  It can be used.
";
        assert_eq!(table(&[instance()]), want);
    }

    #[test]
    fn administrators_see_whose_it_is_and_where() {
        let text = admin_table(&[instance()]);
        assert!(text.starts_with("ID                    KIND   NAME"), "{text}");
        assert!(text.contains("us-east-1  o1            ann    c1       2026"), "{text}");
    }

    #[test]
    fn one_instance_shows_all_it_has() {
        let text = details(&instance());
        for line in [
            "KIND              rhino\n",
            "PLAN              grown.x1\n",
            "SPANS ZONES       yes\n",
            "HOST              big.example\n",
            "VERSION           1.1\n",
            "EXPIRES           -\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn an_instance_of_another_version_is_still_shown() {
        let bare: Instance =
            serde_json::from_str(r#"{"id":"1","name":"a","status":"new"}"#).unwrap();
        assert!(table(&[bare]).contains("1   a     new"));
    }
}
