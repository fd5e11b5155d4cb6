//! A subject, locked in a worker's transaction.

use model::event::Actor;
use store::{Db, Lifecycle, Tx};

use crate::Error;

/// A locked subject. Dropping it rolls the transaction back.
pub(crate) struct Locked<T> {
    pub(crate) tx: Tx,
    /// The subject as it is stored now.
    pub(crate) now: T,
}

impl<T: Lifecycle> Locked<T> {
    /// Locks the subject that a worker has read; `None` if it changed since, or was deleted.
    pub(crate) async fn lock(
        db: &Db,
        worker: &'static str,
        subject: &T,
    ) -> Result<Option<Self>, Error> {
        let mut tx = db.begin(Actor::Worker(worker)).await?;
        let now = existing(subject.relock(&mut tx).await)?;
        Ok(now.filter(|now| now.is_unchanged(subject)).map(|now| Self { tx, now }))
    }

    /// Moves the subject to another status.
    pub(crate) async fn transition(
        &mut self,
        to: T::Status,
        reason: T::Reason,
    ) -> Result<(), Error> {
        Ok(store::transition(&mut self.tx, &mut self.now, to, reason).await?)
    }

    /// Changes the reason of the current status.
    pub(crate) async fn explain(&mut self, reason: T::Reason) -> Result<(), Error> {
        Ok(store::explain(&mut self.tx, &mut self.now, reason).await?)
    }

    /// Commits the transaction.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        Ok(self.tx.commit().await?)
    }
}

/// Maps [`store::Error::NotFound`] to `None`; other errors propagate.
pub(crate) fn existing<T>(found: Result<T, store::Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
