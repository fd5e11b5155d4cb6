//! Validation of resource amounts in requests.

use model::Resources;

/// Validates the amounts to reserve or release.
pub(crate) fn request(field: &str, request: &Resources) -> Result<(), model::Invalid> {
    if request.is_empty() {
        let detail = "must contain at least one resource type, for example {\"cpu\": 1}";
        return Err(model::Invalid::new(field, detail));
    }
    request.check(field)
}
