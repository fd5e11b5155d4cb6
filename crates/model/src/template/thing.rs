//! Resources and actions seen as one: things that an executor carries out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Action, Declared, Executor, Template};
use crate::Invalid;

/// A resource or an action of a template.
#[derive(Debug, Clone)]
pub(super) struct Thing<'a> {
    pub(super) name: &'a str,
    pub(super) executor: Executor,
    pub(super) is_action: bool,
    pub(super) description: &'a str,
    pub(super) tags: Option<&'a BTreeMap<String, String>>,
    pub(super) with: Cow<'a, Map<String, Value>>,
    pub(super) count: Option<&'a Value>,
    pub(super) health: Option<&'a str>,
    /// Names of what must be there first.
    pub(super) after: &'a [String],
    /// Where it is in the template: `resources[1]`.
    pub(super) path: String,
    /// Where what its executor is told is, below that.
    with_field: &'static str,
}

impl<'a> Thing<'a> {
    fn resource(i: usize, one: &'a Declared) -> Self {
        Self {
            name: &one.name,
            executor: one.executor,
            is_action: false,
            description: &one.description,
            tags: Some(&one.tags),
            with: Cow::Borrowed(&one.with),
            count: one.count.as_ref(),
            health: one.status.as_ref().map(|status| status.http.as_str()),
            after: &one.depends_on,
            path: format!("resources[{i}]"),
            with_field: "with",
        }
    }

    fn action(i: usize, one: &'a Action) -> Result<Self, Invalid> {
        let path = format!("actions[{i}]");
        let (executor, with, with_field) = match (&one.app, &one.secret, &one.certificate) {
            (Some(app), None, None) => (Executor::Command, Cow::Borrowed(app), "app"),
            (None, Some(secret), None) => (Executor::VaultSecret, Cow::Borrowed(secret), "secret"),
            (None, None, Some(one)) => {
                (Executor::VaultSecret, Cow::Owned(certificate(one)), "certificate")
            }
            _ => return Err(Invalid::new(path, "must have one of app, secret and certificate")),
        };
        Ok(Self {
            name: &one.name,
            executor,
            is_action: true,
            description: "",
            tags: None,
            with,
            count: None,
            health: None,
            after: &one.after,
            path,
            with_field,
        })
    }

    /// Where what its executor is told is in the template.
    pub(super) fn with_path(&self) -> String {
        format!("{}.{}", self.path, self.with_field)
    }

    /// Where the names of what must be there first are.
    pub(super) fn after_path(&self) -> String {
        format!("{}.{}", self.path, if self.is_action { "after" } else { "depends_on" })
    }

    /// The same fault, with the place in the template: rules of executors say `with.…`.
    pub(super) fn placed(&self, mut invalid: Invalid) -> Invalid {
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

/// What an action says of a certificate, as the executor has it: all but where it is kept goes below
/// `certificate`.
fn certificate(one: &Map<String, Value>) -> Map<String, Value> {
    let mut with = Map::new();
    let mut inner = one.clone();
    for (from, to) in [("path", "path"), ("kv_mount", "mount")] {
        if let Some(value) = inner.remove(from) {
            with.insert(to.to_owned(), value);
        }
    }
    with.insert("certificate".to_owned(), Value::Object(inner));
    with
}

/// All resources, then all actions.
pub(super) fn all(template: &Template) -> Result<Vec<Thing<'_>>, Invalid> {
    let resources = template.resources.iter().enumerate().map(|(i, one)| Thing::resource(i, one));
    let mut things: Vec<Thing> = resources.collect();
    for (i, action) in template.actions.iter().enumerate() {
        things.push(Thing::action(i, action)?);
    }
    Ok(things)
}
