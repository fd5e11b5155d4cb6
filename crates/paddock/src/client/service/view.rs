//! Table and detail views of instances.

use wire::instance::Instance;

use super::super::format;
use super::super::table::{self, Table};

/// One row per instance of one kind.
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
    instances.iter().fold(Table::new(&header), |table, item| table.row(row(item))).render()
}

fn row(instance: &Instance) -> [String; 11] {
    [
        instance.id.to_string(),
        instance.name.clone(),
        instance.status.clone(),
        instance.plan.clone(),
        instance.cloud_provider.clone(),
        instance.region.clone(),
        instance.owner.clone(),
        format::optional(instance.host.as_ref()),
        format::join(instance.endpoints.clone()),
        format::timestamp(instance.created_at),
        instance.status_reason.clone(),
    ]
}

/// One row per instance of any kind and organization.
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
    instances.iter().fold(Table::new(&header), |table, item| table.row(admin_row(item))).render()
}

fn admin_row(instance: &Instance) -> [String; 12] {
    [
        instance.id.to_string(),
        instance.kind.clone(),
        instance.name.clone(),
        instance.status.clone(),
        instance.plan.clone(),
        instance.cloud_provider.clone(),
        instance.region.clone(),
        instance.organization_id.to_string(),
        instance.owner.clone(),
        instance.cluster_id.map(|id| id.to_string()).unwrap_or_default(),
        format::timestamp(instance.created_at),
        instance.status_reason.clone(),
    ]
}

/// All fields of one instance.
pub(crate) fn details(instance: &Instance) -> String {
    table::fields(&[
        ("ID", instance.id.to_string()),
        ("KIND", instance.kind.clone()),
        ("NAME", instance.name.clone()),
        ("STATUS", instance.status.clone()),
        ("REASON", instance.status_reason.clone()),
        ("PLAN", instance.plan.clone()),
        ("BILLING MODEL", instance.billing_model.clone()),
        ("OWNER", instance.owner.clone()),
        ("CLOUD", instance.cloud_provider.clone()),
        ("REGION", instance.region.clone()),
        ("MULTI AZ", format::yes_or_no(instance.multi_az)),
        ("CLUSTER", instance.cluster_id.map(|id| id.to_string()).unwrap_or_default()),
        ("HOST", format::optional(instance.host.as_ref())),
        ("ENDPOINTS", format::join(instance.endpoints.clone())),
        ("VERSION", format::optional(instance.version.as_ref())),
        ("REAUTHENTICATION", format::yes_or_no(instance.reauthentication)),
        ("CREATED", format::timestamp(instance.created_at)),
        ("EXPIRES", format::timestamp(instance.expires_at)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","kind":"rhino","owner":"ann",
                "organization_id":"9m4e2mr0ui3e8a215n50","generation":1,"moons":2,
                "name":"big","cloud_provider":"aws","region":"us-east-1","multi_az":true,
                "plan":"grown.x1","billing_model":"standard","reauthentication":true,
                "status":"ready","status_reason":"Upgrading.","cluster_id":"9m4e2mr0ui3e8a215n60",
                "host":"big.example","endpoints":["127.0.0.1:9"],"version":"1.1","expires_at":null,
                "created_at":"2026-01-02T03:04:05.6Z","updated_at":"2026-01-02T03:04:05.6Z"}"#,
        )
        .unwrap()
    }

    #[test]
    fn table_has_one_row_per_instance() {
        let want = "\
ID                    NAME  STATUS  PLAN      CLOUD  REGION     OWNER  HOST         ENDPOINTS    CREATED               REASON
9m4e2mr0ui3e8a215n4g  big   ready   grown.x1  aws    us-east-1  ann    big.example  127.0.0.1:9  2026-01-02T03:04:05Z  Upgrading.
";
        assert_eq!(table(&[instance()]), want);
    }

    #[test]
    fn admin_table_shows_organization_and_cluster() {
        let text = admin_table(&[instance()]);
        assert!(text.starts_with("ID                    KIND   NAME"), "{text}");
        assert!(
            text.contains("us-east-1  9m4e2mr0ui3e8a215n50  ann    9m4e2mr0ui3e8a215n60  2026"),
            "{text}"
        );
    }

    #[test]
    fn details_show_all_fields() {
        let text = details(&instance());
        for line in [
            "KIND              rhino\n",
            "PLAN              grown.x1\n",
            "MULTI AZ          yes\n",
            "HOST              big.example\n",
            "VERSION           1.1\n",
            "EXPIRES           -\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn instance_of_another_server_version_is_shown() {
        let newer = Instance { status: "new".into(), ..instance() };
        assert!(table(&[newer]).contains("big   new"));
    }
}
