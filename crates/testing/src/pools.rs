//! Node pools for tests.

use model::Resources;
use model::scaling::{Pool, Template};

/// A pool of local clusters with this capacity each, which only serves pending workloads.
pub fn pool<const N: usize>(name: &str, capacity: [(&str, i64); N], at_most: u32) -> Pool {
    let retired = Pool::retired(name);
    let template = Template {
        cloud_provider: "local".into(),
        region: "local".into(),
        capacity: Resources::from(capacity),
        ..retired.template
    };
    Pool { template, at_most, ..retired }
}
