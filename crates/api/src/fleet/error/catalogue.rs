//! Error catalogue: code, HTTP status, meaning.

/// Code of internal errors.
pub(super) const INTERNAL: u16 = 9;

/// Returns the entry of a code; undefined codes map to [`INTERNAL`].
pub(super) fn entry(code: u16) -> &'static (u16, u16, &'static str) {
    let index =
        |code: u16| CATALOGUE.binary_search_by_key(&code, |(entry_code, ..)| *entry_code).ok();
    let at = index(code).or_else(|| index(INTERNAL)).expect("the catalogue has it");
    &CATALOGUE[at]
}

/// All errors, ordered by code.
pub(super) const CATALOGUE: &[(u16, u16, &str)] = &[
    (4, 403, "Permission denied."),
    (5, 403, "The quota's maximum number of instances is reached."),
    (6, 409, "An object with the same unique value already exists."),
    (7, 404, "Resource not found."),
    (8, 400, "The request is invalid."),
    (9, 500, "Internal error; details are in the server log."),
    (10, 405, "This method is not implemented."),
    (11, 403, "This account is not authorized to do this."),
    (12, 403, "Required terms have not been accepted."),
    (15, 401, "Authentication failed; log in again."),
    (17, 400, "The request is malformed."),
    (18, 403, "The service is in maintenance, or the organization is not on the access list."),
    (21, 400, "The request is not possible in the current state."),
    (23, 400, "The search expression is invalid."),
    (24, 403, "No capacity: the maximum number of instances is reached."),
    (25, 410, "The resource no longer exists."),
    (30, 400, "This cloud provider is not supported."),
    (31, 400, "This region is not supported."),
    (
        32,
        400,
        "An instance name must contain only a-z, 0-9 and -, begin with a letter, and not end \
         with -.",
    ),
    (33, 400, "A value is too short."),
    (34, 400, "A value is too long."),
    (35, 400, "Only multi-zone instances are supported: multi_az must be true."),
    (36, 409, "The organization already has an instance with this name; choose another name."),
    (37, 400, "The value of a field is not valid."),
    (38, 400, "The name of a service account is not valid."),
    (39, 400, "The description of a service account is not valid."),
    (40, 400, "The id of a service account is not valid."),
    (41, 400, "This instance type is not supported in the region."),
    (42, 400, "This plan is not supported."),
    (43, 400, "The billing account is missing or not valid."),
    (44, 409, "A cluster with this id is already registered."),
    (45, 400, "The id of a cluster is not valid."),
    (46, 400, "The external id of a cluster is not valid."),
    (47, 400, "The DNS name is not valid."),
    (103, 400, "The operation is asynchronous: set the parameter async=true."),
    (106, 500, "Creating the client at the OpenID provider failed."),
    (107, 500, "Reading the client's secret from the OpenID provider failed."),
    (108, 500, "Reading the client from the OpenID provider failed."),
    (109, 500, "Deleting the client at the OpenID provider failed."),
    (110, 500, "Creating the service account failed."),
    (111, 500, "Reading the service account failed."),
    (112, 500, "Deleting the service account failed."),
    (113, 404, "Service account not found."),
    (115, 403, "The maximum number of service accounts is reached."),
    (120, 403, "Insufficient quota."),
    (121, 500, "Checking the quota failed."),
    (429, 429, "Too many requests; try again later."),
    (1000, 500, "Sending the error response failed."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_is_ordered_and_has_error_statuses() {
        assert!(CATALOGUE.is_sorted_by(|(a, ..), (b, ..)| a < b));
        for (code, status, meaning) in CATALOGUE {
            assert!((400..600).contains(status), "{code}");
            assert!(meaning.ends_with('.'), "{code}");
        }
    }

    #[test]
    fn undefined_code_is_an_internal_error() {
        assert_eq!(entry(7).1, 404);
        assert_eq!(entry(1).0, INTERNAL);
    }
}
