//! The calls of the fleet managers' API family that a kind supports.

use serde::Deserialize;

use crate::search::Op;

/// The searchable columns.
pub const SEARCH_COLUMNS: [&str; 7] =
    ["region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type"];

/// The columns by which lists can be sorted, in addition to the kind's host column.
pub const ORDER_COLUMNS: [&str; 15] = [
    "cloud_provider",
    "cluster_id",
    "created_at",
    "href",
    "id",
    "instance_type",
    "multi_az",
    "name",
    "organisation_id",
    "owner",
    "reauthentication_enabled",
    "region",
    "status",
    "updated_at",
    "version",
];

/// The features of a kind's API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent feature")]
pub struct Offers {
    /// Sizes can be chosen by `plan`, and instances show their size.
    pub plans: bool,
    /// Billing models and marketplaces can be chosen.
    pub billing: bool,
    /// Instances can be promoted to another billing model.
    pub promotion: bool,
    /// Service accounts.
    pub service_accounts: bool,
    /// The list of instance types of a region.
    pub instance_types: bool,
    /// Organizations can register their own clusters.
    pub enterprise_clusters: bool,
    /// Administrators can suspend and resume instances.
    pub suspension: bool,
    /// Metrics of an instance.
    pub metrics: bool,
    /// `GET /status`.
    pub status: bool,
    /// Regions show which sizes fit now, instead of only their instance types.
    pub capacity: bool,
    /// Users can toggle reauthentication of sessions.
    pub reauthentication: bool,
    /// How multi-zone instances are chosen.
    pub multi_az: MultiAz,
    /// The searchable columns, out of [`SEARCH_COLUMNS`].
    pub search_columns: Vec<String>,
    /// The supported search operators.
    pub search_operators: Vec<Op>,
}

impl Default for Offers {
    fn default() -> Self {
        Self {
            plans: true,
            billing: false,
            promotion: false,
            service_accounts: false,
            instance_types: true,
            enterprise_clusters: false,
            suspension: true,
            metrics: true,
            status: false,
            capacity: true,
            reauthentication: false,
            multi_az: MultiAz::Forced,
            search_columns: SEARCH_COLUMNS.map(str::to_owned).to_vec(),
            search_operators: Op::ALL.to_vec(),
        }
    }
}

/// How multi-zone instances are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MultiAz {
    /// Determined by the instance type.
    Forced,
    /// Requested explicitly; the request must say yes.
    Asked,
}
