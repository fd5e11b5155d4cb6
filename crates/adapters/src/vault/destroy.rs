//! Takes a secret away, if it is the resource's own: wherever a try has begun one.

use port::{Fault, Task};

use super::kv::{Found, Kv};
use super::mark::{Former, Issued, Mark};
use super::place::{self, At};
use super::{Secrets, certificate};

impl Secrets {
    pub(super) async fn take_away(&self, task: &Task) -> Result<(), Fault> {
        let places = Self::places(task);
        if let Some(told) = place::told(&task.with).filter(|told| !places.contains(told)) {
            self.clear_if_seen(task, &told).await?;
        }
        for at in places {
            let (kv, found) = self.find(&at).await?;
            self.clear_or_leave(task, &kv, found).await?;
        }
        Ok(())
    }

    /// Takes away what tries before this one have begun elsewhere.
    pub(super) async fn clear_all_but(&self, task: &Task, at: &At) -> Result<(), Fault> {
        for other in Self::places(task).iter().filter(|other| *other != at) {
            let (kv, found) = self.find(other).await?;
            self.clear(task, &kv, found).await?;
        }
        Ok(())
    }

    /// Takes away what a first try may have made, whose server died before it could be noted. Where
    /// Paddock may not even look, it has made nothing.
    async fn clear_if_seen(&self, task: &Task, at: &At) -> Result<(), Fault> {
        match self.find(at).await {
            Ok((kv, found)) => self.clear_or_leave(task, &kv, found).await,
            Err(Fault::Refused(why)) => {
                // Who is not signed in may look nowhere, which says nothing of this place.
                self.session.sign_in().await?;
                task.log.say(format!("Nothing was made at {}/{}: {why}", at.mount, at.path));
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

    async fn clear_or_leave(
        &self,
        task: &Task,
        kv: &Kv<'_>,
        found: Option<Found>,
    ) -> Result<(), Fault> {
        if !self.clear(task, kv, found).await? {
            // What was made has been replaced by somebody else's, so that it is gone.
            let at = kv.place.reference();
            task.log.say(format!("{at} is not of this resource, and is left alone."));
        }
        Ok(())
    }

    /// Takes away what is the resource's own. Is nothing left there?
    async fn clear(&self, task: &Task, kv: &Kv<'_>, found: Option<Found>) -> Result<bool, Fault> {
        let Some(found) = found else { return Ok(true) };
        let Some(mark) = found.mark.as_ref().filter(|mark| mark.is_of(task)) else {
            return Ok(false);
        };
        self.may_change(task, &kv.place, Some(&found))?;
        // Before the mark is gone, which alone knows of them.
        certificate::revoke(&self.session, &all_issued(mark), &task.log).await?;
        kv.remove().await?;
        task.log.say(format!("{} is deleted.", kv.place.reference()));
        Ok(true)
    }
}

fn all_issued(mark: &Mark) -> Vec<Former> {
    let now = mark.certificate.as_ref().map(Issued::former);
    mark.former.iter().cloned().chain(now).collect()
}
