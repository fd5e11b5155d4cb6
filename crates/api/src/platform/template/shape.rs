//! Templates as the API shows them.

use std::collections::BTreeMap;

use model::template::{Action, Declared, Group, Parameter};
use model::{OrganizationId, TemplateId, Time};
use serde::Serialize;
use store::Read;
use store::template::Published;
use utoipa::ToSchema;

/// A template. What it says is left out in lists.
#[derive(Serialize, ToSchema)]
pub(crate) struct Template {
    /// Its id.
    #[schema(value_type = String)]
    pub(super) id: TemplateId,
    /// Its name.
    name: String,
    /// Its version.
    version: String,
    /// What it is called: `name@version`.
    reference: String,
    /// Who owns it; nobody when it is shared by all.
    #[schema(value_type = Option<String>)]
    organization_id: Option<OrganizationId>,
    /// Is it shared by all organizations?
    shared: bool,
    /// What it is for.
    description: String,
    /// What users wrote on it.
    tags: BTreeMap<String, String>,
    /// The commit that it came from.
    commit: Option<String>,
    /// Changes exactly when what it says does, or one of its files.
    hash: String,
    /// Since when nothing new is made from it.
    #[schema(value_type = Option<String>, format = DateTime)]
    deprecated_at: Option<Time>,
    /// Why, and what to use instead.
    deprecated_why: Option<String>,
    /// Who published it: `user:<id>`.
    created_by: String,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// What can be set, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    parameters: Option<BTreeMap<String, Parameter>>,
    /// Resources of other templates of the same environment that this one refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<String>>,
    /// Named parts of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    groups: Option<Vec<Group>>,
    /// Its resources, as it declares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    resources: Option<Vec<Declared>>,
    /// What runs after resources are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    actions: Option<Vec<Action>>,
    /// Where users of the environment begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_points: Option<Vec<String>>,
    /// What was published with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<File>>,
}

/// A file that was published with a template.
#[derive(Serialize, ToSchema)]
#[schema(as = TemplateFile)]
pub(crate) struct File {
    /// Where it is.
    path: String,
    /// How large it is.
    size_bytes: i64,
}

impl Template {
    /// Without what it says.
    pub(super) fn short(of: Published) -> Self {
        Self {
            id: of.id,
            reference: of.reference(),
            name: of.template.name,
            version: of.template.version,
            organization_id: of.organization_id,
            shared: of.organization_id.is_none(),
            description: of.template.description,
            tags: of.template.tags,
            commit: of.template.commit,
            hash: of.hash,
            deprecated_at: of.deprecated_at,
            deprecated_why: of.deprecated_why,
            created_by: of.created_by,
            created_at: of.created_at,
            parameters: None,
            needs: None,
            groups: None,
            resources: None,
            actions: None,
            entry_points: None,
            files: None,
        }
    }

    /// With what it says, and its files' names.
    pub(super) async fn long(read: &mut Read, mut of: Published) -> store::Result<Self> {
        let files = store::template::file_sizes(read, of.id).await?.into_iter();
        let says = &mut of.template;
        let long = Self {
            parameters: Some(std::mem::take(&mut says.parameters)),
            needs: Some(std::mem::take(&mut says.needs)),
            groups: Some(std::mem::take(&mut says.groups)),
            resources: Some(std::mem::take(&mut says.resources)),
            actions: Some(std::mem::take(&mut says.actions)),
            entry_points: Some(std::mem::take(&mut says.entry_points)),
            files: Some(files.map(|(path, size_bytes)| File { path, size_bytes }).collect()),
            ..Self::short(of)
        };
        Ok(long)
    }
}
