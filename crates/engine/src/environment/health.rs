//! Whether an environment works: its entry points and the status addresses of its resources answer.

use std::time::Duration;

use model::Time;
use model::environment::{Environment, Reason, Status};
use model::event::Actor;
use model::resource::{self, Resource};
use model::template::{Act, Context, Expanded, expand, fill_text};
use store::Scope;

use super::Environments;
use super::templates::{sources, templates};
use crate::{Error, Reconcile as _};

/// How often what does not work yet is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How often what works is looked at.
const WATCH: Duration = Duration::from_secs(30);
/// How long something new may take until it works.
const PATIENCE: Duration = Duration::from_mins(5);
/// So many looks in a row must find that it does not work before that is believed.
const MISSES: u32 = 3;

/// An address that has to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    /// What it belongs to, for users.
    of: String,
    url: String,
    /// Must it say 200 to 299? An entry point may also ask to sign in.
    is_strict: bool,
}

impl Environments {
    /// Looks whether it works, and says so; when to look again.
    pub(super) async fn look_after(&self, seen: &Environment) -> Result<Option<Time>, Error> {
        let mut read = self.db.read().await?;
        let all = store::resource::of(&mut read, seen.id).await?;
        // Something of it failed: that it answers all the same does not count.
        if seen.status == Status::Failed && all.iter().any(|one| !is_there(one)) {
            return Ok(None);
        }
        let (entry_points, addresses) = self.addresses(&mut read, seen, &all).await?;
        drop(read);
        let mut broken = None;
        for address in &addresses {
            if let Err(message) = self.ask(address).await {
                broken = Some(Reason::HealthCheckFailed { of: address.of.clone(), message });
                break;
            }
        }
        let now = self.db.now();
        let Some(reason) = broken else {
            self.missed(seen.id, false);
            self.settle(seen, Status::Deployed, Reason::AsExpected, &entry_points).await?;
            return Ok((!addresses.is_empty()).then(|| now + WATCH));
        };
        let is_late = seen.status_since + PATIENCE <= now;
        if seen.status == Status::Deployed && self.missed(seen.id, true) >= MISSES
            || seen.status == Status::Validating && is_late
        {
            self.settle(seen, Status::Failed, reason, &entry_points).await?;
        } else if seen.status == Status::Validating {
            self.explain(seen, reason).await?;
        }
        Ok(Some(now + if seen.status == Status::Failed { WATCH } else { LOOK_AGAIN }))
    }

    async fn ask(&self, address: &Address) -> Result<(), String> {
        let status = self.probe.get(&address.url).await.map_err(|fault| fault.to_string())?;
        let is_good = if address.is_strict { (200..300).contains(&status) } else { status < 500 };
        if is_good { Ok(()) } else { Err(format!("{} answers {status}", address.url)) }
    }

    /// Entry points for users, and all that has to answer.
    async fn addresses(
        &self,
        read: &mut store::Read,
        seen: &Environment,
        all: &[Resource],
    ) -> Result<(Vec<String>, Vec<Address>), Error> {
        let Some((texts, context)) = known(read, seen, all).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let mut found: Vec<Address> = endpoints(all, &context)
            .map(|(of, url)| Address { of: of.to_owned(), url, is_strict: true })
            .collect();
        let entry_points: Vec<String> =
            texts.iter().filter_map(|text| fill_text(text, None, &context).ok()).collect();
        let pages = entry_points.iter().filter(|url| url.starts_with("http"));
        found.extend(pages.map(|url| Address {
            of: "the entry point".into(),
            url: url.clone(),
            is_strict: false,
        }));
        Ok((entry_points, found))
    }

    async fn settle(
        &self,
        seen: &Environment,
        to: Status,
        reason: Reason,
        entry_points: &[String],
    ) -> Result<(), Error> {
        let is_news = seen.status != to || seen.entry_points != entry_points;
        if !is_news {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::take(&mut tx, Scope::All, seen.id).await?;
        if now.status != seen.status || now.generation != seen.generation {
            return Ok(());
        }
        now.entry_points = entry_points.to_vec();
        now.progress = 100;
        if now.status == to {
            store::environment::save(&mut tx, &mut now, "updated").await?;
        } else {
            store::environment::transition(&mut tx, &mut now, to, reason).await?;
            // From now on they are looked at on a schedule.
            super::wake_all(&mut tx, &now).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn explain(&self, seen: &Environment, reason: Reason) -> Result<(), Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::take(&mut tx, Scope::All, seen.id).await?;
        if now.status == seen.status {
            let progress = now.progress;
            store::environment::explain(&mut tx, &mut now, reason, progress).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// The addresses at which resources say whether they work, with the resources' names.
pub async fn status_endpoints(
    read: &mut store::Read,
    of: &Environment,
    all: &[Resource],
) -> store::Result<Vec<(String, String)>> {
    if all.iter().all(|one| one.node.health.is_none()) {
        return Ok(Vec::new());
    }
    let Some((_, context)) = known(read, of, all).await? else { return Ok(Vec::new()) };
    Ok(endpoints(all, &context).map(|(name, url)| (name.to_owned(), url)).collect())
}

fn endpoints<'a>(
    all: &'a [Resource],
    context: &'a Context,
) -> impl Iterator<Item = (&'a str, String)> {
    all.iter().filter_map(|one| {
        let text = one.node.health.as_ref()?;
        // What it names may be gone for a while; then it does not work, and says so.
        let url = fill_text(text, Some(&one.node), context).unwrap_or_else(|_| text.clone());
        Some((one.node.name.as_str(), url))
    })
}

/// The entry points of an environment's templates, and what expressions are given there.
async fn known(
    read: &mut store::Read,
    of: &Environment,
    all: &[Resource],
) -> store::Result<Option<(Vec<String>, Context)>> {
    let templates = templates(read, of).await?;
    let Ok(Expanded { parameters, entry_points, .. }) =
        expand(&sources(&templates), &of.parameters)
    else {
        return Ok(None);
    };
    let context = Context {
        environment_id: of.id.to_string(),
        environment_name: of.name.clone(),
        parameters,
        outputs: resource::outputs(all),
    };
    Ok(Some((entry_points, context)))
}

/// Is it as it should be, and shall it stay?
fn is_there(one: &Resource) -> bool {
    use resource::Status::{Applied, Drifted};
    one.act == Act::Nothing && matches!(one.status, Applied | Drifted)
}
