//! Chooses type, size and billing model for a request, or denies it.

use super::{ENTERPRISE, Grant, STANDARD};
use crate::Time;
use crate::kind::{InstanceType, Kind, PlanError, Size};

/// The quota-relevant part of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// The plan: `standard.x1`.
    pub plan: Option<&'a str>,
    /// The billing model.
    pub billing_model: Option<&'a str>,
    /// Does it name a cluster of the organization?
    pub cluster: bool,
}

/// The choice for a request, subject to its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The id of the instance type.
    pub instance_type: String,
    /// The id of the size.
    pub size: String,
    /// The id of the billing model.
    pub billing_model: String,
    /// The limit; none means unlimited.
    pub limit: Option<u32>,
    /// What counts against the limit.
    pub per: CountedPer,
}

/// What counts against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedPer {
    /// Nothing: unlimited.
    Nothing,
    /// Instances of the holder with the type and billing model, weighted by size.
    Holder,
    /// Number of the owner's instances of the type: a trial.
    Owner,
}

/// Why a request is denied. The messages are for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The plan is not of the form `type.size`.
    #[error("{}", PlanError::Malformed)]
    PlanMalformed,
    /// The plan is not of the allowed type.
    #[error("the plan \"{}\" is not allowed; only {allowed} instances are", plan.escape_default())]
    PlanOfOtherType {
        /// The plan.
        plan: String,
        /// The allowed type.
        allowed: String,
    },
    /// The type has no such size.
    #[error("the instance type {instance_type} has no size \"{}\"", size.escape_default())]
    UnknownSize {
        /// The type.
        instance_type: String,
        /// The size.
        size: String,
    },
    /// The type has no such billing model.
    #[error(
        "the instance type {instance_type} has no billing model \"{}\"",
        billing_model.escape_default()
    )]
    UnknownBillingModel {
        /// The type.
        instance_type: String,
        /// The billing model.
        billing_model: String,
    },
    /// Clusters of the organization only allow one billing model.
    #[error(
        "instances on your organization's cluster need the billing model enterprise, not \"{}\"",
        .0.escape_default()
    )]
    ClusterNeedsEnterprise(String),
    /// The billing model is only for clusters of the organization.
    #[error("the billing model enterprise requires a cluster_id")]
    EnterpriseNeedsCluster,
    /// No matching grant.
    #[error(
        "insufficient quota: {instance_type} instances with the billing model {billing_model} are \
         not granted"
    )]
    NoQuota {
        /// The type.
        instance_type: String,
        /// The billing model.
        billing_model: String,
    },
    /// The kind has no trials.
    #[error("this kind of service has no trials; instances require quota")]
    NoTrials,
}

/// Chooses type, size and billing model for a request.
///
/// `grants` are those of the requester's holder; none if it has no entry. With `is_limited` they
/// decide the type, and the plan must match; otherwise the plan decides, without limits.
pub fn choose(
    kind: &Kind,
    grants: Option<&[Grant]>,
    is_limited: bool,
    now: Time,
    request: &Request,
) -> Result<Choice, Denied> {
    // Empty strings on the wire mean absent.
    let some = |text: &&str| !text.is_empty();
    let request = &Request {
        plan: request.plan.filter(some),
        billing_model: request.billing_model.filter(some),
        ..*request
    };
    if is_limited { limited(kind, grants, now, request) } else { unlimited(kind, request) }
}

fn unlimited(kind: &Kind, request: &Request) -> Result<Choice, Denied> {
    let instance_type = match request.plan {
        Some(plan) => type_of_plan(kind, plan)?,
        None => by_model(kind, requested_model(request)?),
    };
    let size = size(instance_type, request)?;
    let models = &instance_type.billing_models;
    let model = match requested_model(request)? {
        Some(id) => known_model(instance_type, id)?,
        None => preferred(models.iter().map(|model| model.id.as_str())),
    };
    Ok(choice(instance_type, size, model, None, CountedPer::Nothing))
}

fn limited(
    kind: &Kind,
    grants: Option<&[Grant]>,
    now: Time,
    request: &Request,
) -> Result<Choice, Denied> {
    // Grants for other kinds do not count as an entry for this one.
    let listed: Vec<&Grant> =
        grants.unwrap_or_default().iter().filter(|grant| grant.concerns(kind)).collect();
    let granted: Vec<&Grant> =
        listed.iter().filter(|grant| !grant.is_expired(now)).copied().collect();
    match granted_type(kind, &granted) {
        Some(instance_type) => by_grant(instance_type, &granted, request),
        None if listed.is_empty() => trial(kind, request),
        None => Err(no_quota(&listed[0].instance_type, &listed[0].billing_model)),
    }
}

/// The first granted type in the order of the kind; the trial type comes last.
fn granted_type<'a>(kind: &'a Kind, granted: &[&Grant]) -> Option<&'a InstanceType> {
    let is_granted = |one: &&InstanceType| granted.iter().any(|g| g.instance_type == one.id);
    let proper = kind.types.iter().filter(|one| !kind.is_trial(&one.id)).find(is_granted);
    proper.or_else(|| kind.trial_type().filter(is_granted))
}

fn by_grant(
    instance_type: &InstanceType,
    granted: &[&Grant],
    request: &Request,
) -> Result<Choice, Denied> {
    let size = size_of_type(instance_type, request)?;
    let grant = |id: &str| granted.iter().find(|grant| grant.is_for(&instance_type.id, id));
    let model = match requested_model(request)? {
        Some(id) => known_model(instance_type, id)?,
        None => {
            let models = instance_type.billing_models.iter().map(|model| model.id.as_str());
            preferred(models.filter(|id| grant(id).is_some()))
        }
    };
    let Some(grant) = grant(model) else { return Err(no_quota(&instance_type.id, model)) };
    if model == ENTERPRISE && !request.cluster {
        return Err(Denied::EnterpriseNeedsCluster);
    }
    let per = if grant.limit.is_some() { CountedPer::Holder } else { CountedPer::Nothing };
    Ok(choice(instance_type, size, model, grant.limit, per))
}

fn trial(kind: &Kind, request: &Request) -> Result<Choice, Denied> {
    let Some(instance_type) = kind.trial_type() else {
        return Err(no_quota(&kind.types[0].id, request.billing_model.unwrap_or(STANDARD)));
    };
    if kind.max_trials == 0 {
        return Err(Denied::NoTrials);
    }
    let size = size_of_type(instance_type, request)?;
    let models = instance_type.billing_models.iter().map(|model| model.id.as_str());
    let model = match requested_model(request)? {
        Some(id) if instance_type.billing_model(id).is_none() => {
            return Err(no_quota(&instance_type.id, id));
        }
        Some(id) => id,
        None => preferred(models),
    };
    Ok(choice(instance_type, size, model, Some(kind.max_trials), CountedPer::Owner))
}

/// The requested billing model, by name or implied by a cluster.
fn requested_model<'a>(request: &Request<'a>) -> Result<Option<&'a str>, Denied> {
    match (request.billing_model, request.cluster) {
        (Some(ENTERPRISE) | None, true) => Ok(Some(ENTERPRISE)),
        (Some(other), true) => Err(Denied::ClusterNeedsEnterprise(other.to_owned())),
        (Some(ENTERPRISE), false) => Err(Denied::EnterpriseNeedsCluster),
        (model, false) => Ok(model),
    }
}

fn known_model<'a>(instance_type: &InstanceType, id: &'a str) -> Result<&'a str, Denied> {
    if instance_type.billing_model(id).is_some() {
        return Ok(id);
    }
    Err(Denied::UnknownBillingModel {
        instance_type: instance_type.id.clone(),
        billing_model: id.to_owned(),
    })
}

/// The standard model, else the first.
fn preferred<'a>(mut models: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    models.clone().find(|id| *id == STANDARD).or_else(|| models.next()).unwrap_or(STANDARD)
}

/// The trial type or else the first type with this billing model; the first if none has it.
fn by_model<'a>(kind: &'a Kind, model: Option<&str>) -> &'a InstanceType {
    let has = |one: &&InstanceType| model.is_none_or(|id| one.billing_model(id).is_some());
    let mut all = kind.trial_type().into_iter().chain(&kind.types);
    all.clone().find(has).or_else(|| all.next()).expect("a kind has a type")
}

fn type_of_plan<'a>(kind: &'a Kind, plan: &str) -> Result<&'a InstanceType, Denied> {
    let (id, _) = crate::kind::halves(plan).map_err(|_| Denied::PlanMalformed)?;
    let ids = || kind.types.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" or ");
    kind.instance_type(id)
        .ok_or_else(|| Denied::PlanOfOtherType { plan: plan.to_owned(), allowed: ids() })
}

/// The size of the plan, which must be of this type; the default size without a plan.
fn size_of_type<'a>(
    instance_type: &'a InstanceType,
    request: &Request,
) -> Result<&'a Size, Denied> {
    let Some(plan) = request.plan else { return Ok(instance_type.default_size()) };
    let (id, _) = crate::kind::halves(plan).map_err(|_| Denied::PlanMalformed)?;
    if id == instance_type.id {
        return size(instance_type, request);
    }
    Err(Denied::PlanOfOtherType { plan: plan.to_owned(), allowed: instance_type.id.clone() })
}

fn size<'a>(instance_type: &'a InstanceType, request: &Request) -> Result<&'a Size, Denied> {
    let Some(plan) = request.plan else { return Ok(instance_type.default_size()) };
    let (_, id) = crate::kind::halves(plan).map_err(|_| Denied::PlanMalformed)?;
    instance_type.size(id).ok_or_else(|| Denied::UnknownSize {
        instance_type: instance_type.id.clone(),
        size: id.to_owned(),
    })
}

fn no_quota(instance_type: &str, billing_model: &str) -> Denied {
    Denied::NoQuota {
        instance_type: instance_type.to_owned(),
        billing_model: billing_model.to_owned(),
    }
}

fn choice(
    kind: &InstanceType,
    size: &Size,
    model: &str,
    limit: Option<u32>,
    per: CountedPer,
) -> Choice {
    Choice {
        instance_type: kind.id.clone(),
        size: size.id.clone(),
        billing_model: model.to_owned(),
        limit,
        per,
    }
}
