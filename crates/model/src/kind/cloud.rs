//! Cloud providers and regions of a kind.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A cloud provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cloud {
    /// The name in the API.
    pub name: String,
    /// The display name.
    pub display_name: String,
    /// Is it the default?
    #[serde(default, rename = "default")]
    pub is_default: bool,
    /// The regions.
    pub regions: Vec<Region>,
}

/// A region of a cloud provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The name in the API.
    pub name: String,
    /// The display name.
    pub display_name: String,
    /// Is it the default?
    #[serde(default, rename = "default")]
    pub is_default: bool,
    /// The available instance types; a region without any is disabled.
    #[serde(default)]
    pub types: BTreeMap<String, RegionLimit>,
}

/// The capacity of a region for one instance type, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionLimit {
    /// The maximum; unlimited if absent, and 0 disables the type.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The capacity to keep free, so that the next instance need not wait.
    #[serde(default)]
    pub slack: Option<u32>,
}

impl Cloud {
    /// The region with this name.
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The default region.
    pub fn default_region(&self) -> &Region {
        self.regions.iter().find(|region| region.is_default).expect("parsing ensures one default")
    }
}

impl Region {
    /// Does the region offer any instance type?
    pub fn is_enabled(&self) -> bool {
        !self.types.is_empty()
    }
}
