//! Pools that tests let grow.

use model::Resources;
use model::scaling::{Pool, Template};

/// A pool of clusters on this machine with so much each, that does nothing but serve who waits.
pub fn pool<const N: usize>(name: &str, capacity: [(&str, i64); N], at_most: u32) -> Pool {
    let bare = Pool::retired(name);
    let template = Template {
        cloud_provider: "local".into(),
        region: "local".into(),
        capacity: Resources::from(capacity),
        ..bare.template
    };
    Pool { template, at_most, ..bare }
}
