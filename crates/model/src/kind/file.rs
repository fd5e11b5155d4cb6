//! The file format of a kind, converted to a [`Kind`] after validation.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::limit::Measure;
use super::{
    BillingModel, Cloud, InstanceType, Kind, Limit, Maturity, Needs, Offers, Run, Shown, Size,
    Version, WireNames, Zones,
};
use crate::{Invalid, Resources};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: String,
    plural: Option<String>,
    api: Option<String>,
    error_prefix: Option<String>,
    display_name: String,
    #[serde(default)]
    words: FileWords,
    #[serde(default)]
    offers: Offers,
    #[serde(default)]
    limits: Vec<FileLimit>,
    types: Vec<FileType>,
    trial: Option<String>,
    #[serde(default = "one")]
    max_trials: u32,
    clouds: Vec<Cloud>,
    versions: Vec<Version>,
    run: Run,
    needs: Needs,
    #[serde(default)]
    priority: i64,
}

/// Overrides of names that are otherwise derived from the kind's name.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileWords {
    object: Option<String>,
    list: Option<String>,
    admin_list: Option<String>,
    host: Option<String>,
    host_port: Option<u16>,
    agent_object: Option<String>,
    agent_list: Option<String>,
    agent_domain: Option<String>,
    agent_host: Option<String>,
    operator: Option<String>,
    version: Option<String>,
    ibp: Option<String>,
    waiting: Option<String>,
    admin_role: Option<String>,
    name_max: Option<usize>,
}

/// A limit without its value, which each size sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLimit {
    name: String,
    measure: Measure,
    agent: Option<String>,
    #[serde(default)]
    shown: Shown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileType {
    id: String,
    display_name: String,
    #[serde(default)]
    multi_az: bool,
    billing_models: Vec<BillingModel>,
    sizes: Vec<FileSize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSize {
    id: String,
    display_name: Option<String>,
    resources: Resources,
    #[serde(default = "one")]
    capacity_consumed: u32,
    #[serde(default = "one")]
    quota_consumed: u32,
    lifespan_seconds: Option<u32>,
    #[serde(default)]
    maturity: Maturity,
    zones: Option<Vec<Zones>>,
    // Scalars are read as strings; the limit's measure determines their type.
    #[serde(default)]
    limits: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

impl File {
    /// Converts and validates. Errors name the field by its path in the file.
    pub(super) fn into_kind(self) -> Result<Kind, Invalid> {
        let plural = self.plural.unwrap_or_else(|| format!("{}s", self.name));
        let api = self.api.unwrap_or_else(|| format!("{}_mgmt", plural.replace('-', "_")));
        let prefix = self.error_prefix.unwrap_or_else(|| api.to_uppercase().replace('_', "-"));
        check_limits(&self.limits)?;
        let kind = Kind {
            words: self.words.or(WireNames::defaults(&self.name)),
            types: map_list("types", self.types, |kind| kind.instance_type(&self.limits))?,
            name: self.name,
            plural,
            api,
            error_prefix: prefix,
            display_name: self.display_name,
            offers: self.offers,
            trial: self.trial,
            max_trials: self.max_trials,
            clouds: self.clouds,
            versions: self.versions,
            run: self.run,
            needs: self.needs,
            priority: self.priority,
        };
        super::check::kind(&kind)?;
        Ok(kind)
    }
}

/// Maps a list; errors contain the position of the entry.
fn map_list<A, B>(
    list: &str,
    items: Vec<A>,
    map: impl Fn(A) -> Result<B, Invalid>,
) -> Result<Vec<B>, Invalid> {
    let numbered = items.into_iter().enumerate();
    numbered.map(|(i, item)| map(item).map_err(|e| e.within(&format!("{list}[{i}]")))).collect()
}

impl FileWords {
    fn or(self, words: WireNames) -> WireNames {
        WireNames {
            object: self.object.unwrap_or(words.object),
            list: self.list.unwrap_or(words.list),
            admin_list: self.admin_list.unwrap_or(words.admin_list),
            host: self.host.unwrap_or(words.host),
            host_port: self.host_port.or(words.host_port),
            agent_object: self.agent_object.unwrap_or(words.agent_object),
            agent_list: self.agent_list.unwrap_or(words.agent_list),
            agent_domain: self.agent_domain.unwrap_or(words.agent_domain),
            agent_host: self.agent_host.unwrap_or(words.agent_host),
            operator: self.operator.unwrap_or(words.operator),
            version: self.version.unwrap_or(words.version),
            ibp: self.ibp.or(words.ibp),
            waiting: self.waiting.unwrap_or(words.waiting),
            admin_role: self.admin_role.unwrap_or(words.admin_role),
            name_max: self.name_max.unwrap_or(words.name_max),
        }
    }
}

impl FileType {
    fn instance_type(self, limits: &[FileLimit]) -> Result<InstanceType, Invalid> {
        let zones = if self.multi_az { Zones::Multi } else { Zones::Single };
        Ok(InstanceType {
            sizes: map_list("sizes", self.sizes, |size| size.size(zones, limits))?,
            id: self.id,
            display_name: self.display_name,
            multi_az: self.multi_az,
            billing_models: self.billing_models,
        })
    }
}

impl FileSize {
    fn size(self, zones: Zones, limits: &[FileLimit]) -> Result<Size, Invalid> {
        Ok(Size {
            limits: self.limits(limits)?,
            display_name: self.display_name.unwrap_or_else(|| self.id.clone()),
            id: self.id,
            resources: self.resources,
            capacity_consumed: self.capacity_consumed,
            quota_consumed: self.quota_consumed,
            lifespan_seconds: self.lifespan_seconds,
            maturity: self.maturity,
            zones: self.zones.unwrap_or_else(|| vec![zones]),
        })
    }

    /// All limits of the kind with the values of this size.
    fn limits(&self, limits: &[FileLimit]) -> Result<Vec<Limit>, Invalid> {
        let is_known = |name: &String| limits.iter().any(|limit| &limit.name == name);
        if let Some(name) = self.limits.keys().find(|name| !is_known(name)) {
            let known: Vec<_> = limits.iter().map(|limit| limit.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let detail = format!("unknown limit; the kind has {known}");
            return Err(Invalid::new(format!("limits.{name}"), detail));
        }
        limits.iter().map(|limit| limit.with(self.limits.get(&limit.name))).collect()
    }
}

impl FileLimit {
    fn with(&self, value: Option<&String>) -> Result<Limit, Invalid> {
        let field = format!("limits.{}", self.name);
        let Some(text) = value else {
            return Err(Invalid::new(
                field,
                "is missing; each size must set every limit of the kind",
            ));
        };
        Ok(Limit {
            name: self.name.clone(),
            agent: self.agent.clone(),
            value: self.measure.value(text).map_err(|detail| Invalid::new(field, detail))?,
            shown: self.shown,
        })
    }
}

fn check_limits(limits: &[FileLimit]) -> Result<(), Invalid> {
    super::check::unique("limits", "name", limits.iter().map(|limit| limit.name.as_str()))?;
    for (i, limit) in limits.iter().enumerate() {
        super::check::identifier(&format!("limits[{i}].name"), &limit.name)?;
        if limit.shown == Shown::Bytes && limit.measure != Measure::Bytes {
            let detail = "bytes is only allowed for limits measured in bytes";
            return Err(Invalid::new(format!("limits[{i}].shown"), detail));
        }
    }
    Ok(())
}
