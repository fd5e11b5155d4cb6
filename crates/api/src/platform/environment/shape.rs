//! Environment responses with resources.

use model::environment;
use store::Read;
use wire::environment::{Environment, StatusEndpoint};

use crate::platform::resource::shape::with_last_log;

/// Converts an environment with its resources and status endpoints.
pub(super) async fn with_resources(
    read: &mut Read,
    environment: environment::Environment,
) -> store::Result<Environment> {
    let all = store::resource::list_of_environment(read, environment.id).await?;
    let endpoints = engine::environment::status_endpoints(read, &environment, &all).await?;
    let endpoints = endpoints.into_iter().map(|(resource, url)| StatusEndpoint { resource, url });
    let mut resources = Vec::new();
    for resource in all {
        resources.push(with_last_log(read, resource).await?);
    }
    Ok(Environment {
        status_endpoints: Some(endpoints.collect()),
        resources: Some(resources),
        ..environment.into()
    })
}
