//! Cloud providers and regions that a kind can be had in.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A cloud provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cloud {
    /// Its name in the API.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Is it meant when none is named?
    #[serde(default, rename = "default")]
    pub is_default: bool,
    /// Its regions.
    pub regions: Vec<Region>,
}

/// A region of a cloud provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Its name in the API.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Is it meant when none is named?
    #[serde(default, rename = "default")]
    pub is_default: bool,
    /// The instance types that it has; none means that the region is closed.
    #[serde(default)]
    pub types: BTreeMap<String, RegionLimit>,
}

/// How much of one instance type a region takes, in units of capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionLimit {
    /// The most; without one there is no limit, with 0 nothing fits.
    #[serde(default)]
    pub limit: Option<u32>,
    /// How much should stay free, so that the next one need not wait.
    #[serde(default)]
    pub slack: Option<u32>,
}

impl Cloud {
    /// The region with this name.
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The region that is meant when none is named.
    pub fn default_region(&self) -> &Region {
        self.regions.iter().find(|region| region.is_default).expect("parsing saw one default")
    }
}

impl Region {
    /// Can anything be had here at all?
    pub fn is_enabled(&self) -> bool {
        !self.types.is_empty()
    }
}
