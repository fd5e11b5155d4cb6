//! Storage of an organization: images in the store of this server's machine, and template files.
//!
//! Images are files of a machine, not rows: a lock of this process serialises what adds to them.

use std::sync::Arc;

use base::locks::named_lock;
use model::organization::quota::{Subject, Usage};
use model::{OrganizationId, Quantity};
use store::organization_quota;
use tokio::sync::OwnedMutexGuard;

use crate::{App, Problem};

/// Storage in use while nothing else adds to it.
pub(crate) struct Storage {
    organization: OrganizationId,
    usage: Usage,
    _guard: OwnedMutexGuard<()>,
}

impl Storage {
    /// Waits until nothing else adds to the organization's storage.
    pub(crate) async fn lock(app: &App, organization: OrganizationId) -> Result<Self, Problem> {
        let lock = named_lock(&app.storage, &organization.to_string());
        let guard = Arc::clone(&lock).lock_owned().await;
        Ok(Self { organization, usage: usage(app, organization).await?, _guard: guard })
    }

    /// Fails if so many bytes more exceed the quota.
    pub(crate) fn admit(&self, bytes: u64) -> Result<(), Problem> {
        admit(&self.usage, bytes)
    }

    /// Fails if what was added since exceeds the quota.
    pub(crate) async fn check_added(&self, app: &App) -> Result<(), Problem> {
        let now = usage(app, self.organization).await?;
        let added = now.used.minus(self.usage.used);
        match self.usage.refuse(added) {
            Some(exceeded) => Err(store::Error::QuotaExceeded(Box::new(exceeded)).into()),
            None => Ok(()),
        }
    }
}

/// Fails if so many bytes more exceed the quota.
pub(crate) fn admit(usage: &Usage, bytes: u64) -> Result<(), Problem> {
    match usage.refuse(quantity(bytes)) {
        Some(exceeded) => Err(store::Error::QuotaExceeded(Box::new(exceeded)).into()),
        None => Ok(()),
    }
}

/// Storage in use and its quota.
pub(crate) async fn usage(app: &App, organization: OrganizationId) -> Result<Usage, Problem> {
    let images = app.images.list(organization).await?;
    let loaded = images.iter().filter(|image| !image.is_builtin).map(|image| image.size_bytes);
    let mut read = app.db.read().await?;
    let (defaults, now) = (app.db.default_quotas(), app.db.now());
    let subject = Subject::Storage;
    let mut usage =
        organization_quota::usage_of(&mut read, organization, subject, &defaults, now).await?;
    usage.used = usage.used.plus(quantity(loaded.sum()));
    Ok(usage)
}

fn quantity(bytes: u64) -> Quantity {
    let milli = i64::try_from(bytes).ok().and_then(|bytes| bytes.checked_mul(1000));
    milli.map_or(Quantity::MAX, Quantity::from_milli)
}
