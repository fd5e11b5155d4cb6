//! The catalogue of errors: number, HTTP status, meaning.

/// What has no number of its own.
pub(super) const INTERNAL: u16 = 9;

/// The entry of a number; an undefined one counts as [`INTERNAL`].
pub(super) fn entry(code: u16) -> &'static (u16, u16, &'static str) {
    let of = |code: u16| CATALOGUE.binary_search_by_key(&code, |(known, ..)| *known).ok();
    let at = of(code).or_else(|| of(INTERNAL)).expect("the catalogue has it");
    &CATALOGUE[at]
}

/// All errors, by number.
pub(super) const CATALOGUE: &[(u16, u16, &str)] = &[
    (4, 403, "You are not permitted to do this."),
    (5, 403, "The maximum number of instances of the quota is reached."),
    (6, 409, "Another one with the same unique value exists already."),
    (7, 404, "There is no such resource."),
    (8, 400, "The request breaks a rule."),
    (9, 500, "Something is wrong on our side; it has been logged."),
    (10, 405, "This method is not implemented."),
    (11, 403, "This account is not authorised to do this."),
    (12, 403, "Required terms have not been accepted."),
    (15, 401, "Who you are could not be verified: sign in."),
    (17, 400, "The request can't be read."),
    (18, 403, "The service is in maintenance, or the organization is not on the access list."),
    (21, 400, "The request is not possible like this."),
    (23, 400, "The search expression can't be read."),
    (24, 403, "No capacity: the maximum number of instances is reached."),
    (25, 410, "The resource is gone."),
    (30, 400, "This cloud provider is not supported."),
    (31, 400, "This region is not supported."),
    (
        32,
        400,
        "The name of an instance has a-z, 0-9 and -, begins with a letter, and does not end with -.",
    ),
    (33, 400, "A value is too short."),
    (34, 400, "A value is too long."),
    (35, 400, "Only instances that span zones are supported: multi_az must be true."),
    (36, 409, "An instance of this name exists already in the organization; choose another name."),
    (37, 400, "The value of a field is not valid."),
    (38, 400, "The name of a service account is not valid."),
    (39, 400, "The description of a service account is not valid."),
    (40, 400, "The id of a service account is not valid."),
    (41, 400, "This instance type is not supported in the region."),
    (42, 400, "This plan is not supported."),
    (43, 400, "The billing account is missing or not valid."),
    (44, 409, "A cluster with this id is registered already."),
    (45, 400, "The id of a cluster is not valid."),
    (46, 400, "The external id of a cluster is not valid."),
    (47, 400, "The DNS name is not valid."),
    (103, 400, "This can't be done synchronously: set the parameter async=true."),
    (106, 500, "The client could not be made at the sign-in server."),
    (107, 500, "The client's secret could not be read from the sign-in server."),
    (108, 500, "The client could not be read from the sign-in server."),
    (109, 500, "The client could not be deleted at the sign-in server."),
    (110, 500, "The service account could not be made."),
    (111, 500, "The service account could not be read."),
    (112, 500, "The service account could not be deleted."),
    (113, 404, "There is no such service account."),
    (115, 403, "The maximum number of service accounts is reached."),
    (120, 403, "Insufficient quota."),
    (121, 500, "The quota could not be checked."),
    (429, 429, "Too many requests; try again in a moment."),
    (1000, 500, "The error could not be sent."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_ordered_and_has_statuses_of_errors() {
        assert!(CATALOGUE.is_sorted_by(|(a, ..), (b, ..)| a < b));
        for (code, status, meaning) in CATALOGUE {
            assert!((400..600).contains(status), "{code}");
            assert!(meaning.ends_with('.'), "{code}");
        }
    }

    #[test]
    fn an_undefined_number_is_an_internal_error() {
        assert_eq!(entry(7).1, 404);
        assert_eq!(entry(1).0, INTERNAL);
    }
}
