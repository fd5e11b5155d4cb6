//! Resource and action declarations in one common form.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Action, Executor, ResourceDeclaration, Template};
use crate::Invalid;

/// A resource or an action of a template.
#[derive(Debug, Clone)]
pub(super) struct Declaration<'a> {
    pub(super) name: &'a str,
    pub(super) executor: Executor,
    pub(super) is_action: bool,
    pub(super) description: &'a str,
    pub(super) tags: Option<&'a BTreeMap<String, String>>,
    pub(super) with: Cow<'a, Map<String, Value>>,
    pub(super) count: Option<&'a Value>,
    pub(super) health: Option<&'a str>,
    /// Names of its dependencies.
    pub(super) after: &'a [String],
    /// Path in the template: `resources[1]`.
    pub(super) path: String,
    /// Field with the configuration, below that path.
    with_field: &'static str,
}

impl<'a> Declaration<'a> {
    fn from_resource(i: usize, resource: &'a ResourceDeclaration) -> Self {
        Self {
            name: &resource.name,
            executor: resource.executor,
            is_action: false,
            description: &resource.description,
            tags: Some(&resource.tags),
            with: Cow::Borrowed(&resource.with),
            count: resource.count.as_ref(),
            health: resource.status.as_ref().map(|status| status.http.as_str()),
            after: &resource.depends_on,
            path: format!("resources[{i}]"),
            with_field: "with",
        }
    }

    fn from_action(i: usize, action: &'a Action) -> Result<Self, Invalid> {
        let path = format!("actions[{i}]");
        let (executor, with, with_field) = match (&action.app, &action.secret, &action.certificate)
        {
            (Some(app), None, None) => (Executor::Command, Cow::Borrowed(app), "app"),
            (None, Some(secret), None) => (Executor::VaultSecret, Cow::Borrowed(secret), "secret"),
            (None, None, Some(fields)) => {
                (Executor::VaultSecret, Cow::Owned(certificate(fields)), "certificate")
            }
            _ => {
                return Err(Invalid::new(
                    path,
                    "must have exactly one of app, secret and certificate",
                ));
            }
        };
        Ok(Self {
            name: &action.name,
            executor,
            is_action: true,
            description: "",
            tags: None,
            with,
            count: None,
            health: None,
            after: &action.after,
            path,
            with_field,
        })
    }

    /// The path of the configuration in the template.
    pub(super) fn with_path(&self) -> String {
        format!("{}.{}", self.path, self.with_field)
    }

    /// The path of the dependencies in the template.
    pub(super) fn after_path(&self) -> String {
        format!("{}.{}", self.path, if self.is_action { "after" } else { "depends_on" })
    }

    /// Translates the field names of an executor's checks (`with.…`) into paths in the template.
    pub(super) fn locate(&self, mut invalid: Invalid) -> Invalid {
        for error in &mut invalid.0 {
            let field = error.field.strip_prefix("with").unwrap_or(&error.field);
            let field = match self.with_field {
                "certificate" if field == ".mount" => ".kv_mount",
                "certificate" => field.strip_prefix(".certificate").unwrap_or(field),
                _ => field,
            };
            error.field = format!("{}{field}", self.with_path());
        }
        invalid
    }
}

/// The executor's configuration for a certificate action: all fields but the storage location move
/// below `certificate`.
fn certificate(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut with = Map::new();
    let mut inner = fields.clone();
    for (from, to) in [("path", "path"), ("kv_mount", "mount")] {
        if let Some(value) = inner.remove(from) {
            with.insert(to.to_owned(), value);
        }
    }
    with.insert("certificate".to_owned(), Value::Object(inner));
    with
}

/// All resources, then all actions.
pub(super) fn all(template: &Template) -> Result<Vec<Declaration<'_>>, Invalid> {
    let resources = template.resources.iter().enumerate();
    let mut declarations: Vec<Declaration> =
        resources.map(|(i, resource)| Declaration::from_resource(i, resource)).collect();
    for (i, action) in template.actions.iter().enumerate() {
        declarations.push(Declaration::from_action(i, action)?);
    }
    Ok(declarations)
}
