//! Enterprise cluster objects and agent parameters.

use model::cluster::{Cluster, Status};
use model::kind::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::enterprise_type;
use crate::fleet::agent::client_id;
use crate::fleet::instance_type::InstanceType;
use crate::fleet::token::REALM;

/// An enterprise cluster. In addition, under the kind's name, `access_kafkas_via_private_network`.
#[derive(Serialize, ToSchema)]
pub(crate) struct EnterpriseCluster {
    /// Unique identifier.
    id: String,
    /// Always `Cluster`.
    kind: &'static str,
    /// Path in this API.
    href: String,
    /// Cluster ID.
    cluster_id: String,
    /// One of `cluster_accepted`, `cluster_provisioning`, `cluster_provisioned`, the kind's waiting
    /// status, `ready`, `failed`, `deprovisioning`, `cleanup`.
    status: String,
    /// Cloud provider.
    cloud_provider: String,
    /// Region of the cloud provider.
    region: String,
    /// Whether it spans availability zones.
    multi_az: bool,
    /// Supported instance types.
    supported_instance_types: SupportedTypes,
    /// Capacity, under the kind's names.
    #[schema(value_type = Object)]
    capacity_information: Map<String, Value>,
    /// Parameters of the agent; only in the response to the registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleetshard_parameters: Option<Vec<Parameter>>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

/// Supported instance types of a cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct SupportedTypes {
    /// Instance types with their sizes.
    instance_types: Vec<InstanceType>,
}

/// A parameter of an agent.
#[derive(Serialize, ToSchema)]
pub(crate) struct Parameter {
    /// Parameter name.
    id: &'static str,
    /// Parameter value.
    value: String,
}

/// Parameters of a cluster's agent.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterAddonParameters)]
pub(crate) struct AddonParameters {
    /// Cluster ID.
    id: String,
    /// Always `ClusterAddonParameters`.
    kind: &'static str,
    /// Path in this API.
    href: String,
    /// Parameters by ID.
    fleetshard_parameters: Vec<Parameter>,
}

impl EnterpriseCluster {
    pub(crate) fn new(kind: &Kind, cluster: &Cluster) -> Self {
        let id = name(cluster);
        let types = enterprise_type(kind).into_iter().map(InstanceType::from).collect();
        let access = format!("access_{}_via_private_network", kind.plural);
        Self {
            kind: "Cluster",
            href: format!("/api/{}/v1/clusters/{id}", kind.api),
            cluster_id: id.clone(),
            id,
            status: status(kind, cluster.status),
            cloud_provider: cluster.cloud_provider.clone(),
            region: cluster.region.clone(),
            multi_az: true,
            supported_instance_types: SupportedTypes { instance_types: types },
            capacity_information: capacity_fields(kind, cluster),
            fleetshard_parameters: None,
            named_by_kind: Map::from_iter([(access, json!(cluster.hosting.is_private))]),
        }
    }

    pub(crate) fn with_parameters(self, parameters: AddonParameters) -> Self {
        Self { fleetshard_parameters: Some(parameters.fleetshard_parameters), ..self }
    }
}

impl AddonParameters {
    pub(crate) fn new(kind: &Kind, cluster: &Cluster, origin: &str, secret: &str) -> Self {
        let id = name(cluster);
        let values = [
            ("sso-auth-server-url", format!("{origin}{REALM}")),
            ("sso-client-id", client_id(kind, cluster)),
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

fn name(cluster: &Cluster) -> String {
    cluster.foreign_id.clone().unwrap_or_else(|| cluster.id.to_string())
}

/// Status under the fleet managers' names.
fn status(kind: &Kind, status: Status) -> String {
    match status {
        Status::Accepted => "cluster_accepted".into(),
        Status::Provisioning => "cluster_provisioning".into(),
        Status::Provisioned => "cluster_provisioned".into(),
        // An unreachable agent is waited for as well.
        Status::WaitingForAgent | Status::Unreachable => kind.words.waiting.clone(),
        Status::Ready | Status::Failed | Status::Deprovisioning | Status::Cleanup => {
            status.as_str().into()
        }
    }
}

fn capacity_fields(kind: &Kind, cluster: &Cluster) -> Map<String, Value> {
    let unit =
        enterprise_type(kind).map(|instance_type| kind.unit(&instance_type.id)).unwrap_or_default();
    let capacity = cluster.capacity.get(&unit).copied().unwrap_or_default();
    let units = |amount: model::Quantity| json!(amount.milli() / 1000);
    let name = &kind.name;
    Map::from_iter([
        (
            format!("{name}_machine_pool_node_count"),
            json!(cluster.hosting.machines.unwrap_or_default()),
        ),
        (format!("maximum_{name}_streaming_units"), units(capacity.total)),
        (format!("remaining_{name}_streaming_units"), units(capacity.free())),
        (format!("consumed_{name}_streaming_units"), units(capacity.used)),
    ])
}
