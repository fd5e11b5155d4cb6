//! Reads pools from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::{Host, Pace, Pool, Template};
use crate::cluster::{NewNode, Provider, Settings};
use crate::kind::{Catalog, FileError, InstanceType};
use crate::{Invalid, Resources, name, yaml};

/// Maximum number of clusters of a pool.
const MAX_CLUSTERS: u32 = 10_000;
/// Maximum number of reserved instances of one type per cluster.
const MAX_RESERVED: u32 = 100;
/// Maximum delay: a week.
const MAX_SECONDS: u32 = 7 * 24 * 3600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pools: Vec<FilePool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePool {
    name: String,
    cloud_provider: String,
    region: String,
    #[serde(default)]
    hosts: Vec<FileHost>,
    cluster: FileCluster,
    #[serde(default)]
    at_least: u32,
    at_most: u32,
    #[serde(default)]
    limit: Resources,
    #[serde(default)]
    slack: Resources,
    largest: Option<Resources>,
    grow_after_waiting_seconds: Option<u32>,
    grow_after_seconds: Option<u32>,
    cool_down_seconds: Option<u32>,
    idle_for_seconds: Option<u32>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHost {
    kind: String,
    #[serde(rename = "type")]
    instance_type: String,
    #[serde(default)]
    reserved: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCluster {
    provider: Provider,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    capacity: Resources,
    #[serde(default)]
    nodes: Vec<FileNode>,
    #[serde(default)]
    foreign_agent: bool,
    #[serde(default)]
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    name: String,
    capacity: Resources,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Parses pools and checks them against the catalog. `file` is the file name for errors.
pub fn parse_for(file: &str, text: &str, catalog: &Catalog) -> Result<Vec<Pool>, FileError> {
    let read: File = yaml::read(file, text)?;
    read.pools(catalog).map_err(|invalid| yaml::file_error(file, text, &invalid))
}

impl File {
    fn pools(self, catalog: &Catalog) -> Result<Vec<Pool>, Invalid> {
        let mut names = BTreeSet::new();
        let numbered = self.pools.into_iter().enumerate();
        let pools = numbered.map(|(i, pool)| {
            let here = format!("pools[{i}]");
            if !names.insert(pool.name.clone()) {
                return Err(Invalid::new(format!("{here}.name"), "must be unique"));
            }
            pool.pool(catalog).map_err(|invalid| invalid.within(&here))
        });
        pools.collect()
    }
}

impl FilePool {
    fn pool(self, catalog: &Catalog) -> Result<Pool, Invalid> {
        name::dns_label("name", &self.name)?;
        self.check_numbers()?;
        let pace = self.pace()?;
        let FilePool { cloud_provider, region, hosts, cluster, largest, .. } = self;
        let template = cluster.template(cloud_provider, region)?;
        let (hosts, largest) = hosting(&template, &hosts, largest, catalog)?;
        let pool = Pool {
            name: self.name,
            hosts,
            template,
            at_least: self.at_least,
            at_most: self.at_most,
            limit: self.limit,
            slack: self.slack,
            largest,
            pace,
            dry_run: self.dry_run,
        };
        check_feasible(&pool)?;
        Ok(pool)
    }

    fn check_numbers(&self) -> Result<(), Invalid> {
        if !(1..=MAX_CLUSTERS).contains(&self.at_most) {
            return Err(Invalid::new("at_most", format!("must be from 1 to {MAX_CLUSTERS}")));
        }
        if self.at_least > self.at_most {
            let rule = format!("must not be more than at_most, which is {}", self.at_most);
            return Err(Invalid::new("at_least", rule));
        }
        for (field, vector) in [("limit", &self.limit), ("slack", &self.slack)] {
            vector.check(field)?;
        }
        Ok(())
    }

    fn pace(&self) -> Result<Pace, Invalid> {
        let default = Pace::default();
        let delay = |field: &str, set: Option<u32>, default: Duration| match set {
            None => Ok(default),
            Some(seconds) if seconds <= MAX_SECONDS => Ok(Duration::from_secs(seconds.into())),
            Some(_) => Err(Invalid::new(field, format!("must be at most {MAX_SECONDS} (a week)"))),
        };
        Ok(Pace {
            grow_after_waiting: delay(
                "grow_after_waiting_seconds",
                self.grow_after_waiting_seconds,
                default.grow_after_waiting,
            )?,
            grow_after: delay("grow_after_seconds", self.grow_after_seconds, default.grow_after)?,
            cool_down: delay("cool_down_seconds", self.cool_down_seconds, default.cool_down)?,
            idle_for: delay("idle_for_seconds", self.idle_for_seconds, default.idle_for)?,
        })
    }
}

impl FileCluster {
    fn template(self, cloud_provider: String, region: String) -> Result<Template, Invalid> {
        let nodes = self.nodes.into_iter().map(|node| NewNode {
            name: node.name,
            capacity: node.capacity,
            labels: node.labels,
        });
        let mut template = Template {
            provider: self.provider,
            cloud_provider,
            region,
            labels: self.labels,
            capacity: self.capacity,
            nodes: nodes.collect(),
            is_foreign: self.foreign_agent,
            settings: self.settings,
        };
        // Clusters of the pool must pass the same checks as those requested by users.
        let checked =
            template.cluster("pool".into()).check(["name", "capacity"]).map_err(within_cluster)?;
        // The capacity must be known before an agent reports it.
        crate::cluster::check_capacity("cluster.capacity", &checked.capacity)?;
        template.settings.check().map_err(|invalid| invalid.within("cluster.settings"))?;
        (template.cloud_provider, template.region) = (checked.cloud_provider, checked.region);
        template.capacity = checked.capacity;
        Ok(template)
    }
}

/// Prefixes fields with `cluster.`, except those that belong to the pool.
fn within_cluster(mut invalid: Invalid) -> Invalid {
    let of_pool = ["cloud_provider", "region"];
    for error in invalid.0.iter_mut().filter(|error| !of_pool.contains(&error.field.as_str())) {
        error.field = format!("cluster.{}", error.field);
    }
    invalid
}

/// The hosted instance types, and the requests that must always fit.
fn hosting(
    template: &Template,
    hosts: &[FileHost],
    largest: Option<Resources>,
    catalog: &Catalog,
) -> Result<(Vec<Host>, Vec<Resources>), Invalid> {
    let (mut found, mut sizes) = (Vec::new(), Vec::new());
    for (i, host) in hosts.iter().enumerate() {
        let here = |field: &str| format!("hosts[{i}].{field}");
        let is_same =
            |other: &Host| other.kind == host.kind && other.instance_type == host.instance_type;
        if found.iter().any(is_same) {
            return Err(Invalid::new(here("type"), "must be unique"));
        }
        let kind = catalog.kind(&host.kind);
        let kind = kind.ok_or_else(|| Invalid::new(here("kind"), "unknown kind"))?;
        let own: &InstanceType = kind
            .instance_type(&host.instance_type)
            .ok_or_else(|| Invalid::new(here("type"), "the kind has no such instance type"))?;
        if host.reserved > MAX_RESERVED {
            return Err(Invalid::new(here("reserved"), format!("must be at most {MAX_RESERVED}")));
        }
        let request = |size: &crate::kind::Size| {
            template.request(kind, &own.id, size.capacity_consumed.into(), &size.resources)
        };
        found.push(Host {
            kind: host.kind.clone(),
            instance_type: host.instance_type.clone(),
            reserved: host.reserved,
            room: request(own.default_size()),
        });
        sizes.extend(own.sizes.last().map(request));
    }
    match largest {
        None => Ok((found, sizes)),
        Some(one) => {
            one.check("largest")?;
            Ok((found, if one.is_empty() { Vec::new() } else { vec![one] }))
        }
    }
}

/// Checks that new clusters can satisfy the settings; otherwise the pool would grow in vain.
fn check_feasible(pool: &Pool) -> Result<(), Invalid> {
    let none = BTreeMap::new();
    if let Some(one) = pool.largest.iter().find(|one| !pool.template.could_run(one, &none)) {
        let rule = format!("{one} must fit on one node of the cluster; use {{}} to disable");
        return Err(Invalid::new("largest", rule));
    }
    let all = pool.template.capacity.times(pool.at_most).unwrap_or_default();
    let missing = pool.slack.shortage(&all);
    if !missing.is_empty() {
        let rule = format!("exceeds the capacity of `at_most` clusters by {missing}");
        return Err(Invalid::new("slack", rule));
    }
    let mut reserved = Resources::default();
    for host in &pool.hosts {
        reserved.add(&host.room.times(host.reserved).unwrap_or_default());
    }
    let missing = reserved.shortage(&pool.template.capacity);
    if !missing.is_empty() {
        let rule = format!("reserved instances exceed the capacity of a cluster by {missing}");
        return Err(Invalid::new("hosts", rule));
    }
    Ok(())
}
