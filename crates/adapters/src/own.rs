//! Runs an executor with the organization's own credentials, if it has registered any.
//!
//! With its own credentials an organization reaches what these permit, so its tasks are not
//! confined to its prefix. Executors keep state between calls: each token has one executor, which
//! is reused.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use model::credential::TOKEN;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{Access, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::call::InvalidOptions;

/// The maximum number of executors that are kept.
const MAX_KEPT: usize = 256;

/// Creates the executor of a token.
pub type Create = Box<dyn Fn(&Secret) -> Result<Arc<dyn Operation>, InvalidOptions> + Send + Sync>;

/// An executor with the platform's credentials, or with the organization's own token.
pub struct Own<O> {
    platform: O,
    create: Create,
    kept: Mutex<HashMap<Vec<u8>, Arc<dyn Operation>>>,
}

impl<O: Operation> Own<O> {
    /// `platform` serves organizations without a token of their own.
    pub fn new(platform: O, create: Create) -> Self {
        Self { platform, create, kept: Mutex::default() }
    }

    /// The executor of the organization's own token, if it has one.
    fn own(&self, task: &Task) -> Result<Option<Arc<dyn Operation>>, Fault> {
        let Some(token) = task.credentials.get(TOKEN) else { return Ok(None) };
        let organization = task.organization.map(|id| id.to_string()).unwrap_or_default();
        let key = Sha256::digest(format!("{organization}\n{}", token.reveal())).to_vec();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key) {
            return Ok(Some(found.clone()));
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let new = (self.create)(token).map_err(|error| Fault::Refused(error.to_string()))?;
        kept.insert(key, new.clone());
        Ok(Some(new))
    }
}

/// Forwards a call to the executor of the task.
macro_rules! forward {
    ($self:ident, $task:ident, $call:ident ( $($argument:expr),* )) => {
        Box::pin(async move {
            match $self.own($task)? {
                Some(own) => own.$call($task $(, $argument)*).await,
                None => $self.platform.$call($task $(, $argument)*).await,
            }
        })
    };
}

impl<O: Operation> Operation for Own<O> {
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid> {
        self.platform.validate(with, files)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        forward!(self, task, plan())
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        forward!(self, task, apply())
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        forward!(self, task, observe())
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        forward!(self, task, destroy())
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        forward!(self, task, prepare(agent))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        forward!(self, task, cancel())
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        forward!(self, task, persist())
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        forward!(self, task, adopt(what))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match self.own(task) {
                Ok(Some(own)) => own.changed(task).await,
                _ => self.platform.changed(task).await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{OrganizationId, ResourceId, Xid};

    use super::*;

    /// An executor that returns its name.
    struct Named(String);

    impl Operation for Named {
        fn validate(&self, _: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
            Ok(())
        }

        fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
            port::ready(Ok(Progress::Done(Vec::new())))
        }

        fn apply<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
            port::ready(Ok(Progress::running(self.0.clone())))
        }

        fn observe<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Observed>> {
            port::ready(Ok(Progress::Done(Observed::default())))
        }

        fn destroy<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<()>> {
            port::ready(Ok(Progress::Done(())))
        }
    }

    fn task(organization: u32, token: Option<&str>) -> Task {
        let token = token.map(|token| (TOKEN.to_owned(), Secret::new(token)));
        Task {
            organization: Some(OrganizationId(Xid::new(organization, [0; 5], 0))),
            credentials: token.into_iter().collect(),
            ..Task::new(ResourceId(Xid::new(9, [0; 5], 0)), "db")
        }
    }

    #[tokio::test]
    async fn own_token_replaces_the_platforms_credentials() {
        let created = Arc::new(Mutex::new(0));
        let count = created.clone();
        let create: Create = Box::new(move |token| {
            *count.lock().unwrap() += 1;
            Ok(Arc::new(Named(token.reveal().to_owned())))
        });
        let own = Own::new(Named("platform".into()), create);
        for (organization, token, expected) in [
            (1, None, "platform"),
            (1, Some("a"), "a"),
            (1, Some("a"), "a"),
            (1, Some("b"), "b"),
            (2, Some("a"), "a"),
            (2, None, "platform"),
        ] {
            let Progress::Running { reason, .. } =
                own.apply(&task(organization, token)).await.unwrap()
            else {
                panic!("done")
            };
            assert_eq!(reason.to_string(), format!("{expected}."));
        }
        assert_eq!(*created.lock().unwrap(), 3, "one executor per organization and token");
    }
}
