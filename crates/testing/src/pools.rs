//! Pools that tests let grow.

use std::collections::BTreeMap;

use model::Resources;
use model::cluster::{Provider, Settings};
use model::scaling::{Pace, Pool, Template};

/// A pool of clusters on this machine with so much each, that does nothing but serve who waits.
pub fn pool<const N: usize>(name: &str, capacity: [(&str, i64); N], at_most: u32) -> Pool {
    Pool {
        name: name.into(),
        hosts: Vec::new(),
        template: Template {
            provider: Provider::Local,
            cloud_provider: "local".into(),
            region: "local".into(),
            labels: BTreeMap::new(),
            capacity: Resources::from(capacity),
            nodes: Vec::new(),
            is_foreign: false,
            settings: Settings::None,
        },
        at_least: 0,
        at_most,
        limit: Resources::default(),
        slack: Resources::default(),
        largest: Vec::new(),
        pace: Pace::default(),
        dry_run: false,
    }
}
