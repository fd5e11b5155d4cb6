//! A subject in a worker's transaction: as it is now, and locked.

use model::event::Actor;
use store::{Db, Lifecycle, Tx};

use crate::Error;

/// A subject that nobody else changes until the transaction ends. Dropped, nothing was changed.
pub(crate) struct Held<T> {
    /// The transaction.
    pub(crate) tx: Tx,
    /// The subject as it is now.
    pub(crate) now: T,
}

impl<T: Lifecycle> Held<T> {
    /// Locks the subject that a worker has seen; none if it has moved on since, or is gone.
    pub(crate) async fn take(
        db: &Db,
        worker: &'static str,
        seen: &T,
    ) -> Result<Option<Self>, Error> {
        let mut tx = db.begin(Actor::Worker(worker)).await?;
        let now = existing(seen.retake(&mut tx).await)?;
        Ok(now.filter(|now| now.is_still(seen)).map(|now| Self { tx, now }))
    }

    /// Moves it to another status.
    pub(crate) async fn transition(
        &mut self,
        to: T::Status,
        reason: T::Reason,
    ) -> Result<(), Error> {
        Ok(store::transition(&mut self.tx, &mut self.now, to, reason).await?)
    }

    /// Changes why it is in its status.
    pub(crate) async fn explain(&mut self, reason: T::Reason) -> Result<(), Error> {
        Ok(store::explain(&mut self.tx, &mut self.now, reason).await?)
    }

    /// Makes it durable.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        Ok(self.tx.commit().await?)
    }
}

/// What was found; none for [`store::Error::NotFound`]. Other errors are passed on.
pub(crate) fn existing<T>(found: Result<T, store::Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
