//! Health of environments: their entry points and the status endpoints of their resources respond.

use std::time::Duration;

use model::Time;
use model::environment::{Environment, Reason, Status};
use model::event::Actor;
use model::resource::{self, Resource};
use model::template::{Act, Context, Expanded, expand, fill_text};
use store::Scope;

use super::EnvironmentWorker;
use super::templates::{sources, templates};
use crate::{Error, Reconcile as _};

/// Interval of checks while an environment is not healthy.
const UNHEALTHY_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of checks while it is healthy.
const HEALTHY_INTERVAL: Duration = Duration::from_secs(30);
/// How long a new environment may take to become healthy.
const PATIENCE: Duration = Duration::from_mins(5);
/// Consecutive failures before an environment counts as unhealthy.
const MAX_FAILURES: u32 = 3;

/// An endpoint to check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    /// What it belongs to, for messages.
    of: String,
    url: String,
    /// Whether only 200 to 299 counts as healthy. An entry point may also require a login.
    is_strict: bool,
}

impl EnvironmentWorker {
    /// Checks health and records the result. Returns when to check again.
    pub(super) async fn check_health(&self, env: &Environment) -> Result<Option<Time>, Error> {
        let mut read = self.db.read().await?;
        let all = store::resource::list_of_environment(&mut read, env.id).await?;
        // A resource failed: responding endpoints don't make the environment healthy.
        if env.status == Status::Failed && all.iter().any(|resource| !is_applied(resource)) {
            return Ok(None);
        }
        let (entry_points, addresses) = self.addresses(&mut read, env, &all).await?;
        drop(read);
        let mut broken = None;
        for address in &addresses {
            if let Err(message) = self.probe_address(env, address).await {
                broken = Some(Reason::HealthCheckFailed { of: address.of.clone(), message });
                break;
            }
        }
        let now = self.db.now();
        let Some(reason) = broken else {
            self.count_failure(env.id, false);
            self.record_health(env, Status::Deployed, Reason::AsExpected, &entry_points).await?;
            return Ok((!addresses.is_empty()).then(|| now + HEALTHY_INTERVAL));
        };
        let is_late = env.status_since + PATIENCE <= now;
        if env.status == Status::Deployed && self.count_failure(env.id, true) >= MAX_FAILURES
            || env.status == Status::Validating && is_late
        {
            self.record_health(env, Status::Failed, reason, &entry_points).await?;
        } else if env.status == Status::Validating {
            self.explain(env, reason).await?;
        }
        Ok(Some(
            now + if env.status == Status::Failed { HEALTHY_INTERVAL } else { UNHEALTHY_INTERVAL },
        ))
    }

    async fn probe_address(&self, env: &Environment, address: &Address) -> Result<(), String> {
        let status = self.probe.get(env.organization_id, &address.url).await;
        let status = status.map_err(|fault| fault.to_string())?;
        let is_good = if address.is_strict { (200..300).contains(&status) } else { status < 500 };
        if is_good { Ok(()) } else { Err(format!("{} returned HTTP status {status}", address.url)) }
    }

    /// Returns the entry points for users, and all endpoints to check.
    async fn addresses(
        &self,
        read: &mut store::Read,
        env: &Environment,
        all: &[Resource],
    ) -> Result<(Vec<String>, Vec<Address>), Error> {
        let Some((texts, context)) = resolve(read, env, all).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let mut found: Vec<Address> = endpoints(all, &context)
            .map(|(of, url)| Address { of: of.to_owned(), url, is_strict: true })
            .collect();
        let entry_points: Vec<String> =
            texts.iter().filter_map(|text| fill_text(text, None, &context).ok()).collect();
        let urls = entry_points.iter().filter(|url| url.starts_with("http"));
        found.extend(urls.map(|url| Address {
            of: "the entry point".into(),
            url: url.clone(),
            is_strict: false,
        }));
        Ok((entry_points, found))
    }

    async fn record_health(
        &self,
        env: &Environment,
        to: Status,
        reason: Reason,
        entry_points: &[String],
    ) -> Result<(), Error> {
        let is_changed = env.status != to || env.entry_points != entry_points;
        if !is_changed {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::lock(&mut tx, Scope::All, env.id).await?;
        if now.status != env.status || now.generation != env.generation {
            return Ok(());
        }
        now.entry_points = entry_points.to_vec();
        now.progress = 100;
        if now.status == to {
            store::environment::save(&mut tx, &mut now, "updated").await?;
        } else {
            store::environment::transition(&mut tx, &mut now, to, reason).await?;
            // Starts periodic drift detection.
            super::wake_all(&mut tx, &now).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn explain(&self, env: &Environment, reason: Reason) -> Result<(), Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::lock(&mut tx, Scope::All, env.id).await?;
        if now.status == env.status {
            let progress = now.progress;
            store::environment::explain(&mut tx, &mut now, reason, progress).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// The status endpoints of resources, with the resources' names.
pub async fn status_endpoints(
    read: &mut store::Read,
    env: &Environment,
    all: &[Resource],
) -> store::Result<Vec<(String, String)>> {
    if all.iter().all(|resource| resource.node.health.is_none()) {
        return Ok(Vec::new());
    }
    let Some((_, context)) = resolve(read, env, all).await? else {
        return Ok(Vec::new());
    };
    Ok(endpoints(all, &context).map(|(name, url)| (name.to_owned(), url)).collect())
}

fn endpoints<'a>(
    all: &'a [Resource],
    context: &'a Context,
) -> impl Iterator<Item = (&'a str, String)> {
    all.iter().filter_map(|resource| {
        let text = resource.node.health.as_ref()?;
        // A referenced output may be missing for a while; the check then fails.
        let url = fill_text(text, Some(&resource.node), context).unwrap_or_else(|_| text.clone());
        Some((resource.node.name.as_str(), url))
    })
}

/// The entry points of an environment's templates, and the context for their expressions.
async fn resolve(
    read: &mut store::Read,
    env: &Environment,
    all: &[Resource],
) -> store::Result<Option<(Vec<String>, Context)>> {
    let templates = templates(read, env).await?;
    let Ok(Expanded { parameters, entry_points, .. }) =
        expand(&sources(&templates), &env.parameters)
    else {
        return Ok(None);
    };
    let context = Context {
        environment_id: env.id.to_string(),
        environment_name: env.name.clone(),
        organization_id: env.organization_id.to_string(),
        parameters,
        outputs: resource::outputs(all),
    };
    Ok(Some((entry_points, context)))
}

/// Whether a resource is applied and stays.
fn is_applied(resource: &Resource) -> bool {
    use resource::Status::{Applied, Drifted};
    resource.act == Act::Nothing && matches!(resource.status, Applied | Drifted)
}
