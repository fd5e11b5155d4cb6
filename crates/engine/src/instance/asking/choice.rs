//! What an instance that someone asks for gets: its type, its size, its place, how it is paid for.

use model::ClusterId;
use model::kind::{InstanceType, Kind, MultiAz, Size};
use model::quota::{self, Asked, Choice, Per};
use store::{Page, Tx};

use super::{Asker, Refused, Wanted};
use crate::rules::Entitled;

/// How many clusters of an organization are looked through for the one that is named.
const MOST_CLUSTERS: i64 = 1000;

/// What an instance gets.
pub(crate) struct Chosen<'a> {
    pub(crate) instance_type: &'a InstanceType,
    pub(crate) size: &'a Size,
    pub(crate) billing_model: String,
    pub(crate) place: Place,
    /// The most that may be had, and of what.
    pub(crate) limit: Option<i64>,
    pub(crate) per: Per,
}

/// Where an instance shall be.
pub(crate) struct Place {
    pub(crate) cloud_provider: String,
    pub(crate) region: String,
    /// The cluster that was asked for.
    pub(crate) pinned_to: Option<ClusterId>,
}

/// Chooses. The first that is wrong is told, in the order: quota, place, plan, billing.
pub(super) async fn choose<'a>(
    tx: &mut Tx,
    asker: &Asker<'_>,
    kind: &'a Kind,
    entitled: &Entitled,
    wanted: &Wanted,
) -> Result<Chosen<'a>, Refused> {
    let now = tx.now();
    let pick = |asked: &Asked| {
        quota::choose(kind, entitled.grants.as_deref(), entitled.is_limited, now, asked)
    };
    let wish = Asked {
        plan: wanted.plan.as_deref(),
        billing_model: wanted.billing_model.as_deref(),
        cluster: wanted.cluster_id.is_some(),
    };
    let picked = pick(&wish);
    let assigned = match &picked {
        Ok(choice) => choice.clone(),
        Err(_) => pick(&Asked::default())?,
    };
    let named = match wanted.cluster_id {
        None => Some(place(kind, &assigned, wanted)?),
        Some(_) => None,
    };
    must_span_zones(kind, wanted)?;
    let choice = picked?;
    must_have_account(wanted)?;
    let place = match named {
        Some(place) => place,
        None => cluster(tx, asker, wanted.cluster_id.as_deref().unwrap_or_default()).await?,
    };
    Ok(chosen(kind, choice, place))
}

fn chosen(kind: &Kind, choice: Choice, place: Place) -> Chosen<'_> {
    let instance_type = kind.type_of(&choice.instance_type).expect("was chosen of this kind");
    let size = instance_type.size(&choice.size).expect("was chosen of this type");
    Chosen {
        instance_type,
        size,
        billing_model: choice.billing_model,
        place,
        limit: choice.limit.map(i64::from),
        per: choice.per,
    }
}

/// The cloud and the region that are named, or the defaults.
fn place(kind: &Kind, assigned: &Choice, wanted: &Wanted) -> Result<Place, Refused> {
    let cloud = wanted.cloud_provider.as_deref().unwrap_or_default();
    let region = wanted.region.as_deref().unwrap_or_default();
    let (cloud, region) = kind.place_for(&assigned.instance_type, cloud, region)?;
    Ok(Place { cloud_provider: cloud.name.clone(), region: region.name.clone(), pinned_to: None })
}

/// Where a request must say that an instance spans zones, it may not say no.
fn must_span_zones(kind: &Kind, wanted: &Wanted) -> Result<(), Refused> {
    if kind.offers.multi_az == MultiAz::Asked && wanted.multi_az == Some(false) {
        return Err(Refused::MustSpanZones);
    }
    Ok(())
}

fn must_have_account(wanted: &Wanted) -> Result<(), Refused> {
    if wanted.marketplace.is_some() && wanted.billing_account.is_none() {
        return Err(Refused::BillingAccountMissing);
    }
    Ok(())
}

/// The organization's own cluster that is named, by its id here or where it was made.
async fn cluster(tx: &mut Tx, asker: &Asker<'_>, named: &str) -> Result<Place, Refused> {
    let filter = store::cluster::Filter { only_own: true, ..Default::default() };
    let all = store::cluster::list(tx, asker.own(), &filter, &Page::first(MOST_CLUSTERS)).await?;
    let is_it =
        |id: ClusterId, foreign: Option<&str>| id.to_string() == named || foreign == Some(named);
    let own = Some(asker.user.organization_id);
    let found = all
        .into_iter()
        .find(|one| one.organization_id == own && is_it(one.id, one.foreign_id.as_deref()));
    let cluster = found.ok_or_else(|| Refused::UnknownCluster(named.to_owned()))?;
    Ok(Place {
        cloud_provider: cluster.cloud_provider,
        region: cluster.region,
        pinned_to: Some(cluster.id),
    })
}
