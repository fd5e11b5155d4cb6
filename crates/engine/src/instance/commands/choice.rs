//! Chooses the type, size, place and billing model of a new instance.

use model::ClusterId;
use model::kind::{InstanceType, Kind, MultiAz, Size};
use model::quota::{self, Choice, CountedPer, Request};
use store::{Page, Tx};

use super::{Caller, CreateError, NewInstanceRequest};
use crate::rules::UserEntitlement;

/// Maximum number of an organization's clusters that are searched.
const MOST_CLUSTERS: i64 = 1000;

/// The choice for an instance.
pub(crate) struct Chosen<'a> {
    pub(crate) instance_type: &'a InstanceType,
    pub(crate) size: &'a Size,
    pub(crate) billing_model: String,
    pub(crate) place: Place,
    /// The quota limit, and what it counts.
    pub(crate) limit: Option<i64>,
    pub(crate) per: CountedPer,
}

/// Where an instance is placed.
pub(crate) struct Place {
    pub(crate) cloud_provider: String,
    pub(crate) region: String,
    /// The requested cluster.
    pub(crate) pinned_to: Option<ClusterId>,
}

/// Chooses, or returns the first problem in the order: quota, place, plan, billing.
pub(super) async fn choose<'a>(
    tx: &mut Tx,
    caller: &Caller<'_>,
    kind: &'a Kind,
    entitled: &UserEntitlement,
    wanted: &NewInstanceRequest,
) -> Result<Chosen<'a>, CreateError> {
    let now = tx.now();
    let pick = |asked: &Request| {
        quota::choose(kind, entitled.grants.as_deref(), entitled.is_limited, now, asked)
    };
    let request = Request {
        plan: wanted.plan.as_deref(),
        billing_model: wanted.billing_model.as_deref(),
        cluster: wanted.cluster_id.is_some(),
    };
    let picked = pick(&request);
    let assigned = match &picked {
        Ok(choice) => choice.clone(),
        Err(_) => pick(&Request::default())?,
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
        None => cluster(tx, caller, wanted.cluster_id.as_deref().unwrap_or_default()).await?,
    };
    Ok(chosen(kind, choice, place))
}

fn chosen(kind: &Kind, choice: Choice, place: Place) -> Chosen<'_> {
    let instance_type = kind.instance_type(&choice.instance_type).expect("was chosen of this kind");
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

/// The requested cloud and region, or the defaults.
fn place(
    kind: &Kind,
    assigned: &Choice,
    wanted: &NewInstanceRequest,
) -> Result<Place, CreateError> {
    let cloud = wanted.cloud_provider.as_deref().unwrap_or_default();
    let region = wanted.region.as_deref().unwrap_or_default();
    let (cloud, region) = kind.location_for(&assigned.instance_type, cloud, region)?;
    Ok(Place { cloud_provider: cloud.name.clone(), region: region.name.clone(), pinned_to: None })
}

/// Where a request sets `multi_az`, `false` is refused.
fn must_span_zones(kind: &Kind, wanted: &NewInstanceRequest) -> Result<(), CreateError> {
    if kind.offers.multi_az == MultiAz::Asked && wanted.multi_az == Some(false) {
        return Err(CreateError::MustSpanZones);
    }
    Ok(())
}

fn must_have_account(wanted: &NewInstanceRequest) -> Result<(), CreateError> {
    if wanted.marketplace.is_some() && wanted.billing_account.is_none() {
        return Err(CreateError::BillingAccountMissing);
    }
    Ok(())
}

/// The organization's own cluster with this id or external id.
async fn cluster(tx: &mut Tx, caller: &Caller<'_>, named: &str) -> Result<Place, CreateError> {
    let filter = store::cluster::Filter { only_own: true, ..Default::default() };
    let all = store::cluster::list(tx, caller.own(), &filter, &Page::first(MOST_CLUSTERS)).await?;
    let is_it =
        |id: ClusterId, foreign: Option<&str>| id.to_string() == named || foreign == Some(named);
    let own = Some(caller.user.organization_id);
    let found = all
        .into_iter()
        .find(|one| one.organization_id == own && is_it(one.id, one.foreign_id.as_deref()));
    let cluster = found.ok_or_else(|| CreateError::UnknownCluster(named.to_owned()))?;
    Ok(Place {
        cloud_provider: cluster.cloud_provider,
        region: cluster.region,
        pinned_to: Some(cluster.id),
    })
}
