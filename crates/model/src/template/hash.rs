//! The hash of a published template.

use std::collections::BTreeMap;

use super::fingerprint::Fingerprint;
use super::{Template, files_fingerprint};

/// The hash of a template and its files. Independent of formatting and of the source commit.
pub fn hash(template: &Template, files: &BTreeMap<String, Vec<u8>>) -> String {
    let content = Template { commit: None, ..template.clone() };
    let content = serde_json::to_value(&content).expect("a template is plain data");
    let mut fingerprint = Fingerprint::default();
    fingerprint.value(&content).text(&files_fingerprint(files));
    fingerprint.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    #[test]
    fn hash_ignores_formatting_and_commit() {
        let hash_of = |text: &str, files: &[(&str, &str)]| {
            let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
            hash(&parse("template.yaml", text).unwrap(), &files)
        };
        let one = hash_of("{name: a, version: 1.0}", &[]);
        for same in [
            "version: '1.0'\n# A remark.\nname: a\n",
            "{\"name\": \"a\", \"version\": \"1.0\", \"commit\": \"5e1f\"}",
            "{name: a, version: '1.0', resources: []}",
        ] {
            assert_eq!(hash_of(same, &[]), one, "{same}");
        }
        for other in [
            hash_of("{name: a, version: 1.1}", &[]),
            hash_of("{name: a, version: 1.0, description: x}", &[]),
            hash_of("{name: a, version: 1.0}", &[("a.tf", "")]),
        ] {
            assert_ne!(other, one);
        }
    }
}
