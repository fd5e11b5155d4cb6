//! Kinds of managed services, as data: names, offerings, and the program to run.
//!
//! A kind is one YAML file (`catalog/`); no code depends on a kind's name. The model never reads
//! files: [`parse`] takes the text.

mod catalog;
mod check;
mod cloud;
mod file;
mod host;
mod instance_type;
mod limit;
mod offers;
mod place;
mod plan;
mod run;
pub mod template;
mod words;

use std::cmp::Ordering;

use serde::Deserialize;

pub use crate::yaml::FileError;
pub use catalog::Catalog;
pub use cloud::{Cloud, Region, RegionLimit};
pub(crate) use host::route;
pub use instance_type::{BillingModel, InstanceType, Maturity, Size, Zones};
pub use limit::{Limit, LimitValue, Shown};
pub use offers::{MultiAz, ORDER_COLUMNS, Offers, SEARCH_COLUMNS};
pub use place::LocationError;
pub use plan::PlanError;
pub(crate) use plan::halves;
pub use run::{Container, Ready, RenderedContainer, Run};
pub use template::{Sso, Values, fill};
pub use words::WireNames;

/// A kind of managed service.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// The name: `postgres`.
    pub name: String,
    /// The plural, used in paths: `postgreses`.
    pub plural: String,
    /// The path of the API under `/api`: `postgreses_mgmt`.
    pub api: String,
    /// The prefix of error codes: `POSTGRESES-MGMT`.
    pub error_prefix: String,
    /// The display name.
    pub display_name: String,
    /// Names and numbers of the kind's API.
    pub words: WireNames,
    /// The supported calls of the API family.
    pub offers: Offers,
    /// The instance types, in the order in which quota is tried.
    pub types: Vec<InstanceType>,
    /// The type available to everyone without quota.
    pub trial: Option<String>,
    /// The maximum number of trial instances per owner.
    pub max_trials: u32,
    /// The cloud providers and regions.
    pub clouds: Vec<Cloud>,
    /// The available versions, oldest first; new instances get the last.
    pub versions: Vec<Version>,
    /// The program of an instance.
    pub run: Run,
    /// The requirements on external systems.
    pub needs: Needs,
    /// The placement priority of instances.
    pub priority: i64,
}

/// A version that the Paddock agent can run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// The version of the operator.
    pub operator: String,
    /// The version of the service.
    pub version: String,
    /// The version of the inter-broker protocol, if the service has one.
    #[serde(default)]
    pub ibp: Option<String>,
}

/// The requirements of an instance on external systems.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Prefixes of the DNS records; the empty prefix is the host itself.
    #[serde(default = "host_only")]
    pub dns: Vec<String>,
    /// Is an SSO client required?
    #[serde(default)]
    pub sso: bool,
    /// Is a TLS certificate required?
    #[serde(default)]
    pub tls: bool,
    /// The domain of hosts, unless overridden by a setting.
    pub domain: String,
}

fn host_only() -> Vec<String> {
    vec![String::new()]
}

/// Parses and validates a kind. Errors refer to the text as `file`.
pub fn parse(file: &str, text: &str) -> Result<Kind, FileError> {
    let read: file::File = crate::yaml::read(file, text)?;
    read.into_kind().map_err(|invalid| crate::yaml::file_error(file, text, &invalid))
}

impl Kind {
    /// The instance type with this id.
    pub fn instance_type(&self, id: &str) -> Option<&InstanceType> {
        self.types.iter().find(|kind| kind.id == id)
    }

    /// The trial type.
    pub fn trial_type(&self) -> Option<&InstanceType> {
        self.instance_type(self.trial.as_deref()?)
    }

    /// Is this the id of the trial type?
    pub fn is_trial(&self, instance_type: &str) -> bool {
        self.trial.as_deref() == Some(instance_type)
    }

    /// The cloud with this name.
    pub fn cloud(&self, name: &str) -> Option<&Cloud> {
        self.clouds.iter().find(|cloud| cloud.name == name)
    }

    /// The default cloud.
    pub fn default_cloud(&self) -> &Cloud {
        self.clouds.iter().find(|cloud| cloud.is_default).expect("parsing ensures one default")
    }

    /// The version of new instances.
    pub fn default_version(&self) -> &Version {
        self.versions.last().expect("parsing ensures at least one")
    }

    /// The grace period in days: an instance is suspended, not deleted, for this long after its
    /// entitlement ends. Types and models that were removed from the file have the default.
    pub fn grace_days(&self, instance_type: &str, billing_model: &str) -> u32 {
        let model =
            self.instance_type(instance_type).and_then(|one| one.billing_model(billing_model));
        model.map_or_else(instance_type::default_grace_days, |model| model.grace_days)
    }

    /// The resource type of third-party agents' capacity for this instance type:
    /// `postgres.standard`.
    pub fn unit(&self, instance_type: &str) -> String {
        format!("{}.{instance_type}", self.name)
    }

    /// The columns by which lists can be sorted.
    pub fn order_columns(&self) -> Vec<&str> {
        ORDER_COLUMNS.into_iter().chain([self.words.host.as_str()]).collect()
    }
}

impl Version {
    /// Compares by operator, then service, then protocol; digits compare as numbers.
    pub fn compare(&self, other: &Version) -> Ordering {
        compare_numerically(&self.operator, &other.operator)
            .then_with(|| compare_numerically(&self.version, &other.version))
            .then_with(|| {
                let (a, b) = (self.ibp.as_deref(), other.ibp.as_deref());
                compare_numerically(a.unwrap_or_default(), b.unwrap_or_default())
            })
    }
}

/// Compares two strings with runs of digits as numbers: 3.9 is less than 3.10.
pub fn compare_numerically(a: &str, b: &str) -> Ordering {
    runs(a).cmp(&runs(b))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Number(u128),
    Text(String),
}

fn runs(text: &str) -> Vec<Piece> {
    let chars: Vec<char> = text.chars().collect();
    let runs = chars.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    runs.map(|run| {
        let run: String = run.iter().collect();
        run.parse().map_or_else(|_| Piece::Text(run), Piece::Number)
    })
    .collect()
}

#[cfg(test)]
mod tests;
