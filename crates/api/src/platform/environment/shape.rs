//! Environments with their resources, as answers show them.

use model::environment;
use store::Read;
use wire::environment::{Environment, StatusEndpoint};

use crate::platform::resource::shape::part;

/// An environment with its resources and status endpoints.
pub(super) async fn long(
    read: &mut Read,
    of: environment::Environment,
) -> store::Result<Environment> {
    let all = store::resource::of(read, of.id).await?;
    let endpoints = engine::environment::status_endpoints(read, &of, &all).await?;
    let endpoints = endpoints.into_iter().map(|(resource, url)| StatusEndpoint { resource, url });
    let mut resources = Vec::new();
    for one in all {
        resources.push(part(read, one).await?);
    }
    Ok(Environment {
        status_endpoints: Some(endpoints.collect()),
        resources: Some(resources),
        ..of.into()
    })
}
