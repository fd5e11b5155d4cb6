//! Storage of an organization: images in the store of this server's machine, and template files.
//!
//! The quota is enforced in the database: what is about to be added is recorded there before it is
//! stored. Images are files of a machine, not rows: a lock of this process, which alone has that
//! store, serialises their changes.

use std::sync::Arc;

use base::locks::named_lock;
use model::event::Actor;
use model::organization::quota::Usage;
use model::{OrganizationId, Quantity};
use store::{Tx, organization_quota};
use tokio::sync::OwnedMutexGuard;

use crate::{App, Problem};

/// Images of an organization while nothing else changes them.
pub(crate) struct Storage<'a> {
    app: &'a App,
    organization: OrganizationId,
    actor: Actor,
    /// Their size when they were locked.
    images: Option<Quantity>,
    _guard: OwnedMutexGuard<()>,
}

impl<'a> Storage<'a> {
    /// Waits until nothing else changes the organization's images.
    pub(crate) async fn lock(
        app: &'a App,
        organization: OrganizationId,
        actor: Actor,
    ) -> Result<Self, Problem> {
        let lock = named_lock(&app.storage, &organization.to_string());
        let guard = Arc::clone(&lock).lock_owned().await;
        let images = images(app, organization).await?;
        Ok(Self { app, organization, actor, images, _guard: guard })
    }

    /// Reserves bytes for images that will be loaded, or fails if they exceed the quota.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<(), Problem> {
        let added = quantity(bytes);
        let all = self.images.unwrap_or_default().plus(added);
        self.record(all, Some(added)).await
    }

    /// Records the loaded images, or fails if what was added since the lock exceeds the quota.
    pub(crate) async fn settle(&self) -> Result<(), Problem> {
        let now = images(self.app, self.organization).await?.unwrap_or_default();
        let added = now.minus(self.images.unwrap_or_default());
        self.record(now, Some(added)).await
    }

    /// Records the images as they are now: after some were deleted or not loaded, and before files
    /// are counted with them.
    pub(crate) async fn refresh(&self) -> Result<(), Problem> {
        match images(self.app, self.organization).await? {
            Some(now) => self.record(now, None).await,
            None => Ok(()),
        }
    }

    async fn record(&self, all: Quantity, added: Option<Quantity>) -> Result<(), Problem> {
        let mut tx = self.app.db.begin(self.actor).await?;
        organization_quota::set_images(&mut tx, self.organization, all).await?;
        if let Some(added) = added {
            organization_quota::check_storage(&mut tx, self.organization, added).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Fails if the bytes of template files that a transaction adds exceed the quota.
    pub(crate) async fn check_files(&self, tx: &mut Tx, bytes: u64) -> Result<(), Problem> {
        let added = quantity(bytes);
        Ok(organization_quota::check_storage(tx, self.organization, added).await?)
    }
}

/// Fails if so many bytes more exceed the quota, before they are received.
pub(crate) async fn precheck(
    app: &App,
    organization: OrganizationId,
    bytes: u64,
) -> Result<(), Problem> {
    match usage(app, organization).await?.refuse(quantity(bytes)) {
        Some(exceeded) => Err(store::Error::QuotaExceeded(Box::new(exceeded)).into()),
        None => Ok(()),
    }
}

/// Storage in use and its quota.
pub(crate) async fn usage(app: &App, organization: OrganizationId) -> Result<Usage, Problem> {
    let images = images(app, organization).await?;
    let mut read = app.db.read().await?;
    let (defaults, now) = (app.db.default_quotas(), app.db.now());
    Ok(organization_quota::storage(&mut read, organization, images, &defaults, now).await?)
}

/// Size of the loaded images of an organization; none if another server has the image store.
async fn images(app: &App, organization: OrganizationId) -> Result<Option<Quantity>, Problem> {
    if app.images.check().is_err() {
        return Ok(None);
    }
    let images = app.images.list(organization).await?;
    let loaded = images.iter().filter(|image| !image.is_builtin).map(|image| image.size_bytes);
    Ok(Some(quantity(loaded.sum())))
}

fn quantity(bytes: u64) -> Quantity {
    let milli = i64::try_from(bytes).ok().and_then(|bytes| bytes.checked_mul(1000));
    milli.map_or(Quantity::MAX, Quantity::from_milli)
}
