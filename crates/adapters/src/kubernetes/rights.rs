//! May we do all that has to be done there? Every right that is missing is named.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use port::Fault;

use super::Reached;
use super::fault::Doing;

/// How many are asked at once.
const AT_ONCE: usize = 8;

const RBAC: &str = "rbac.authorization.k8s.io";
/// What is applied, read and removed.
const ALL: &[&str] = &["create", "delete", "get", "patch"];
/// What is also cleared away when there are many of it.
const MANY: &[&str] = &["create", "delete", "get", "list", "patch"];

/// Group, resource, in our namespace or in the whole cluster, and what is done with it.
const NEEDED: [(&str, &str, bool, &[&str]); 13] = [
    ("", "namespaces", false, &["create", "delete", "get", "list", "patch"]),
    (RBAC, "clusterroles", false, ALL),
    (RBAC, "clusterrolebindings", false, ALL),
    (RBAC, "roles", true, ALL),
    (RBAC, "rolebindings", true, ALL),
    ("", "serviceaccounts", true, ALL),
    ("", "secrets", true, MANY),
    ("", "resourcequotas", true, ALL),
    ("", "limitranges", true, ALL),
    ("apps", "deployments", true, MANY),
    ("batch", "jobs", true, &["delete", "list"]),
    ("", "services", true, &["delete", "list"]),
    ("", "pods", true, &["list"]),
];

impl Reached<'_> {
    /// Asks for each right; an error names all that are missing.
    pub(super) async fn check_rights(&self) -> Result<(), Fault> {
        let mut all = Vec::new();
        for (group, resource, is_inside, verbs) in NEEDED {
            all.extend(verbs.iter().map(|verb| self.right(group, resource, is_inside, verb)));
        }
        let asked = stream::iter(all).map(|right| self.missing(right)).buffered(AT_ONCE);
        let missing: Vec<Option<String>> = asked.try_collect().await?;
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "the user of the kubeconfig has not all the rights that Paddock needs: it may not {}",
            missing.join("; may not ")
        )))
    }

    fn right(
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

    /// The right in words, if we don't have it.
    async fn missing(&self, right: ResourceAttributes) -> Result<Option<String>, Fault> {
        let words = words(&right);
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(right), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.doing(self, "say what we may do")?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok((!is_allowed).then_some(words))
    }
}

fn words(right: &ResourceAttributes) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (verb, resource, group) = (text(&right.verb), text(&right.resource), text(&right.group));
    let dot = if group.is_empty() { "" } else { "." };
    let at = match &right.namespace {
        Some(namespace) => format!(" in the namespace {namespace}"),
        None => String::new(),
    };
    format!("{verb} {resource}{dot}{group}{at}")
}
