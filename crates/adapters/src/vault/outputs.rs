//! The outputs of a secret: references to its values, never the values.

use port::Outcome;
use serde_json::{Map, Value, json};

use super::kv::Place;
use super::mark::Mark;

/// The references to a secret and to each of its keys.
pub(super) fn outcome<'a>(
    place: &Place,
    keys: impl Iterator<Item = &'a str>,
    mark: Option<&Mark>,
) -> Outcome {
    let reference = place.reference();
    let keys: Map<String, Value> =
        keys.map(|key| (key.to_owned(), format!("{reference}#{key}").into())).collect();
    let mut outputs = Map::new();
    outputs.insert("path".into(), place.path.clone().into());
    outputs.insert("mount".into(), place.mount.clone().into());
    outputs.insert("version".into(), place.version.number().into());
    outputs.insert("reference".into(), reference.into());
    outputs.insert("keys".into(), keys.into());
    if let Some(one) = mark.and_then(|mark| mark.certificate.as_ref()) {
        let shown = json!({
            "serial_number": one.serial,
            "not_after": one.until,
            "common_name": one.common_name,
        });
        outputs.insert("certificate".into(), shown);
    }
    Outcome { outputs, link: None }
}
