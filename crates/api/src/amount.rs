//! Checks of amounts of resources in requests.

use model::Resources;

/// Checks what somebody wants to take or give back.
pub(crate) fn request(field: &str, request: &Resources) -> Result<(), model::Invalid> {
    if request.is_empty() {
        let detail = "name at least one resource type, for example {\"cpu\": 1}";
        return Err(model::Invalid::new(field, detail));
    }
    request.check(field)
}
