//! Pulls images through the engine.

use std::time::Duration;

use base::locks::named_lock;
use bollard::auth::DockerCredentials;
use bollard::models::ImageInspect;
use bollard::query_parameters::{CreateImageOptions, RemoveImageOptions};
use futures_util::StreamExt;
use model::credential::PullCredentials;
use model::deployment::{Pull, Reason};
use runtime::{Reference, message};
use sha2::{Digest as _, Sha256};

use super::Docker;
use super::fault::{innermost, is_missing};
use crate::Error;
use crate::reason::{not_pulled, not_started};

/// How long a pulled image counts as current: replicas start together.
const IMAGE_TTL: Duration = Duration::from_secs(10);

impl Docker {
    /// Ensures that the engine has an image, and returns its full name.
    ///
    /// Pulls it each time, since a tag may have moved, and since the engine's images are shared by
    /// all organizations: the registry decides who may have them. If it does not answer, uses an
    /// image of that name that the engine has.
    pub(super) async fn image(
        &self,
        name: &str,
        own: Option<&PullCredentials>,
    ) -> Result<String, Error> {
        let reference = runtime::reference(name).map_err(|error| not_started(error, name))?;
        let whole = reference.whole();
        // A pull with one organization's credentials says nothing about others.
        let account = own.map(|own| format!("{whole}\n{}\n{}", own.username, own.password));
        let account = account.map(|text| data_encoding::HEXLOWER.encode(&Sha256::digest(text)));
        let slot = named_lock(&self.images, account.as_deref().unwrap_or(&whole));
        let mut pulled_at = slot.lock().await;
        let before = self.inspect(&whole).await?;
        let is_fresh = pulled_at.is_some_and(|at| at.elapsed() < IMAGE_TTL);
        if before.is_some() && is_fresh {
            return Ok(whole);
        }
        match (self.pull(name, &reference, own).await, &before) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) if !is_denied(&error) => {
                tracing::warn!(image = name, %error, "image pull failed, using the stored image");
                return Ok(whole);
            }
            (Err(error), _) => return Err(error),
        }
        let Some(image) = self.inspect(&whole).await? else {
            let message = format!("{} did not store the image", self.engine.as_str());
            return Err(not_pulled(name, Pull::Other, message).into());
        };
        if let Err(why) = self.check(name, &image) {
            // Removed, unless the engine had it before.
            if before.is_none() {
                let options = RemoveImageOptions::default();
                let _ = self.api.remove_image(&whole, Some(options), None).await;
            }
            return Err(why);
        }
        *pulled_at = Some(base::monotonic());
        Ok(whole)
    }

    pub(super) async fn inspect(&self, name: &str) -> Result<Option<ImageInspect>, Error> {
        match self.api.inspect_image(name).await {
            Ok(image) => Ok(Some(image)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("failed to inspect the image", &error)),
        }
    }

    async fn pull(
        &self,
        name: &str,
        reference: &Reference,
        own: Option<&PullCredentials>,
    ) -> Result<(), Error> {
        let timeout = self.options.pull_timeout;
        match tokio::time::timeout(timeout, self.pull_all(name, reference, own)).await {
            Ok(pulled) => pulled,
            Err(_) => {
                let message = format!("timed out after {}", message::duration(timeout));
                Err(not_pulled(name, Pull::TimedOut, message).into())
            }
        }
    }

    async fn pull_all(
        &self,
        name: &str,
        reference: &Reference,
        own: Option<&PullCredentials>,
    ) -> Result<(), Error> {
        let registry = reference.registry();
        // The engine connects on its own: this check can't pin the address.
        if let Err(refused) = self.options.registries.check_address(reference).await {
            return Err(not_pulled(name, Pull::Other, refused.to_string()).into());
        }
        let options =
            CreateImageOptions { from_image: Some(reference.whole()), ..Default::default() };
        let credentials = self.credentials(reference, own);
        let mut progress = self.api.create_image(Some(options), None, credentials).boxed();
        loop {
            match tokio::time::timeout(self.options.read_timeout, progress.next()).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => {
                    return Err(self.not_pulled(name, registry, innermost(&error)).into());
                }
                Ok(None) => return Ok(()),
                Err(_) => {
                    let message = format!("registry {registry} did not respond in time");
                    return Err(not_pulled(name, Pull::TimedOut, message).into());
                }
            }
        }
    }

    /// The organization's own credentials, or the platform's.
    fn credentials(
        &self,
        image: &Reference,
        own: Option<&PullCredentials>,
    ) -> Option<DockerCredentials> {
        let (username, password) = match own {
            Some(own) => (&own.username, &own.password),
            None => {
                let platform = self.options.registries.credentials_for(image)?;
                (&platform.username, &platform.password)
            }
        };
        Some(DockerCredentials {
            username: Some(username.clone()),
            password: Some(password.clone()),
            serveraddress: Some(image.registry().to_owned()),
            ..DockerCredentials::default()
        })
    }

    /// Checks platform and size of an image.
    fn check(&self, name: &str, image: &ImageInspect) -> Result<(), Error> {
        let os = image.os.as_deref().unwrap_or("linux");
        let architecture = image.architecture.as_deref().unwrap_or_default();
        let ours = self.architecture.as_str();
        let fits = architecture.is_empty() || ours.is_empty() || architecture == ours;
        if os != "linux" || !fits {
            let message = format!("image is for {os}/{architecture}, this host is linux/{ours}");
            return Err(not_pulled(name, Pull::NoMatchingPlatform, message).into());
        }
        let size = image.size.unwrap_or(0);
        let max = i64::try_from(self.options.max_image_bytes).unwrap_or(i64::MAX);
        if size > max {
            let message =
                format!("image exceeds the maximum image size of {}", message::bytes(max));
            return Err(not_pulled(name, Pull::TooLarge, message).into());
        }
        Ok(())
    }
}

/// Whether the registry does not give the image to this account.
fn is_denied(error: &Error) -> bool {
    matches!(
        error,
        Error::Replica(Reason::ImagePullFailed { cause: Pull::Unauthorized | Pull::NotFound, .. })
    )
}
