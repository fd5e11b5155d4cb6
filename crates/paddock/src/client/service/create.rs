//! `paddock service KIND create`.

use std::time::Duration;

use serde_json::Value;
use wire::instance::NewInstance;

use super::super::call::request;
use super::super::error::Error;
use super::super::http::Api;
use super::super::print::Printer;
use super::super::subject::{self, CLUSTER, Kind};
use super::view;

/// What a new instance should be.
#[derive(clap::Args)]
pub(super) struct Spec {
    /// Its type and size, such as standard.x1 [default: by your quota]
    #[arg(long, value_name = "TYPE.SIZE")]
    plan: Option<String>,
    /// The cloud that it is in [default: the kind's]
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// The region of the cloud [default: the cloud's]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// How it is paid for [default: by your quota]
    #[arg(long, value_name = "NAME")]
    billing_model: Option<String>,
    /// Through which marketplace it is paid for; needs --billing-account
    #[arg(long, value_name = "NAME")]
    marketplace: Option<String>,
    /// From which account of the marketplace
    #[arg(long, value_name = "ID")]
    billing_account: Option<String>,
    /// The organization's own cluster that it shall be on, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// Whether its clients must sign in again from time to time [default: true]
    #[arg(long, value_name = "TRUE-OR-FALSE")]
    reauthentication: Option<bool>,
}

/// Makes an instance.
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
    let answer = subject::create(api, kind, body, limit).await.map_err(with_next)?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

impl Spec {
    /// What was not said is left out, so that the server's choices hold.
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

/// Where to look for what would be granted. What the limit of the quota forbids is a conflict about no field.
fn with_next(error: Error) -> Error {
    let is_about = |fields: &[&str]| fields.iter().any(|field| error.is_about(field));
    let next = if is_about(&["cloud_provider", "region", "billing_model"]) {
        r#""paddock service kinds" shows what can be had"#
    } else if is_about(&["plan"]) {
        r#""paddock service kinds" shows what can be had, "paddock quota" what you may have"#
    } else if is_about(&["cluster_id"]) {
        r#""paddock cluster list" shows which clusters are the organization's own"#
    } else if error.status() == Some(409) && !is_about(&["name"]) {
        r#""paddock quota" shows what you may have, and what of it you have"#
    } else {
        return error;
    };
    error.or_next(next)
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
    fn only_what_was_said_is_sent() {
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
