//! A cluster of an organization, and what its agent needs to know, on the wire.

use model::cluster::{Cluster, Status};
use model::kind::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::enterprise_type;
use crate::fleet::agent::client_id;
use crate::fleet::instance_type::InstanceType;
use crate::fleet::sign_in::REALM;

/// A cluster of an organization. Beside these fields it has, in the kind's words,
/// `access_kafkas_via_private_network`.
#[derive(Serialize, ToSchema)]
pub(crate) struct EnterpriseCluster {
    /// Its id.
    id: String,
    /// Always `Cluster`.
    kind: &'static str,
    /// Where it is.
    href: String,
    /// Its id once more.
    cluster_id: String,
    /// Where it is on its way: `cluster_accepted`, `cluster_provisioning`, `cluster_provisioned`, the kind's
    /// word for waiting, `ready`, `failed`, `deprovisioning`, `cleanup`.
    status: String,
    /// Where it stands.
    cloud_provider: String,
    /// Where there.
    region: String,
    /// Does it span zones?
    multi_az: bool,
    /// The instance types that it can have.
    supported_instance_types: SupportedTypes,
    /// How much fits on it, in the kind's words.
    #[schema(value_type = Object)]
    capacity_information: Map<String, Value>,
    /// What its agent needs to know; only in the answer to its registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleetshard_parameters: Option<Vec<Parameter>>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

/// The instance types that a cluster can have.
#[derive(Serialize, ToSchema)]
pub(crate) struct SupportedTypes {
    /// Each with its sizes.
    instance_types: Vec<InstanceType>,
}

/// Something that an agent needs to know.
#[derive(Serialize, ToSchema)]
pub(crate) struct Parameter {
    /// What.
    id: &'static str,
    /// Its value.
    value: String,
}

/// What the agent of a cluster needs to know.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterAddonParameters)]
pub(crate) struct AddonParameters {
    /// The cluster's id.
    id: String,
    /// Always `ClusterAddonParameters`.
    kind: &'static str,
    /// Where it is.
    href: String,
    /// Each by its id.
    fleetshard_parameters: Vec<Parameter>,
}

impl EnterpriseCluster {
    pub(crate) fn new(kind: &Kind, of: &Cluster) -> Self {
        let id = name(of);
        let types = enterprise_type(kind).into_iter().map(InstanceType::from).collect();
        let access = format!("access_{}_via_private_network", kind.plural);
        Self {
            kind: "Cluster",
            href: format!("/api/{}/v1/clusters/{id}", kind.api),
            cluster_id: id.clone(),
            id,
            status: status(kind, of.status),
            cloud_provider: of.cloud_provider.clone(),
            region: of.region.clone(),
            multi_az: true,
            supported_instance_types: SupportedTypes { instance_types: types },
            capacity_information: capacity(kind, of),
            fleetshard_parameters: None,
            named_by_kind: Map::from_iter([(access, json!(of.hosting.is_private))]),
        }
    }

    pub(crate) fn with_parameters(self, all: AddonParameters) -> Self {
        Self { fleetshard_parameters: Some(all.fleetshard_parameters), ..self }
    }
}

impl AddonParameters {
    pub(crate) fn new(kind: &Kind, of: &Cluster, origin: &str, secret: &str) -> Self {
        let id = name(of);
        let values = [
            ("sso-auth-server-url", format!("{origin}{REALM}")),
            ("sso-client-id", client_id(kind, of)),
            ("sso-secret", secret.to_owned()),
            ("control-plane-url", origin.to_owned()),
            ("cluster-id", id.clone()),
            ("poll-interval", "15s".to_owned()),
            ("resync-interval", "60s".to_owned()),
        ];
        Self {
            kind: "ClusterAddonParameters",
            href: format!("/api/{}/v1/clusters/{id}/addon_parameters", kind.api),
            id,
            fleetshard_parameters: values
                .into_iter()
                .map(|(id, value)| Parameter { id, value })
                .collect(),
        }
    }
}

fn name(of: &Cluster) -> String {
    of.foreign_id.clone().unwrap_or_else(|| of.id.to_string())
}

/// A status in the fleet managers' words.
fn status(kind: &Kind, status: Status) -> String {
    match status {
        Status::Accepted => "cluster_accepted".into(),
        Status::Provisioning => "cluster_provisioning".into(),
        Status::Provisioned => "cluster_provisioned".into(),
        // An agent that is silent is waited for, too.
        Status::WaitingForAgent | Status::Unreachable => kind.words.waiting.clone(),
        Status::Ready | Status::Failed | Status::Deprovisioning | Status::Cleanup => {
            status.as_str().into()
        }
    }
}

fn capacity(kind: &Kind, of: &Cluster) -> Map<String, Value> {
    let unit = enterprise_type(kind).map(|one| kind.unit(&one.id)).unwrap_or_default();
    let known = of.capacity.get(&unit).copied().unwrap_or_default();
    let units = |amount: model::Quantity| json!(amount.milli() / 1000);
    let name = &kind.name;
    Map::from_iter([
        (format!("{name}_machine_pool_node_count"), json!(of.hosting.machines.unwrap_or_default())),
        (format!("maximum_{name}_streaming_units"), units(known.total)),
        (format!("remaining_{name}_streaming_units"), units(known.free())),
        (format!("consumed_{name}_streaming_units"), units(known.used)),
    ])
}
