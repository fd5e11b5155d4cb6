//! Which calls of the fleet managers' API family a kind has.

use serde::Deserialize;

use crate::search::Op;

/// The columns that can be searched.
pub const SEARCH_COLUMNS: [&str; 7] =
    ["region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type"];

/// The columns that lists can be ordered by, beside the kind's word for the host.
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

/// What a kind's API offers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a call that is there or not")]
pub struct Offers {
    /// Sizes can be chosen by `plan`, and instances show theirs.
    pub plans: bool,
    /// Billing models and marketplaces can be chosen.
    pub billing: bool,
    /// Instances can be promoted to another billing model.
    pub promotion: bool,
    /// Service accounts.
    pub service_accounts: bool,
    /// The list of instance types of a region.
    pub instance_types: bool,
    /// Organizations can register clusters of their own.
    pub enterprise_clusters: bool,
    /// Administrators can suspend and resume.
    pub suspension: bool,
    /// Metrics of an instance.
    pub metrics: bool,
    /// `GET /status`.
    pub status: bool,
    /// Regions show which sizes fit now; otherwise only their instance types.
    pub capacity: bool,
    /// Users can choose whether sessions are authenticated again.
    pub reauthentication: bool,
    /// Who says whether an instance spans zones.
    pub multi_az: MultiAz,
    /// The columns that can be searched, out of [`SEARCH_COLUMNS`].
    pub search_columns: Vec<String>,
    /// The operators that can be searched with.
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

/// Who says whether an instance spans zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MultiAz {
    /// Its type.
    Forced,
    /// The request, which must say yes.
    Asked,
}
