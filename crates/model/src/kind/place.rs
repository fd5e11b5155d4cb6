//! Resolves the cloud and region of a request.

use super::{Cloud, Kind, Region};

/// Why a kind is not available at a location. Messages are shown to users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Unknown cloud provider.
    #[error("cloud provider \"{}\" is not supported; expected one of {known}", .name.escape_default())]
    UnknownCloud {
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// Unknown region.
    #[error("region \"{}\" is not supported; expected one of {known} for {cloud}", .name.escape_default())]
    UnknownRegion {
        /// The requested name.
        name: String,
        /// The cloud provider.
        cloud: String,
        /// The available names.
        known: String,
    },
    /// The region does not offer the instance type.
    #[error("{instance_type} instances are not supported in region {region} of {cloud}")]
    TypeNotOffered {
        /// The instance type.
        instance_type: String,
        /// The cloud provider.
        cloud: String,
        /// The region.
        region: String,
    },
}

impl Kind {
    /// The cloud and region with these names; an empty name means the default.
    pub fn location(&self, cloud: &str, region: &str) -> Result<(&Cloud, &Region), LocationError> {
        let found = if cloud.is_empty() { Some(self.default_cloud()) } else { self.cloud(cloud) };
        let cloud = found.ok_or_else(|| LocationError::UnknownCloud {
            name: cloud.to_owned(),
            known: list(self.clouds.iter().map(|cloud| &cloud.name)),
        })?;
        let found =
            if region.is_empty() { Some(cloud.default_region()) } else { cloud.region(region) };
        let region = found.ok_or_else(|| LocationError::UnknownRegion {
            name: region.to_owned(),
            cloud: cloud.name.clone(),
            known: list(cloud.regions.iter().map(|region| &region.name)),
        })?;
        Ok((cloud, region))
    }

    /// The cloud and region with these names, if they offer this instance type.
    pub fn location_for(
        &self,
        instance_type: &str,
        cloud: &str,
        region: &str,
    ) -> Result<(&Cloud, &Region), LocationError> {
        let (cloud, region) = self.location(cloud, region)?;
        if region.types.contains_key(instance_type) {
            return Ok((cloud, region));
        }
        Err(LocationError::TypeNotOffered {
            instance_type: instance_type.to_owned(),
            cloud: cloud.name.clone(),
            region: region.name.clone(),
        })
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}
