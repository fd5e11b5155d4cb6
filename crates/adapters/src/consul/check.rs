//! Validation of `consul-kv` specs, beyond the checks of templates.

use model::Invalid;
use model::template::{Executor, configuration};
use serde_json::{Map, Value};

use super::batch::{MAX_BYTES, in_base64};
use super::place::is_mark;
use super::{drift, mark};

/// The maximum number of keys of one resource.
const MAX_KEYS: usize = 1000;
/// The maximum length of a key, including its prefix.
const MAX_KEY_BYTES: usize = 512;
/// The maximum length of all names together, because the mark lists them.
const MAX_NAMES_BYTES: usize = 64 << 10;
/// The maximum length of a value: in base64 it must fit into a transaction together with the mark.
const MAX_VALUE_BYTES: usize = 256 << 10;
/// The maximum length of all values together.
const MAX_VALUES_BYTES: usize = 4 << 20;
/// The maximum depth of a prefix: all its folders are read in one transaction.
const MAX_FOLDERS: usize = 32;

const _: () = assert!(
    in_base64(MAX_VALUE_BYTES) + in_base64(MAX_NAMES_BYTES + MAX_KEYS * 24) < MAX_BYTES - 8192
);

/// Parses and validates a spec.
pub(super) fn parse(with: &Map<String, Value>) -> Result<configuration::ConsulKv, Invalid> {
    configuration::check(Executor::ConsulKv, with)?;
    let spec: configuration::ConsulKv = configuration::read(with)?;
    prefix(&spec.prefix)?;
    let mut total = 0;
    for (name, value) in &spec.values {
        let field = format!("with.values.{name}");
        key(&field, &spec.prefix, name)?;
        let bytes = drift::bytes(value).len();
        if bytes > MAX_VALUE_BYTES {
            let most = MAX_VALUE_BYTES >> 10;
            let detail = format!("must have at most {most} KiB; it has {bytes} bytes");
            return Err(Invalid::new(field, detail));
        }
        total += bytes;
    }
    let names: usize = spec.values.keys().map(|name| mark::quoted(name)).sum();
    let sums = [
        (spec.values.len() > MAX_KEYS, format!("{MAX_KEYS} keys")),
        (names > MAX_NAMES_BYTES, format!("{} KiB of names", MAX_NAMES_BYTES >> 10)),
        (total > MAX_VALUES_BYTES, format!("{} MiB of values", MAX_VALUES_BYTES >> 20)),
    ];
    match sums.into_iter().find(|(is_more, _)| *is_more) {
        Some((_, most)) => {
            let detail = format!("must have at most {most}; split the resource");
            Err(Invalid::new("with.values", detail))
        }
        None => Ok(spec),
    }
}

fn prefix(prefix: &str) -> Result<(), Invalid> {
    let Some(folder) = prefix.strip_suffix('/') else {
        let detail = format!("must end with /, like {prefix}/");
        return Err(Invalid::new("with.prefix", detail));
    };
    if folder.split('/').count() > MAX_FOLDERS {
        let detail = format!("must have at most {MAX_FOLDERS} folders");
        return Err(Invalid::new("with.prefix", detail));
    }
    key("with.prefix", "", folder)
}

fn key(field: &str, prefix: &str, name: &str) -> Result<(), Invalid> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_allowed = |c: char| !c.is_control() && !c.is_whitespace() && !"?#%\\".contains(c);
    let detail = if prefix.len() + name.len() > MAX_KEY_BYTES {
        format!("must have at most {MAX_KEY_BYTES} bytes, including the prefix")
    } else if !name.split('/').all(is_plain) || !name.chars().all(is_allowed) {
        "must be a name like db/host, without leading, trailing or double /, .., spaces, ?, #, % \
         or \\"
            .to_owned()
    } else if name.split('/').any(is_mark) {
        ".paddock is reserved for the key that names the owner of a prefix; choose another name"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Invalid::new(field, detail))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(with: &Value) -> String {
        let with = with.as_object().cloned().unwrap_or_default();
        parse(&with).map_or_else(|invalid| invalid.to_string(), |_| "valid".into())
    }

    #[test]
    fn valid_specs_are_accepted() {
        let with = json!({"prefix": "shop/web-1/", "values": {"db/host": "a", "é": 1, "x": null}});
        assert_eq!(result(&with), "valid");
        let long = "x".repeat(MAX_VALUE_BYTES);
        assert_eq!(result(&json!({"prefix": "a/", "values": {"b": long}})), "valid");
    }

    #[test]
    fn invalid_specs_are_rejected_with_a_message() {
        let many: Map<String, Value> =
            (0..=MAX_KEYS).map(|i| (format!("k{i}"), Value::from(i))).collect();
        let names: Map<String, Value> =
            (0..300).map(|i| (format!("{i}{}", "n".repeat(300)), Value::from(i))).collect();
        let big: Map<String, Value> =
            (0..17).map(|i| (format!("{i}"), "v".repeat(MAX_VALUE_BYTES).into())).collect();
        for (with, message) in [
            (json!({"prefix": "shop"}), "with.prefix: must end with /, like shop/"),
            (json!({"prefix": "a b/"}), "with.prefix: must be a name like"),
            (json!({"prefix": "a/../b/"}), "with.prefix: must be a name like"),
            (json!({"prefix": "a/".repeat(40)}), "with.prefix: must have at most 32 folders"),
            (json!({"prefix": "a/.paddock/"}), "with.prefix: .paddock is reserved"),
            (json!({"prefix": "a/", "values": {"b/": 1}}), "with.values.b/: must be a name like"),
            (json!({"prefix": "a/", "values": {"b?c": 1}}), "with.values.b?c: must be a name like"),
            (json!({"prefix": "a/", "values": {".paddock": 1}}), "choose another name"),
            (json!({"prefix": "a/", "values": {"b/.paddock": 1}}), "choose another name"),
            (json!({"prefix": "a/", "values": {"k".repeat(511): 1}}), "at most 512 bytes"),
            (
                json!({"prefix": "a/", "values": {"b": "x".repeat(MAX_VALUE_BYTES + 1)}}),
                "with.values.b: must have at most 256 KiB; it has 262145 bytes",
            ),
            (json!({"prefix": "a/", "values": many}), "at most 1000 keys"),
            (json!({"prefix": "a/", "values": names}), "at most 64 KiB of names"),
            (json!({"prefix": "a/", "values": big}), "at most 4 MiB of values"),
            (json!({"prefix": "a/", "vaules": {}}), "unknown field"),
        ] {
            let result = result(&with);
            assert!(result.contains(message), "{result}");
        }
    }
}
