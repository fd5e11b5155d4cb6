//! Error codes for refusals of the model and the engine.

use model::instance::change;
use model::kind::LocationError;
use model::quota::Denied;

use super::{Error, capitalized};
use crate::instance::CreateError;

fn place_code(error: &LocationError) -> u16 {
    match error {
        LocationError::UnknownCloud { .. } => 30,
        LocationError::UnknownRegion { .. } => 31,
        LocationError::TypeNotOffered { .. } => 41,
    }
}

fn denied_code(denied: &Denied) -> u16 {
    match denied {
        Denied::PlanMalformed | Denied::PlanOfOtherType { .. } | Denied::EnterpriseNeedsCluster => {
            21
        }
        // The reference responds with 9, a server error, although the request is invalid.
        Denied::UnknownBillingModel { .. } => 37,
        Denied::UnknownSize { .. } => 42,
        Denied::ClusterNeedsEnterprise(_) => 43,
        Denied::NoQuota { .. } => 120,
        Denied::NoTrials => 4,
    }
}

fn change_code(refused: &change::ChangeError) -> u16 {
    use change::ChangeError::{NotBytes, Nothing, RetentionShrinks};
    match refused {
        Nothing | NotBytes(_) | RetentionShrinks { .. } => 37,
        _ => 8,
    }
}

impl From<LocationError> for Error {
    fn from(error: LocationError) -> Self {
        Self::new(place_code(&error), capitalized(&error.to_string()))
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Self::new(denied_code(&denied), capitalized(&denied.to_string()))
    }
}

impl From<change::ChangeError> for Error {
    fn from(refused: change::ChangeError) -> Self {
        Self::new(change_code(&refused), refused.to_string())
    }
}

impl From<CreateError> for Error {
    fn from(refused: CreateError) -> Self {
        let code = match refused {
            CreateError::Store(error) => return error.into(),
            CreateError::Denied(denied) => return denied.into(),
            CreateError::Place(error) => return error.into(),
            CreateError::NameMalformed => 32,
            CreateError::NameMissing | CreateError::OwnerMissing => 33,
            CreateError::NameTooLong { .. } => 34,
            CreateError::MustSpanZones => 35,
            CreateError::BillingAccountMissing => 43,
            CreateError::UnknownCluster(_) => 24,
            CreateError::OwnerUnknown | CreateError::OwnerDenied => 21,
        };
        Self::new(code, capitalized(&refused.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: impl Into<Error>) -> u16 {
        error.into().code
    }

    #[test]
    fn refusals_map_to_catalogue_codes() {
        let text = || "x".to_owned();
        let (name, cloud, region, known) = (text(), text(), text(), text());
        assert_eq!(code(LocationError::UnknownCloud { name, known }), 30);
        let (name, known) = (text(), text());
        assert_eq!(code(LocationError::UnknownRegion { name, cloud, known }), 31);
        let (instance_type, cloud) = (text(), text());
        assert_eq!(code(LocationError::TypeNotOffered { instance_type, cloud, region }), 41);

        let (instance_type, billing_model) = (text(), text());
        assert_eq!(code(Denied::NoQuota { instance_type, billing_model }), 120);
        let (instance_type, billing_model) = (text(), text());
        assert_eq!(code(Denied::UnknownBillingModel { instance_type, billing_model }), 37);
        let (instance_type, size) = (text(), text());
        assert_eq!(code(Denied::UnknownSize { instance_type, size }), 42);
        let (plan, allowed) = (text(), text());
        assert_eq!(code(Denied::PlanOfOtherType { plan, allowed }), 21);
        assert_eq!(code(Denied::PlanMalformed), 21);
        assert_eq!(code(Denied::EnterpriseNeedsCluster), 21);
        assert_eq!(code(Denied::ClusterNeedsEnterprise(text())), 43);
        assert_eq!(code(Denied::NoTrials), 4);

        assert_eq!(code(CreateError::NameMalformed), 32);
        assert_eq!(code(CreateError::NameMissing), 33);
        assert_eq!(code(CreateError::NameTooLong { length: 33, most: 32 }), 34);

        assert_eq!(code(change::ChangeError::Nothing), 37);
        assert_eq!(code(change::ChangeError::NotBytes(text())), 37);
        assert_eq!(code(change::ChangeError::RetentionShrinks { current: 1 }), 37);
        assert_eq!(code(change::ChangeError::Expiring), 8);
    }
}
