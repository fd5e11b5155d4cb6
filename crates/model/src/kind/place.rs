//! Where a request wants its instance.

use super::{Cloud, Kind, Region};

/// Why a kind can't be had somewhere. The sentences are for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// No such cloud provider.
    #[error("the cloud provider \"{}\" is not supported; supported are {known}", .name.escape_default())]
    UnknownCloud {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The cloud provider has no such region.
    #[error("the region \"{}\" is not supported; {cloud} has {known}", .name.escape_default())]
    UnknownRegion {
        /// What was asked for.
        name: String,
        /// The cloud provider.
        cloud: String,
        /// What there is.
        known: String,
    },
    /// The region does not have the instance type.
    #[error("{instance_type} instances are not supported in the region {region} of {cloud}")]
    TypeNotThere {
        /// The instance type.
        instance_type: String,
        /// The cloud provider.
        cloud: String,
        /// The region.
        region: String,
    },
}

impl Kind {
    /// The cloud and the region with these names; an empty name means the default.
    pub fn place(&self, cloud: &str, region: &str) -> Result<(&Cloud, &Region), PlaceError> {
        let found = if cloud.is_empty() { Some(self.default_cloud()) } else { self.cloud(cloud) };
        let cloud = found.ok_or_else(|| PlaceError::UnknownCloud {
            name: cloud.to_owned(),
            known: list(self.clouds.iter().map(|cloud| &cloud.name)),
        })?;
        let found =
            if region.is_empty() { Some(cloud.default_region()) } else { cloud.region(region) };
        let region = found.ok_or_else(|| PlaceError::UnknownRegion {
            name: region.to_owned(),
            cloud: cloud.name.clone(),
            known: list(cloud.regions.iter().map(|region| &region.name)),
        })?;
        Ok((cloud, region))
    }

    /// The same, where this instance type can be had.
    pub fn place_for(
        &self,
        instance_type: &str,
        cloud: &str,
        region: &str,
    ) -> Result<(&Cloud, &Region), PlaceError> {
        let (cloud, region) = self.place(cloud, region)?;
        if region.types.contains_key(instance_type) {
            return Ok((cloud, region));
        }
        Err(PlaceError::TypeNotThere {
            instance_type: instance_type.to_owned(),
            cloud: cloud.name.clone(),
            region: region.name.clone(),
        })
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}
