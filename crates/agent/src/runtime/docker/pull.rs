//! Getting images through the engine.

use std::time::Duration;

use base::locks::one_of;
use bollard::auth::DockerCredentials;
use bollard::models::ImageInspect;
use bollard::query_parameters::{CreateImageOptions, RemoveImageOptions};
use futures_util::StreamExt;
use model::deployment::Pull;
use runtime::{Reference, message};

use super::Docker;
use super::fault::{innermost, is_missing};
use crate::Error;
use crate::reason::{not_pulled, not_started};

/// An image that was pulled so short a time ago is still the same: replicas start together.
const FRESH: Duration = Duration::from_secs(10);

impl Docker {
    /// Sees to it that the engine has an image; the name under which it has it.
    ///
    /// It is asked for each time, since a name may mean another image by now. If that fails and the
    /// engine has one of that name, that one will do.
    pub(super) async fn image(&self, name: &str) -> Result<String, Error> {
        let reference = runtime::reference(name).map_err(|error| not_started(error, name))?;
        let whole = reference.whole();
        let slot = one_of(&self.images, &whole);
        let mut pulled_at = slot.lock().await;
        let before = self.inspect(&whole).await?;
        // A digest can't mean anything else than it did.
        let is_fresh = pulled_at.is_some_and(|at| at.elapsed() < FRESH);
        if before.is_some() && (is_fresh || reference.digest().is_some()) {
            return Ok(whole);
        }
        match (self.pull(name, &reference).await, &before) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) => {
                tracing::warn!(image = name, %error, "using the image of before");
                return Ok(whole);
            }
            (Err(error), None) => return Err(error),
        }
        let Some(image) = self.inspect(&whole).await? else {
            let message = format!("{} has not kept it", self.engine.as_str());
            return Err(not_pulled(name, Pull::Other, message).into());
        };
        if let Err(why) = self.check(name, &image) {
            // Not ours to keep, unless someone had it already.
            if before.is_none() {
                let options = RemoveImageOptions::default();
                let _ = self.api.remove_image(&whole, Some(options), None).await;
            }
            return Err(why);
        }
        *pulled_at = Some(base::monotonic());
        Ok(whole)
    }

    async fn inspect(&self, name: &str) -> Result<Option<ImageInspect>, Error> {
        match self.api.inspect_image(name).await {
            Ok(image) => Ok(Some(image)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("does not say which images it has", &error)),
        }
    }

    async fn pull(&self, name: &str, reference: &Reference) -> Result<(), Error> {
        let timeout = self.options.pull_timeout;
        match tokio::time::timeout(timeout, self.pull_all(name, reference)).await {
            Ok(pulled) => pulled,
            Err(_) => {
                let message = format!("it did not arrive within {}", message::time(timeout));
                Err(not_pulled(name, Pull::TimedOut, message).into())
            }
        }
    }

    async fn pull_all(&self, name: &str, reference: &Reference) -> Result<(), Error> {
        let registry = reference.registry();
        let options =
            CreateImageOptions { from_image: Some(reference.whole()), ..Default::default() };
        let mut progress =
            self.api.create_image(Some(options), None, self.credentials(registry)).boxed();
        loop {
            match tokio::time::timeout(self.options.read_timeout, progress.next()).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => {
                    return Err(self.not_pulled(name, registry, innermost(&error)).into());
                }
                Ok(None) => return Ok(()),
                Err(_) => {
                    let message = format!("the registry {registry} did not answer in time");
                    return Err(not_pulled(name, Pull::TimedOut, message).into());
                }
            }
        }
    }

    fn credentials(&self, registry: &str) -> Option<DockerCredentials> {
        let known = self.options.registries.get(registry)?;
        Some(DockerCredentials {
            username: Some(known.username.clone()),
            password: Some(known.password.clone()),
            serveraddress: Some(registry.to_owned()),
            ..DockerCredentials::default()
        })
    }

    /// Does an image run here? The error says why not.
    fn check(&self, name: &str, image: &ImageInspect) -> Result<(), Error> {
        let os = image.os.as_deref().unwrap_or("linux");
        let architecture = image.architecture.as_deref().unwrap_or_default();
        let ours = self.architecture.as_str();
        let fits = architecture.is_empty() || ours.is_empty() || architecture == ours;
        if os != "linux" || !fits {
            let message =
                format!("it is for {os}/{architecture}, but this machine is linux/{ours}");
            return Err(not_pulled(name, Pull::NoMatchingPlatform, message).into());
        }
        let size = image.size.unwrap_or(0);
        let most = i64::try_from(self.options.max_image_bytes).unwrap_or(i64::MAX);
        if size > most {
            let message =
                format!("it is larger than the {} that an image may have", message::bytes(most));
            return Err(not_pulled(name, Pull::TooLarge, message).into());
        }
        Ok(())
    }
}
