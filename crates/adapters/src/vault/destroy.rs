//! Takes a secret away, if it is the resource's own.

use engine::port::{Fault, Task};

use super::mark::{Former, Issued, Mark};
use super::{Secrets, certificate, told};

impl Secrets {
    pub(super) async fn take_away(&self, task: &Task) -> Result<(), Fault> {
        let told = told(&task.with)?;
        let kv = self.kv(&told).await?;
        let Some(found) = kv.read().await? else { return Ok(()) };
        let Some(mark) = found.mark.as_ref().filter(|mark| mark.is_of(task)) else {
            // What was made has been replaced by somebody else's, so that it is gone.
            let at = kv.place.reference();
            task.log.say(format!("{at} is not of this resource, and is left alone."));
            return Ok(());
        };
        self.may_change(task, &kv.place, Some(&found))?;
        // Before the mark is gone, which alone knows of them.
        certificate::revoke(&self.session, &all_issued(mark), &task.log).await?;
        kv.remove().await?;
        task.log.say(format!("{} is deleted.", kv.place.reference()));
        Ok(())
    }
}

fn all_issued(mark: &Mark) -> Vec<Former> {
    let now = mark.certificate.as_ref().map(Issued::former);
    mark.former.iter().cloned().chain(now).collect()
}
