//! Validation of clouds, regions and their limits.

use super::super::{Cloud, Kind, Region, RegionLimit};
use super::{at_least_one, each, one_default, type_ids, unique};
use crate::{Invalid, name};

pub(super) fn clouds(kind: &Kind) -> Result<(), Invalid> {
    at_least_one("clouds", &kind.clouds)?;
    unique("clouds", "name", kind.clouds.iter().map(|cloud| cloud.name.as_str()))?;
    one_default("clouds", kind.clouds.iter().map(|cloud| cloud.is_default))?;
    each("clouds", &kind.clouds, |one| cloud(kind, one))
}

fn cloud(kind: &Kind, cloud: &Cloud) -> Result<(), Invalid> {
    name::dns_label("name", &cloud.name)?;
    name::line("display_name", &cloud.display_name, 128)?;
    at_least_one("regions", &cloud.regions)?;
    unique("regions", "name", cloud.regions.iter().map(|region| region.name.as_str()))?;
    one_default("regions", cloud.regions.iter().map(|region| region.is_default))?;
    each("regions", &cloud.regions, |one| region(kind, one))
}

fn region(kind: &Kind, region: &Region) -> Result<(), Invalid> {
    name::dns_label("name", &region.name)?;
    name::line("display_name", &region.display_name, 128)?;
    for (id, limit) in &region.types {
        let field = format!("types.{id}");
        if kind.instance_type(id).is_none() {
            let detail = format!("unknown instance type; expected one of {}", type_ids(kind));
            return Err(Invalid::new(field, detail));
        }
        slack(limit).map_err(|e| e.within(&field))?;
    }
    Ok(())
}

fn slack(limit: &RegionLimit) -> Result<(), Invalid> {
    match (limit.limit, limit.slack) {
        (Some(most), Some(slack)) if slack > most => {
            Err(Invalid::new("slack", format!("must not exceed the limit of {most}")))
        }
        _ => Ok(()),
    }
}
