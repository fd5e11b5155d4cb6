//! What Consul can be told, beyond what templates are checked for.

use model::Invalid;
use model::template::{Executor, with};
use serde_json::{Map, Value};

use super::batch::{MAX_BYTES, in_base64};
use super::place::is_mark;
use super::{drift, mark};

/// The most keys of one resource.
const MAX_KEYS: usize = 1000;
/// The longest name of a key, with its prefix.
const MAX_KEY_BYTES: usize = 512;
/// All names together, for they are listed in the mark.
const MAX_NAMES_BYTES: usize = 64 << 10;
/// The longest value: in base64 it must fit into a transaction, with the mark beside it.
const MAX_VALUE_BYTES: usize = 256 << 10;
/// All values together.
const MAX_VALUES_BYTES: usize = 4 << 20;
/// The most folders that a prefix has: each is looked at in one transaction.
const MAX_FOLDERS: usize = 32;

const _: () = assert!(
    in_base64(MAX_VALUE_BYTES) + in_base64(MAX_NAMES_BYTES + MAX_KEYS * 24) < MAX_BYTES - 8192
);

/// What is told, if Consul can be told that.
pub(super) fn told(with: &Map<String, Value>) -> Result<with::ConsulKv, Invalid> {
    with::check(Executor::ConsulKv, with)?;
    let told: with::ConsulKv = with::read(with)?;
    prefix(&told.prefix)?;
    let mut total = 0;
    for (name, value) in &told.values {
        let field = format!("with.values.{name}");
        key(&field, &told.prefix, name)?;
        let bytes = drift::bytes(value).len();
        if bytes > MAX_VALUE_BYTES {
            let most = MAX_VALUE_BYTES >> 10;
            let detail = format!("has {bytes} bytes; Consul takes {most} KiB with a transaction");
            return Err(Invalid::new(field, detail));
        }
        total += bytes;
    }
    let names: usize = told.values.keys().map(|name| mark::quoted(name)).sum();
    let sums = [
        (told.values.len() > MAX_KEYS, format!("{MAX_KEYS} keys")),
        (names > MAX_NAMES_BYTES, format!("{} KiB of names", MAX_NAMES_BYTES >> 10)),
        (total > MAX_VALUES_BYTES, format!("{} MiB of values", MAX_VALUES_BYTES >> 20)),
    ];
    match sums.into_iter().find(|(is_more, _)| *is_more) {
        Some((_, most)) => {
            let detail = format!("one resource has at most {most}: make it several");
            Err(Invalid::new("with.values", detail))
        }
        None => Ok(told),
    }
}

fn prefix(prefix: &str) -> Result<(), Invalid> {
    let Some(folder) = prefix.strip_suffix('/') else {
        let detail = format!("must end with /, like {prefix}/: it is a folder of keys");
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
        format!("must have at most {MAX_KEY_BYTES} bytes, with the prefix")
    } else if !name.split('/').all(is_plain) || !name.chars().all(is_allowed) {
        "must be a name like db/host: neither first nor last a /, no //, .., blanks, ?, #, % or \\"
            .to_owned()
    } else if name.split('/').any(is_mark) {
        ".paddock is what Paddock calls the key that says whose a prefix is; take another name"
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

    fn said(with: &Value) -> String {
        let with = with.as_object().cloned().unwrap_or_default();
        told(&with).map_or_else(|invalid| invalid.to_string(), |_| "fine".into())
    }

    #[test]
    fn what_can_be_told() {
        let with = json!({"prefix": "shop/web-1/", "values": {"db/host": "a", "é": 1, "x": null}});
        assert_eq!(said(&with), "fine");
        let long = "x".repeat(MAX_VALUE_BYTES);
        assert_eq!(said(&json!({"prefix": "a/", "values": {"b": long}})), "fine");
    }

    #[test]
    fn what_can_not_be_told_is_a_sentence() {
        let many: Map<String, Value> =
            (0..=MAX_KEYS).map(|i| (format!("k{i}"), Value::from(i))).collect();
        let names: Map<String, Value> =
            (0..300).map(|i| (format!("{i}{}", "n".repeat(300)), Value::from(i))).collect();
        let big: Map<String, Value> =
            (0..17).map(|i| (format!("{i}"), "v".repeat(MAX_VALUE_BYTES).into())).collect();
        for (with, sentence) in [
            (json!({"prefix": "shop"}), "with.prefix: must end with /, like shop/"),
            (json!({"prefix": "a b/"}), "with.prefix: must be a name like"),
            (json!({"prefix": "a/../b/"}), "with.prefix: must be a name like"),
            (json!({"prefix": "a/".repeat(40)}), "with.prefix: must have at most 32 folders"),
            (json!({"prefix": "a/.paddock/"}), "with.prefix: .paddock is what"),
            (json!({"prefix": "a/", "values": {"b/": 1}}), "with.values.b/: must be a name like"),
            (json!({"prefix": "a/", "values": {"b?c": 1}}), "with.values.b?c: must be a name like"),
            (json!({"prefix": "a/", "values": {".paddock": 1}}), "take another name"),
            (json!({"prefix": "a/", "values": {"b/.paddock": 1}}), "take another name"),
            (json!({"prefix": "a/", "values": {"k".repeat(511): 1}}), "at most 512 bytes"),
            (
                json!({"prefix": "a/", "values": {"b": "x".repeat(MAX_VALUE_BYTES + 1)}}),
                "with.values.b: has 262145 bytes; Consul takes 256 KiB",
            ),
            (json!({"prefix": "a/", "values": many}), "at most 1000 keys"),
            (json!({"prefix": "a/", "values": names}), "at most 64 KiB of names"),
            (json!({"prefix": "a/", "values": big}), "at most 4 MiB of values"),
            (json!({"prefix": "a/", "vaules": {}}), "unknown field"),
        ] {
            let said = said(&with);
            assert!(said.contains(sentence), "{said}");
        }
    }
}
