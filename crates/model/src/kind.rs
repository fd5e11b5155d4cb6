//! A kind of managed service, as data: what it is called, what it offers, what runs for it.
//!
//! A kind is one YAML file (`catalog/`); no code knows any kind by name. The model never reads
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

pub use crate::yaml::Refused;
pub use catalog::Catalog;
pub use cloud::{Cloud, Region, RegionLimit};
pub(crate) use host::route;
pub use instance_type::{BillingModel, InstanceType, Maturity, Size, Zones};
pub use limit::{Limit, LimitValue, Shown};
pub use offers::{MultiAz, ORDER_COLUMNS, Offers, SEARCH_COLUMNS};
pub use place::PlaceError;
pub use plan::PlanError;
pub(crate) use plan::halves;
pub use run::{Container, Filled, Ready, Run};
pub use template::{Sso, Values, fill};
pub use words::Words;

/// A kind of managed service.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Its name: `postgres`.
    pub name: String,
    /// The name of many, as in paths: `postgreses`.
    pub plural: String,
    /// Its API's path under `/api`: `postgreses_mgmt`.
    pub api: String,
    /// What its error codes begin with: `POSTGRESES-MGMT`.
    pub error_prefix: String,
    /// Its name for people.
    pub display_name: String,
    /// Names and numbers that differ between the APIs of kinds.
    pub words: Words,
    /// Which calls of the API family it has.
    pub offers: Offers,
    /// Its instance types, in the order in which quota is looked for.
    pub types: Vec<InstanceType>,
    /// The type that everybody may try without quota.
    pub trial: Option<String>,
    /// How many of the trial type one owner may have.
    pub max_trials: u32,
    /// Where it can be had.
    pub clouds: Vec<Cloud>,
    /// What can be run, oldest first; the last is what new instances get.
    pub versions: Vec<Version>,
    /// What an agent runs for an instance.
    pub run: Run,
    /// What an instance needs of foreign systems.
    pub needs: Needs,
    /// The priority that instances have in placement.
    pub priority: i64,
}

/// A version that Paddock's own agent can run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// The operator's version.
    pub operator: String,
    /// The service's version.
    pub version: String,
    /// The version of its protocol between its own parts, if it has such a thing.
    #[serde(default)]
    pub ibp: Option<String>,
}

/// What an instance needs of foreign systems.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Prefixes of its DNS names; the empty one is the host itself.
    #[serde(default = "only_the_host")]
    pub dns: Vec<String>,
    /// Does it need a client at the SSO server?
    #[serde(default)]
    pub sso: bool,
    /// Does it need a certificate?
    #[serde(default)]
    pub tls: bool,
    /// The domain that hosts are in, unless the settings name another.
    pub domain: String,
}

fn only_the_host() -> Vec<String> {
    vec![String::new()]
}

/// Reads a kind. `file` is what errors call the text.
pub fn parse(file: &str, text: &str) -> Result<Kind, Refused> {
    let read: file::File = crate::yaml::read(file, text)?;
    read.kind().map_err(|invalid| crate::yaml::refuse(file, text, &invalid))
}

impl Kind {
    /// The instance type with this id.
    pub fn type_of(&self, id: &str) -> Option<&InstanceType> {
        self.types.iter().find(|kind| kind.id == id)
    }

    /// The type that everybody may try.
    pub fn trial_type(&self) -> Option<&InstanceType> {
        self.type_of(self.trial.as_deref()?)
    }

    /// Is this the id of the trial type?
    pub fn is_trial(&self, instance_type: &str) -> bool {
        self.trial.as_deref() == Some(instance_type)
    }

    /// The cloud with this name.
    pub fn cloud(&self, name: &str) -> Option<&Cloud> {
        self.clouds.iter().find(|cloud| cloud.name == name)
    }

    /// The cloud that is meant when none is named.
    pub fn default_cloud(&self) -> &Cloud {
        self.clouds.iter().find(|cloud| cloud.is_default).expect("parsing saw one default")
    }

    /// The version that new instances get.
    pub fn default_version(&self) -> &Version {
        self.versions.last().expect("parsing saw at least one")
    }

    /// For how many days an instance is only suspended after its entitlement has ended. For what is
    /// not in the file any more it is as if nothing were said.
    pub fn grace_days(&self, instance_type: &str, billing_model: &str) -> u32 {
        let model = self.type_of(instance_type).and_then(|one| one.billing_model(billing_model));
        model.map_or_else(instance_type::a_week, |model| model.grace_days)
    }

    /// What foreign agents' capacity for this type is called among resources: `postgres.standard`.
    pub fn unit(&self, instance_type: &str) -> String {
        format!("{}.{instance_type}", self.name)
    }

    /// The columns that lists can be ordered by.
    pub fn order_columns(&self) -> Vec<&str> {
        ORDER_COLUMNS.into_iter().chain([self.words.host.as_str()]).collect()
    }
}

impl Version {
    /// Older or newer: operator first, then the service, then its protocol; numbers as numbers.
    pub fn compare(&self, other: &Version) -> Ordering {
        by_numbers(&self.operator, &other.operator)
            .then_with(|| by_numbers(&self.version, &other.version))
            .then_with(|| {
                let (a, b) = (self.ibp.as_deref(), other.ibp.as_deref());
                by_numbers(a.unwrap_or_default(), b.unwrap_or_default())
            })
    }
}

/// Compares two texts so that runs of digits count as numbers: 3.9 is before 3.10.
pub fn by_numbers(a: &str, b: &str) -> Ordering {
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
