//! `paddock service KIND create`: creates an instance.

use std::time::Duration;

use serde_json::Value;
use wire::instance::NewInstance;

use super::super::call::request;
use super::super::error::Error;
use super::super::hint;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, CLUSTER, Kind};
use super::view;

/// Specification of a new instance.
#[derive(clap::Args)]
pub(super) struct Spec {
    /// Instance type and size, such as standard.x1 [default: according to your quota]
    #[arg(long, value_name = "TYPE.SIZE")]
    plan: Option<String>,
    /// Cloud provider [default: that of the service kind]
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// Cloud region [default: that of the cloud provider]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Billing model [default: according to your quota]
    #[arg(long, value_name = "NAME")]
    billing_model: Option<String>,
    /// Marketplace for billing; requires --billing-account
    #[arg(long, value_name = "NAME")]
    marketplace: Option<String>,
    /// Marketplace account for billing
    #[arg(long, value_name = "ID")]
    billing_account: Option<String>,
    /// Cluster of your organization to run on, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// Require clients to reauthenticate periodically [default: true]
    #[arg(long, value_name = "TRUE-OR-FALSE")]
    reauthentication: Option<bool>,
}

/// Creates an instance.
pub(super) async fn run(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind<'_>,
    name: &str,
    spec: Spec,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let cluster_id = subject::id_if_named(api, &CLUSTER, spec.cluster.as_deref()).await?;
    let body = spec.request(kind, name, cluster_id);
    let response = subject::create(api, kind, body, limit).await.map_err(with_hint)?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

impl Spec {
    /// Request body. Omits unset fields, so that the server's defaults apply.
    fn request(self, kind: &Kind<'_>, name: &str, cluster_id: Option<String>) -> Value {
        request(&NewInstance {
            kind: kind.service.unwrap_or_default().into(),
            name: name.into(),
            plan: self.plan,
            cloud_provider: self.cloud_provider,
            region: self.region,
            billing_model: self.billing_model,
            marketplace: self.marketplace,
            billing_cloud_account_id: self.billing_account,
            cluster_id,
            reauthentication: self.reauthentication,
        })
    }
}

/// Adds a hint. An exceeded quota is a conflict without a field.
fn with_hint(error: Error) -> Error {
    let is_about = |fields: &[&str]| fields.iter().any(|field| error.is_about(field));
    let hint = if is_about(&["cloud_provider", "region", "billing_model"]) {
        r#"run "paddock service kinds" to see the available options"#
    } else if is_about(&["plan"]) {
        r#"run "paddock service kinds" to see all plans, and "paddock quota" to see your quota"#
    } else if is_about(&["cluster_id"]) {
        r#"run "paddock cluster list" to see the clusters of your organization"#
    } else if error.status() == Some(409) && !is_about(&["name"]) {
        hint::QUOTA
    } else {
        return error;
    };
    error.or_hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::subject::INSTANCE;
    use super::*;

    fn spec() -> Spec {
        Spec {
            plan: None,
            cloud_provider: None,
            region: None,
            billing_model: None,
            marketplace: None,
            billing_account: None,
            cluster: None,
            reauthentication: None,
        }
    }

    #[test]
    fn only_given_fields_are_sent() {
        let kind = Kind { service: Some("rhino"), ..INSTANCE };
        let bare = spec().request(&kind, "a", None);
        assert_eq!(bare, json!({ "kind": "rhino", "name": "a" }));
        let full = Spec {
            plan: Some("grown.x1".into()),
            billing_account: Some("12".into()),
            reauthentication: Some(false),
            ..spec()
        };
        let want = json!({
            "kind": "rhino", "name": "a", "plan": "grown.x1", "billing_cloud_account_id": "12",
            "cluster_id": "c", "reauthentication": false,
        });
        assert_eq!(full.request(&kind, "a", Some("c".into())), want);
    }
}
