//! Which type, size and billing model a request gets, or why none.

use super::{ENTERPRISE, Grant, STANDARD};
use crate::Time;
use crate::kind::{InstanceType, Kind, PlanError, Size};

/// What a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// A plan: `standard.x1`.
    pub plan: Option<&'a str>,
    /// A billing model.
    pub billing_model: Option<&'a str>,
    /// Does it name a cluster that the organization registered for itself?
    pub cluster: bool,
}

/// What a request gets, if there is room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The id of the instance type.
    pub instance_type: String,
    /// The id of the size.
    pub size: String,
    /// The id of the billing model.
    pub billing_model: String,
    /// The most that may be had; none means any number.
    pub limit: Option<u32>,
    /// What is counted against the limit.
    pub per: Per,
}

/// What is counted against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Nothing: there is no limit.
    Nothing,
    /// What the grant's holder has of the type and the billing model, weighed by size.
    Holder,
    /// How many of the type the owner has, whatever their size: a trial.
    Owner,
}

/// Why a request gets nothing. The sentences are for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The plan is not of the form `type.size`.
    #[error("{}", PlanError::Malformed)]
    PlanMalformed,
    /// The plan is of another type than the one that the request gets.
    #[error("the plan \"{}\" is not possible: only {allowed} instances are", plan.escape_default())]
    PlanOfOtherType {
        /// The plan.
        plan: String,
        /// The type that it would have to be of.
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
    /// The type can't be paid for so.
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
    /// A cluster of the organization's own is only for one billing model.
    #[error(
        "instances on a cluster of your own have the billing model enterprise, not \"{}\"",
        .0.escape_default()
    )]
    ClusterNeedsEnterprise(String),
    /// That billing model is only for clusters of the organization's own.
    #[error("the billing model enterprise needs a cluster_id")]
    EnterpriseNeedsCluster,
    /// No quota that could be used.
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
    /// Nobody may try it.
    #[error("instances without quota are not allowed for this kind of service")]
    NoTrials,
}

/// Decides what a request gets.
///
/// `grants` are those of the requester's holder, none when it has no entry. With `is_limited` they
/// decide the type, and the plan must agree; without, the plan does, and there are no limits.
pub fn choose(
    kind: &Kind,
    grants: Option<&[Grant]>,
    is_limited: bool,
    now: Time,
    asked: &Asked,
) -> Result<Choice, Denied> {
    // On the wire an empty text is an absent one.
    let some = |text: &&str| !text.is_empty();
    let asked = &Asked {
        plan: asked.plan.filter(some),
        billing_model: asked.billing_model.filter(some),
        ..*asked
    };
    if is_limited { limited(kind, grants, now, asked) } else { unlimited(kind, asked) }
}

fn unlimited(kind: &Kind, asked: &Asked) -> Result<Choice, Denied> {
    let instance_type = match asked.plan {
        Some(plan) => type_of_plan(kind, plan)?,
        None => by_model(kind, wanted_model(asked)?),
    };
    let size = size(instance_type, asked)?;
    let models = &instance_type.billing_models;
    let model = match wanted_model(asked)? {
        Some(id) => known_model(instance_type, id)?,
        None => preferred(models.iter().map(|model| model.id.as_str())),
    };
    Ok(choice(instance_type, size, model, None, Per::Nothing))
}

fn limited(
    kind: &Kind,
    grants: Option<&[Grant]>,
    now: Time,
    asked: &Asked,
) -> Result<Choice, Denied> {
    // Who is only listed for other kinds is not listed for this one.
    let listed: Vec<&Grant> =
        grants.unwrap_or_default().iter().filter(|grant| grant.concerns(kind)).collect();
    let granted: Vec<&Grant> =
        listed.iter().filter(|grant| !grant.is_expired(now)).copied().collect();
    match granted_type(kind, &granted) {
        Some(instance_type) => by_grant(instance_type, &granted, asked),
        None if listed.is_empty() => trial(kind, asked),
        None => Err(no_quota(&listed[0].instance_type, &listed[0].billing_model)),
    }
}

/// The first type in the order of the kind for which something is granted; the trial type last.
fn granted_type<'a>(kind: &'a Kind, granted: &[&Grant]) -> Option<&'a InstanceType> {
    let is_granted = |one: &&InstanceType| granted.iter().any(|g| g.instance_type == one.id);
    let proper = kind.types.iter().filter(|one| !kind.is_trial(&one.id)).find(is_granted);
    proper.or_else(|| kind.trial_type().filter(is_granted))
}

fn by_grant(
    instance_type: &InstanceType,
    granted: &[&Grant],
    asked: &Asked,
) -> Result<Choice, Denied> {
    let size = size_of_type(instance_type, asked)?;
    let grant = |id: &str| granted.iter().find(|grant| grant.is_for(&instance_type.id, id));
    let model = match wanted_model(asked)? {
        Some(id) => known_model(instance_type, id)?,
        None => {
            let models = instance_type.billing_models.iter().map(|model| model.id.as_str());
            preferred(models.filter(|id| grant(id).is_some()))
        }
    };
    let Some(grant) = grant(model) else { return Err(no_quota(&instance_type.id, model)) };
    if model == ENTERPRISE && !asked.cluster {
        return Err(Denied::EnterpriseNeedsCluster);
    }
    let per = if grant.limit.is_some() { Per::Holder } else { Per::Nothing };
    Ok(choice(instance_type, size, model, grant.limit, per))
}

fn trial(kind: &Kind, asked: &Asked) -> Result<Choice, Denied> {
    let Some(instance_type) = kind.trial_type() else {
        return Err(no_quota(&kind.types[0].id, asked.billing_model.unwrap_or(STANDARD)));
    };
    if kind.max_trials == 0 {
        return Err(Denied::NoTrials);
    }
    let size = size_of_type(instance_type, asked)?;
    let models = instance_type.billing_models.iter().map(|model| model.id.as_str());
    let model = match wanted_model(asked)? {
        Some(id) if instance_type.billing_model(id).is_none() => {
            return Err(no_quota(&instance_type.id, id));
        }
        Some(id) => id,
        None => preferred(models),
    };
    Ok(choice(instance_type, size, model, Some(kind.max_trials), Per::Owner))
}

/// The billing model that is asked for, by name or by naming a cluster.
fn wanted_model<'a>(asked: &Asked<'a>) -> Result<Option<&'a str>, Denied> {
    match (asked.billing_model, asked.cluster) {
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

/// The standard model, or the first.
fn preferred<'a>(mut models: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    models.clone().find(|id| *id == STANDARD).or_else(|| models.next()).unwrap_or(STANDARD)
}

/// The trial type, or the first, that has this billing model; or just the first of these.
fn by_model<'a>(kind: &'a Kind, model: Option<&str>) -> &'a InstanceType {
    let has = |one: &&InstanceType| model.is_none_or(|id| one.billing_model(id).is_some());
    let mut all = kind.trial_type().into_iter().chain(&kind.types);
    all.clone().find(has).or_else(|| all.next()).expect("a kind has a type")
}

fn type_of_plan<'a>(kind: &'a Kind, plan: &str) -> Result<&'a InstanceType, Denied> {
    let (id, _) = crate::kind::halves(plan).map_err(|_| Denied::PlanMalformed)?;
    let ids = || kind.types.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" or ");
    kind.type_of(id)
        .ok_or_else(|| Denied::PlanOfOtherType { plan: plan.to_owned(), allowed: ids() })
}

/// The size of the plan, which must be of this type; without a plan the smallest.
fn size_of_type<'a>(instance_type: &'a InstanceType, asked: &Asked) -> Result<&'a Size, Denied> {
    let Some(plan) = asked.plan else { return Ok(instance_type.default_size()) };
    let (id, _) = crate::kind::halves(plan).map_err(|_| Denied::PlanMalformed)?;
    if id == instance_type.id {
        return size(instance_type, asked);
    }
    Err(Denied::PlanOfOtherType { plan: plan.to_owned(), allowed: instance_type.id.clone() })
}

fn size<'a>(instance_type: &'a InstanceType, asked: &Asked) -> Result<&'a Size, Denied> {
    let Some(plan) = asked.plan else { return Ok(instance_type.default_size()) };
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

fn choice(kind: &InstanceType, size: &Size, model: &str, limit: Option<u32>, per: Per) -> Choice {
    Choice {
        instance_type: kind.id.clone(),
        size: size.id.clone(),
        billing_model: model.to_owned(),
        limit,
        per,
    }
}
