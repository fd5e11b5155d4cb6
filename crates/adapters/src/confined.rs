//! Confines an executor to places that belong to the organization of the environment.
//!
//! One identity of Paddock serves all organizations in an external system. Without a boundary, an
//! organization could name, adopt and destroy objects of another one or of the platform. A resource
//! that was applied before keeps its place; destroying and observing are never refused.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{Access, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value};

/// Replaced by the organization's id in a template.
const PLACEHOLDER: &str = "{organization}";

/// A template of prefixes, one per organization: `{organization}/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixTemplate(String);

impl PrefixTemplate {
    /// Checks a template; an empty one is none. The error says what is allowed.
    pub fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        if text.is_empty() {
            return Ok(None);
        }
        let mut parts = text.trim_end_matches('/').split('/');
        let is_plain = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part
                    .replace(PLACEHOLDER, "")
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        // A longer prefix of the same beginning must not belong to another organization.
        if !text.ends_with('/') || !text.contains(PLACEHOLDER) || !parts.all(is_plain) {
            return Err("must be a path with {organization} that ends with /, such as \
                        {organization}/ or tenants/{organization}/; or empty for no prefix");
        }
        Ok(Some(Self(text.to_owned())))
    }

    fn render(&self, organization: &str) -> String {
        self.0.replace(PLACEHOLDER, organization)
    }
}

/// The fields of a resource that name its place, and the setting that confines it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The field with the path.
    pub path: &'static str,
    /// The field with the mount or datacenter.
    pub within: &'static str,
    /// The setting with the template.
    pub setting: &'static str,
}

/// An executor that uses only places below the organization's prefix.
pub struct Confined<O> {
    inner: O,
    place: Place,
    template: Option<PrefixTemplate>,
}

impl<O: Operation> Confined<O> {
    /// Confines an executor; without a template it is not confined.
    pub fn new(inner: O, place: Place, template: Option<PrefixTemplate>) -> Self {
        Self { inner, place, template }
    }

    fn check(&self, task: &Task) -> Result<(), Fault> {
        let Some(template) = &self.template else { return Ok(()) };
        let Place { path, within, setting } = self.place;
        // A missing field is reported by the executor.
        let Some(text) = task.with.get(path).and_then(Value::as_str) else { return Ok(()) };
        let is_same = |applied: &Map<String, Value>| {
            [path, within].iter().all(|field| applied.get(*field) == task.with.get(*field))
        };
        if task.applied.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let organization = task.organization.map(|id| id.to_string()).unwrap_or_default();
        let prefix = template.render(&organization);
        let is_below =
            text.starts_with(&prefix) && !text.split('/').any(|part| matches!(part, "." | ".."));
        if is_below && !organization.is_empty() {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "with.{path}: {text:?} is not below the prefix of the organization, {prefix} \
             ({setting}). Begin it with {{{{ environment.organization_id }}}}, or ask the platform \
             administrator"
        )))
    }
}

impl<O: Operation> Operation for Confined<O> {
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid> {
        self.inner.validate(with, files)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        match self.check(task) {
            Ok(()) => self.inner.plan(task),
            Err(fault) => port::ready(Err(fault)),
        }
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        match self.check(task) {
            Ok(()) => self.inner.apply(task),
            Err(fault) => port::ready(Err(fault)),
        }
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        self.inner.observe(task)
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        self.inner.destroy(task)
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        self.inner.prepare(task, agent)
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        self.inner.cancel(task)
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        self.inner.persist(task)
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        match self.check(task) {
            Ok(()) => self.inner.adopt(task, what),
            Err(fault) => port::ready(Err(fault)),
        }
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        self.inner.changed(task)
    }
}

#[cfg(test)]
mod tests {
    use model::{OrganizationId, ResourceId, Xid};
    use serde_json::json;

    use super::*;

    struct Nothing;

    impl Operation for Nothing {
        fn validate(&self, _: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
            Ok(())
        }

        fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
            port::ready(Ok(Progress::Done(Vec::new())))
        }

        fn apply<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
            port::ready(Ok(Progress::Done(Outcome::default())))
        }

        fn observe<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Observed>> {
            port::ready(Err(Fault::Refused("nothing to observe".into())))
        }

        fn destroy<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<()>> {
            port::ready(Ok(Progress::Done(())))
        }
    }

    const PLACE: Place = Place { path: "path", within: "mount", setting: "--vault-prefix" };

    fn id(number: u32) -> Xid {
        Xid::new(number, [0; 5], 0)
    }

    fn task(with: Value, applied: Option<Value>) -> Task {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        Task {
            organization: Some(OrganizationId(id(7))),
            with: object(with),
            applied: applied.map(object),
            ..Task::new(ResourceId(id(1)), "db")
        }
    }

    #[tokio::test]
    async fn places_outside_the_organization_are_refused() {
        let template = PrefixTemplate::parse("t/{organization}/").unwrap();
        let confined = Confined::new(Nothing, PLACE, template);
        let (own, other) = (id(7), id(8));
        for (path, is_allowed) in [
            (format!("t/{own}/db"), true),
            (format!("t/{own}/a/b"), true),
            (format!("t/{own}/../x"), false),
            (format!("t/{own}x/db"), false),
            (format!("t/{other}/db"), false),
            ("prod/db".to_owned(), false),
        ] {
            let task = task(json!({"path": path}), None);
            let planned = confined.plan(&task).await.is_ok();
            let applied = confined.apply(&task).await.is_ok();
            assert_eq!([planned, applied], [is_allowed; 2], "{path}");
            let adopted = confined.adopt(&task, &path).await.unwrap_err().to_string();
            assert_eq!(adopted.contains("--vault-prefix"), !is_allowed, "{path}: {adopted}");
            assert!(confined.destroy(&task).await.is_ok(), "{path}");
        }
    }

    #[tokio::test]
    async fn applied_resource_keeps_its_place_but_gets_no_other_one() {
        let template = PrefixTemplate::parse("{organization}/").unwrap();
        let confined = Confined::new(Nothing, PLACE, template);
        let before = json!({"path": "shop/db", "values": {}});
        for (with, is_allowed) in [
            (json!({"path": "shop/db", "values": {"a": "b"}}), true),
            (json!({"path": "shop/other"}), false),
            (json!({"path": "shop/db", "mount": "other"}), false),
        ] {
            let applied = confined.apply(&task(with.clone(), Some(before.clone()))).await;
            assert_eq!(applied.is_ok(), is_allowed, "{with}");
        }
        let open = Confined::new(Nothing, PLACE, None);
        assert!(open.apply(&task(json!({"path": "prod/db"}), None)).await.is_ok());
    }

    #[test]
    fn template_must_separate_organizations() {
        assert_eq!(PrefixTemplate::parse(""), Ok(None));
        for good in ["{organization}/", "tenants/{organization}/", "org-{organization}/x/"] {
            assert!(matches!(PrefixTemplate::parse(good), Ok(Some(_))), "{good}");
        }
        for bad in ["shop/", "{organization}", "/{organization}/", "a/../{organization}/", "{org}/"]
        {
            assert!(PrefixTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
