//! Pools as they are written in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::{Host, Pace, Pool, Template};
use crate::cluster::{NewNode, Provider, Settings};
use crate::kind::{Catalog, InstanceType, Refused};
use crate::{Invalid, Resources, name, yaml};

/// How many clusters one pool may have.
const MOST_CLUSTERS: u32 = 10_000;
/// How many reserved instances of one type a cluster may hold.
const MOST_RESERVED: u32 = 100;
/// The longest time that can be set: a week.
const LONGEST_SECONDS: u32 = 7 * 24 * 3600;

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

/// Reads pools for these kinds. `file` is what errors call the text.
pub fn parse_for(file: &str, text: &str, catalog: &Catalog) -> Result<Vec<Pool>, Refused> {
    let read: File = yaml::read(file, text)?;
    read.pools(catalog).map_err(|invalid| yaml::refuse(file, text, &invalid))
}

impl File {
    fn pools(self, catalog: &Catalog) -> Result<Vec<Pool>, Invalid> {
        let mut names = BTreeSet::new();
        let numbered = self.pools.into_iter().enumerate();
        let pools = numbered.map(|(i, pool)| {
            let here = format!("pools[{i}]");
            if !names.insert(pool.name.clone()) {
                return Err(Invalid::new(format!("{here}.name"), "is there twice"));
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
        check_room(&pool)?;
        Ok(pool)
    }

    fn check_numbers(&self) -> Result<(), Invalid> {
        if !(1..=MOST_CLUSTERS).contains(&self.at_most) {
            return Err(Invalid::new("at_most", format!("must be from 1 to {MOST_CLUSTERS}")));
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
        let usual = Pace::default();
        let of = |field: &str, set: Option<u32>, usual: Duration| match set {
            None => Ok(usual),
            Some(seconds) if seconds <= LONGEST_SECONDS => Ok(Duration::from_secs(seconds.into())),
            Some(_) => Err(Invalid::new(field, format!("at most {LONGEST_SECONDS}, a week"))),
        };
        Ok(Pace {
            grow_after_waiting: of(
                "grow_after_waiting_seconds",
                self.grow_after_waiting_seconds,
                usual.grow_after_waiting,
            )?,
            grow_after: of("grow_after_seconds", self.grow_after_seconds, usual.grow_after)?,
            cool_down: of("cool_down_seconds", self.cool_down_seconds, usual.cool_down)?,
            idle_for: of("idle_for_seconds", self.idle_for_seconds, usual.idle_for)?,
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
        // What every cluster of the pool will be must be one that could be asked for by hand.
        let checked =
            template.cluster("pool".into()).check(["name", "capacity"]).map_err(inside)?;
        // An agent says by itself what its machines have; here it must be known before.
        crate::cluster::total("cluster.capacity", &checked.capacity)?;
        template.settings.check().map_err(|invalid| invalid.within("cluster.settings"))?;
        (template.cloud_provider, template.region) = (checked.cloud_provider, checked.region);
        template.capacity = checked.capacity;
        Ok(template)
    }
}

/// Where the place stands beside the cluster, and all else in it.
fn inside(mut invalid: Invalid) -> Invalid {
    let places = ["cloud_provider", "region"];
    for error in invalid.0.iter_mut().filter(|error| !places.contains(&error.field.as_str())) {
        error.field = format!("cluster.{}", error.field);
    }
    invalid
}

/// Which instances the clusters are for, and what must always fit.
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
            return Err(Invalid::new(here("type"), "is there twice"));
        }
        let kind = catalog.kind(&host.kind);
        let kind = kind.ok_or_else(|| Invalid::new(here("kind"), "there is no such kind"))?;
        let own: &InstanceType = kind
            .type_of(&host.instance_type)
            .ok_or_else(|| Invalid::new(here("type"), "the kind has no such instance type"))?;
        if host.reserved > MOST_RESERVED {
            return Err(Invalid::new(here("reserved"), format!("at most {MOST_RESERVED}")));
        }
        let of = |size: &crate::kind::Size| {
            template.request(kind, &own.id, size.capacity_consumed.into(), &size.resources)
        };
        found.push(Host {
            kind: host.kind.clone(),
            instance_type: host.instance_type.clone(),
            reserved: host.reserved,
            room: of(own.default_size()),
        });
        sizes.extend(own.sizes.last().map(of));
    }
    match largest {
        None => Ok((found, sizes)),
        Some(one) => {
            one.check("largest")?;
            Ok((found, if one.is_empty() { Vec::new() } else { vec![one] }))
        }
    }
}

/// Can what is asked for be had from clusters like these at all? Else the pool would grow in vain.
fn check_room(pool: &Pool) -> Result<(), Invalid> {
    let none = BTreeMap::new();
    if let Some(one) = pool.largest.iter().find(|one| !pool.template.could_run(one, &none)) {
        let rule = format!("{one} must fit on one node of the cluster; {{}} asks for nothing");
        return Err(Invalid::new("largest", rule));
    }
    let all = pool.template.capacity.times(pool.at_most).unwrap_or_default();
    let missing = pool.slack.shortage(&all);
    if !missing.is_empty() {
        let rule = format!("at_most clusters together have {missing} less than that");
        return Err(Invalid::new("slack", rule));
    }
    let mut held = Resources::default();
    for host in &pool.hosts {
        held.add(&host.room.times(host.reserved).unwrap_or_default());
    }
    let missing = held.shortage(&pool.template.capacity);
    if !missing.is_empty() {
        let rule = format!("what is reserved is {missing} more than a cluster has");
        return Err(Invalid::new("hosts", rule));
    }
    Ok(())
}
