//! The numbers of what the model and the engine refuse, in the fleet managers' catalogue.

use model::instance::change;
use model::kind::PlaceError;
use model::quota::Denied;

use super::{Error, sentence};
use crate::instance::Refused;

fn of_place(error: &PlaceError) -> u16 {
    match error {
        PlaceError::UnknownCloud { .. } => 30,
        PlaceError::UnknownRegion { .. } => 31,
        PlaceError::TypeNotThere { .. } => 41,
    }
}

fn of_denied(denied: &Denied) -> u16 {
    match denied {
        Denied::PlanMalformed | Denied::PlanOfOtherType { .. } | Denied::EnterpriseNeedsCluster => {
            21
        }
        // The reference answers with 9, a failure of the server; it is the request's.
        Denied::UnknownBillingModel { .. } => 37,
        Denied::UnknownSize { .. } => 42,
        Denied::ClusterNeedsEnterprise(_) => 43,
        Denied::NoQuota { .. } => 120,
        Denied::NoTrials => 4,
    }
}

fn of_change(refused: &change::Refused) -> u16 {
    use change::Refused::{NotBytes, Nothing, RetentionShrinks};
    match refused {
        Nothing | NotBytes(_) | RetentionShrinks { .. } => 37,
        _ => 8,
    }
}

impl From<PlaceError> for Error {
    fn from(error: PlaceError) -> Self {
        Self::new(of_place(&error), sentence(&error.to_string()))
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Self::new(of_denied(&denied), sentence(&denied.to_string()))
    }
}

impl From<change::Refused> for Error {
    fn from(refused: change::Refused) -> Self {
        Self::new(of_change(&refused), refused.to_string())
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let number = match refused {
            Refused::Store(error) => return error.into(),
            Refused::Denied(denied) => return denied.into(),
            Refused::Place(error) => return error.into(),
            Refused::NameMalformed => 32,
            Refused::NameMissing | Refused::OwnerMissing => 33,
            Refused::NameTooLong { .. } => 34,
            Refused::MustSpanZones => 35,
            Refused::BillingAccountMissing => 43,
            Refused::UnknownCluster(_) => 24,
            Refused::OwnerUnknown | Refused::OwnerDenied => 21,
        };
        Self::new(number, sentence(&refused.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(error: impl Into<Error>) -> u16 {
        error.into().code
    }

    #[test]
    fn refusals_have_the_numbers_of_the_catalogue() {
        let text = || "x".to_owned();
        let (name, cloud, region, known) = (text(), text(), text(), text());
        assert_eq!(number(PlaceError::UnknownCloud { name, known }), 30);
        let (name, known) = (text(), text());
        assert_eq!(number(PlaceError::UnknownRegion { name, cloud, known }), 31);
        let (instance_type, cloud) = (text(), text());
        assert_eq!(number(PlaceError::TypeNotThere { instance_type, cloud, region }), 41);

        let (instance_type, billing_model) = (text(), text());
        assert_eq!(number(Denied::NoQuota { instance_type, billing_model }), 120);
        let (instance_type, billing_model) = (text(), text());
        assert_eq!(number(Denied::UnknownBillingModel { instance_type, billing_model }), 37);
        let (instance_type, size) = (text(), text());
        assert_eq!(number(Denied::UnknownSize { instance_type, size }), 42);
        let (plan, allowed) = (text(), text());
        assert_eq!(number(Denied::PlanOfOtherType { plan, allowed }), 21);
        assert_eq!(number(Denied::PlanMalformed), 21);
        assert_eq!(number(Denied::EnterpriseNeedsCluster), 21);
        assert_eq!(number(Denied::ClusterNeedsEnterprise(text())), 43);
        assert_eq!(number(Denied::NoTrials), 4);

        assert_eq!(number(Refused::NameMalformed), 32);
        assert_eq!(number(Refused::NameMissing), 33);
        assert_eq!(number(Refused::NameTooLong { length: 33, most: 32 }), 34);

        assert_eq!(number(change::Refused::Nothing), 37);
        assert_eq!(number(change::Refused::NotBytes(text())), 37);
        assert_eq!(number(change::Refused::RetentionShrinks { current: 1 }), 37);
        assert_eq!(number(change::Refused::Expiring), 8);
    }
}
