//! Validation of `vault-secret` specs, beyond the checks of templates.

use model::Invalid;
use model::template::{Executor, configuration};
use serde_json::{Map, Value};

use super::certificate::FIELDS;
use super::mark::FIELD;

/// The maximum number of keys of one secret: their fingerprints must fit into the mark.
const MAX_KEYS: usize = 100;
/// The maximum length of a key name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// The maximum length of a value, in bytes; Vault accepts about a mebibyte for all of them.
const MAX_VALUE_BYTES: usize = 4096;

/// Validates a spec.
pub(super) fn validate(with: &Map<String, Value>) -> Result<(), Invalid> {
    configuration::check(Executor::VaultSecret, with)?;
    let spec: configuration::VaultSecret = configuration::read(with)?;
    secret(&spec).map_err(|invalid| invalid.within("with"))
}

fn secret(spec: &configuration::VaultSecret) -> Result<(), Invalid> {
    let values = spec.values.keys().map(|key| ("values", key));
    let generated = spec.generate.keys().map(|key| ("generate", key));
    for (place, key) in values.chain(generated) {
        name(&format!("{place}.{key}"), key, spec.certificate.is_some())?;
    }
    if spec.certificate.as_ref().is_some_and(|one| !is_visible(&one.common_name)) {
        let detail = "must contain visible characters only";
        return Err(Invalid::new("certificate.common_name", detail));
    }
    if spec.values.len() + spec.generate.len() > MAX_KEYS {
        let detail =
            format!("must have at most {MAX_KEYS} keys, including generated ones; use two paths");
        return Err(Invalid::new("values", detail));
    }
    match spec.values.iter().find(|(_, value)| value.len() > MAX_VALUE_BYTES) {
        Some((key, _)) => {
            let detail = format!("must have at most {MAX_VALUE_BYTES} bytes");
            Err(Invalid::new(format!("values.{key}"), detail))
        }
        None => Ok(()),
    }
}

/// Whether every character is visible. Vault's custom metadata, which lists the names, permits no
/// others.
fn is_visible(text: &str) -> bool {
    // A combining mark is visible after another character.
    let has_shape = |c: char| match c {
        ' '..='~' => true,
        other => format!("a{other}").escape_debug().count() == 2,
    };
    text.chars().all(has_shape)
}

fn name(field: &str, key: &str, has_certificate: bool) -> Result<(), Invalid> {
    let detail = if key == FIELD {
        "is reserved for the mark that names the owner of the secret; choose another name"
            .to_owned()
    } else if has_certificate && FIELDS.contains(&key) {
        format!("is a field of the certificate; reserved names are {}", FIELDS.join(", "))
    } else if key.is_empty() || key.len() > MAX_NAME_BYTES || !is_visible(key) {
        format!("a key name must have 1 to {MAX_NAME_BYTES} bytes, with visible characters only")
    } else if key.contains('#') {
        "a key name must not contain #: references end with #key".to_owned()
    } else {
        return Ok(());
    };
    Err(Invalid::new(field.escape_debug().to_string(), detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_characters_are_recognized() {
        for (text, is) in [
            ("password", true),
            ("a b\"c\\d~", true),
            ("ключ-é-e\u{301}-คีย์-名", true),
            ("a\tb", false),
            ("a\u{7f}", false),
            ("no\u{a0}break", false),
            ("zero\u{200d}width", false),
            ("\u{202e}back", false),
        ] {
            assert_eq!(is_visible(text), is, "{text:?}");
        }
    }
}
