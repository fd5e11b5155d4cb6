//! Environments as the API shows them.

use std::collections::BTreeMap;

use model::environment::{self, OnDrift, Status};
use model::{EnvironmentId, OrganizationId, Time, UserId};
use serde::Serialize;
use serde_json::{Map, Value};
use store::Read;
use utoipa::ToSchema;

use crate::platform::resource::shape::Resource;

/// An environment. Its resources, and where they say how they are, are left out in lists.
#[derive(Serialize, ToSchema)]
pub(crate) struct Environment {
    /// Its id.
    #[schema(value_type = String)]
    pub(super) id: EnvironmentId,
    /// Who owns it.
    #[schema(value_type = String)]
    organization_id: OrganizationId,
    /// Its name, unique in its organization.
    name: String,
    /// What it is for.
    description: String,
    /// What users wrote on it.
    tags: BTreeMap<String, String>,
    /// The templates that it is made from, `name@version`.
    templates: Vec<String>,
    /// What was set, without defaults.
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
    /// What is done when a resource is not as it was made: `report` or `repair`.
    #[schema(value_type = String)]
    on_drift: OnDrift,
    /// Where it is on its way: `deploying`, `validating`, `deployed`, `failed`, `destroying`, `destroyed`.
    #[schema(value_type = String)]
    status: Status,
    /// The same as people say it.
    status_words: &'static str,
    /// Why it is there.
    status_reason: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    status_since: Time,
    /// How much of what is to be done is done, in percent.
    progress: i64,
    /// Where its users begin.
    entry_points: Vec<String>,
    /// Where its resources say whether they work.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_endpoints: Option<Vec<StatusEndpoint>>,
    /// Was it asked to stop what goes on?
    cancelling: bool,
    /// When it shall be destroyed; null if nothing is planned.
    #[schema(value_type = Option<String>, format = DateTime)]
    destroy_at: Option<Time>,
    /// Who asked for it.
    #[schema(value_type = String)]
    created_by: UserId,
    /// Counts the changes of what users set; also its ETag.
    generation: i64,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it was gone.
    #[schema(value_type = Option<String>, format = DateTime)]
    destroyed_at: Option<Time>,
    /// Its resources, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Resource>>,
}

/// Where a resource says whether it works.
#[derive(Serialize, ToSchema)]
pub(crate) struct StatusEndpoint {
    /// The resource's name.
    resource: String,
    /// The address that answers.
    url: String,
}

impl Environment {
    /// Without its resources.
    pub(super) fn short(of: environment::Environment) -> Self {
        Self {
            id: of.id,
            organization_id: of.organization_id,
            name: of.name,
            description: of.description,
            tags: of.tags,
            templates: of.templates,
            parameters: of.parameters,
            on_drift: of.on_drift,
            status: of.status,
            status_words: of.status.words(),
            status_reason: of.status_reason,
            status_since: of.status_since,
            progress: of.progress,
            entry_points: of.entry_points,
            status_endpoints: None,
            cancelling: of.is_cancelled,
            destroy_at: of.destroy_at,
            created_by: of.created_by,
            generation: of.generation,
            created_at: of.created_at,
            updated_at: of.updated_at,
            destroyed_at: of.destroyed_at,
            resources: None,
        }
    }

    /// With its resources.
    pub(super) async fn long(read: &mut Read, of: environment::Environment) -> store::Result<Self> {
        let all = store::resource::of(read, of.id).await?;
        let endpoints = engine::environment::status_endpoints(read, &of, &all).await?;
        let endpoints =
            endpoints.into_iter().map(|(resource, url)| StatusEndpoint { resource, url });
        let mut resources = Vec::new();
        for one in all {
            resources.push(Resource::part(read, one).await?);
        }
        Ok(Self {
            status_endpoints: Some(endpoints.collect()),
            resources: Some(resources),
            ..Self::short(of)
        })
    }
}
