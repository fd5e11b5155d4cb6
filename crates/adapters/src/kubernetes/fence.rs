//! Fencing of objects: a server whose lease was taken over changes nothing more.
//!
//! Every object carries the fencing token of the server that wrote it last. A server reads the object before
//! it writes, refuses if the token is newer than its own, and makes the write conditional on the version that
//! it read. The one gap is an object that does not exist yet: the next reconciliation overwrites it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Preconditions};
use port::Fault;
use serde_json::{Value, json};

use super::Target;
use super::names::FENCE;

impl Target<'_> {
    /// Adds the fencing token to an object, and the version of `found` that it replaces.
    pub(super) fn fenced(
        &self,
        mut object: Value,
        found: Option<&ObjectMeta>,
    ) -> Result<Value, Fault> {
        object["metadata"]["annotations"][FENCE] = json!(self.task.fence.to_string());
        if let Some(found) = found {
            self.check_fence(found)?;
            object["metadata"]["resourceVersion"] = json!(found.resource_version);
        }
        Ok(object)
    }

    /// Deletes exactly the object that was found.
    pub(super) fn fenced_delete(
        &self,
        params: DeleteParams,
        found: &ObjectMeta,
    ) -> Result<DeleteParams, Fault> {
        self.check_fence(found)?;
        let (resource_version, uid) = (found.resource_version.clone(), found.uid.clone());
        Ok(params.preconditions(Preconditions { resource_version, uid }))
    }

    fn check_fence(&self, found: &ObjectMeta) -> Result<(), Fault> {
        let newest = found.annotations.as_ref().and_then(|all| all.get(FENCE)?.parse::<i64>().ok());
        if newest.is_none_or(|newest| newest <= self.task.fence) {
            return Ok(());
        }
        Err(Fault::Unavailable(format!(
            "another Paddock server has taken over the Kubernetes of the cluster {}",
            self.task.name
        )))
    }
}
