//! Checks that the kubeconfig's user has all permissions that Paddock needs, and names the missing
//! ones.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use port::Fault;

use super::Target;
use super::fault::Doing;

/// The number of concurrent access reviews.
const CONCURRENCY: usize = 8;

const RBAC: &str = "rbac.authorization.k8s.io";
/// Verbs for objects that are applied, read and deleted.
const ALL: &[&str] = &["create", "delete", "get", "patch"];
/// Verbs for objects that are also listed.
const MANY: &[&str] = &["create", "delete", "get", "list", "patch"];

/// Group, resource, whether it is namespaced, and verbs.
const NEEDED: [(&str, &str, bool, &[&str]); 14] = [
    ("", "namespaces", false, &["create", "delete", "get", "list", "patch"]),
    (RBAC, "clusterroles", false, ALL),
    (RBAC, "clusterrolebindings", false, ALL),
    (RBAC, "roles", true, ALL),
    (RBAC, "rolebindings", true, ALL),
    // In the namespaces of instances.
    (RBAC, "rolebindings", false, &["create", "get", "patch"]),
    ("", "serviceaccounts", true, ALL),
    ("", "secrets", true, MANY),
    ("", "resourcequotas", true, ALL),
    ("", "limitranges", true, ALL),
    ("apps", "deployments", true, MANY),
    ("batch", "jobs", true, &["delete", "list"]),
    ("", "services", true, &["delete", "list"]),
    ("", "pods", true, &["list"]),
];

impl Target<'_> {
    /// Reviews every permission; the error names all that are missing.
    pub(super) async fn check_permissions(&self) -> Result<(), Fault> {
        let mut all = Vec::new();
        for (group, resource, is_inside, verbs) in NEEDED {
            all.extend(verbs.iter().map(|verb| self.permission(group, resource, is_inside, verb)));
        }
        let reviews =
            stream::iter(all).map(|permission| self.review(permission)).buffered(CONCURRENCY);
        let missing: Vec<Option<String>> = reviews.try_collect().await?;
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "the kubeconfig's user lacks permissions. Grant it: {}",
            missing.join("; ")
        )))
    }

    fn permission(
        &self,
        group: &str,
        resource: &str,
        is_inside: bool,
        verb: &str,
    ) -> ResourceAttributes {
        ResourceAttributes {
            group: Some(group.into()),
            resource: Some(resource.into()),
            namespace: is_inside.then(|| self.settings.namespace.clone()),
            verb: Some(verb.into()),
            ..ResourceAttributes::default()
        }
    }

    /// The description of a permission, if it is missing.
    async fn review(&self, permission: ResourceAttributes) -> Result<Option<String>, Fault> {
        let description = describe(&permission);
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(permission),
            ..Default::default()
        };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.doing(self, "review permissions")?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok((!is_allowed).then_some(description))
    }
}

fn describe(permission: &ResourceAttributes) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (verb, resource, group) =
        (text(&permission.verb), text(&permission.resource), text(&permission.group));
    let dot = if group.is_empty() { "" } else { "." };
    let at = match &permission.namespace {
        Some(namespace) => format!(" in namespace {namespace}"),
        None => String::new(),
    };
    format!("{verb} {resource}{dot}{group}{at}")
}
