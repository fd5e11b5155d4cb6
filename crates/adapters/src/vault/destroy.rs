//! Deletes a resource's secrets, wherever an attempt created one.

use port::{Fault, Task};

use super::kv::{Found, Kv};
use super::mark::{Former, Issued, Mark};
use super::place::{self, At};
use super::{VaultSecrets, certificate};

impl VaultSecrets {
    pub(super) async fn destroy_all(&self, task: &Task) -> Result<(), Fault> {
        let places = Self::places(task);
        if let Some(at) = place::desired(&task.with).filter(|at| !places.contains(at)) {
            self.clear_unrecorded(task, &at).await?;
        }
        for at in places {
            let (kv, found) = self.find(&at).await?;
            self.clear_or_skip(task, &kv, found).await?;
        }
        Ok(())
    }

    /// Deletes what earlier attempts created in other places.
    pub(super) async fn clear_other_places(&self, task: &Task, at: &At) -> Result<(), Fault> {
        for other in Self::places(task).iter().filter(|other| *other != at) {
            let (kv, found) = self.find(other).await?;
            self.clear(task, &kv, found).await?;
        }
        Ok(())
    }

    /// Deletes what a first attempt may have created whose server crashed before it was recorded.
    /// Without permission to read, Paddock created nothing.
    async fn clear_unrecorded(&self, task: &Task, at: &At) -> Result<(), Fault> {
        match self.find(at).await {
            Ok((kv, found)) => self.clear_or_skip(task, &kv, found).await,
            Err(Fault::Refused(why)) => {
                // Without a valid token every read is refused, which says nothing about this place.
                self.session.authenticate().await?;
                task.log.append(format!("Nothing was created at {}/{}: {why}", at.mount, at.path));
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn find(&self, at: &At) -> Result<(Kv<'_>, Option<Found>), Fault> {
        let kv = self.kv(at).await?;
        let found = kv.read().await?;
        Ok((kv, found))
    }

    async fn clear_or_skip(
        &self,
        task: &Task,
        kv: &Kv<'_>,
        found: Option<Found>,
    ) -> Result<(), Fault> {
        if !self.clear(task, kv, found).await? {
            // Others replaced the secret, so the resource's is already deleted.
            let at = kv.place.reference();
            task.log.append(format!("Skipped {at}: it does not belong to this resource."));
        }
        Ok(())
    }

    /// Deletes the secret if it belongs to the resource. Returns whether the place is empty.
    async fn clear(&self, task: &Task, kv: &Kv<'_>, found: Option<Found>) -> Result<bool, Fault> {
        let Some(found) = found else { return Ok(true) };
        let Some(mark) = found.mark.as_ref().filter(|mark| mark.is_of(task)) else {
            return Ok(false);
        };
        self.check_owner(task, &kv.place, Some(&found))?;
        // Only the mark lists them, so they are revoked before it is deleted.
        certificate::revoke(&self.session, &all_issued(mark), &task.log).await?;
        kv.delete().await?;
        task.log.append(format!("Deleted {}.", kv.place.reference()));
        Ok(true)
    }
}

fn all_issued(mark: &Mark) -> Vec<Former> {
    let now = mark.certificate.as_ref().map(Issued::former);
    mark.former.iter().cloned().chain(now).collect()
}
