//! What Vault can be told, beyond what every template is checked for.

use model::Invalid;
use model::template::{Executor, with};
use serde_json::{Map, Value};

use super::certificate::FIELDS;
use super::mark::FIELD;

/// The most keys of one secret: their prints must fit beside it.
const MAX_KEYS: usize = 100;
/// The longest name of a key, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// The longest value, in bytes; Vault takes about a mebibyte for all of them.
const MAX_VALUE_BYTES: usize = 4096;

/// Can Vault be told this?
pub(super) fn all(with: &Map<String, Value>) -> Result<(), Invalid> {
    with::check(Executor::VaultSecret, with)?;
    let told: with::VaultSecret = with::read(with)?;
    secret(&told).map_err(|invalid| invalid.within("with"))
}

fn secret(told: &with::VaultSecret) -> Result<(), Invalid> {
    let values = told.values.keys().map(|key| ("values", key));
    let generated = told.generate.keys().map(|key| ("generate", key));
    for (place, key) in values.chain(generated) {
        name(&format!("{place}.{key}"), key, told.certificate.is_some())?;
    }
    if told.certificate.as_ref().is_some_and(|one| !is_visible(&one.common_name)) {
        let detail = "must have visible characters only";
        return Err(Invalid::new("certificate.common_name", detail));
    }
    if told.values.len() + told.generate.len() > MAX_KEYS {
        let detail = format!("has more than {MAX_KEYS} keys with those to generate; use two paths");
        return Err(Invalid::new("values", detail));
    }
    match told.values.iter().find(|(_, value)| value.len() > MAX_VALUE_BYTES) {
        Some((key, _)) => {
            let detail = format!("must have at most {MAX_VALUE_BYTES} bytes");
            Err(Invalid::new(format!("values.{key}"), detail))
        }
        None => Ok(()),
    }
}

/// Does every character have a shape? Vault takes no others beside a secret, where names are noted.
fn is_visible(text: &str) -> bool {
    // Behind another character, a mark that goes above it is one.
    let has_shape = |c: char| match c {
        ' '..='~' => true,
        other => format!("a{other}").escape_debug().count() == 2,
    };
    text.chars().all(has_shape)
}

fn name(field: &str, key: &str, has_certificate: bool) -> Result<(), Invalid> {
    let detail = if key == FIELD {
        "is where Paddock keeps whose the secret is; call it otherwise".to_owned()
    } else if has_certificate && FIELDS.contains(&key) {
        format!("is part of the certificate; these are its names: {}", FIELDS.join(", "))
    } else if key.is_empty() || key.len() > MAX_NAME_BYTES || !is_visible(key) {
        format!("the name of a key must have from 1 to {MAX_NAME_BYTES} bytes, all of them visible")
    } else if key.contains('#') {
        "the name of a key must not have # in it: references end with #key".to_owned()
    } else {
        return Ok(());
    };
    Err(Invalid::new(field.escape_debug().to_string(), detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_visible() {
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
