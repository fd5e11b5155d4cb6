//! What a published template is told apart by.

use std::collections::BTreeMap;

use super::print::Print;
use super::{Template, files_print};

/// Changes exactly when what the template says does, or one of its files. How it was written down, and
/// which commit it came from, does not matter.
pub fn hash(template: &Template, files: &BTreeMap<String, Vec<u8>>) -> String {
    let said = Template { commit: None, ..template.clone() };
    let said = serde_json::to_value(&said).expect("a template is plain data");
    let mut print = Print::default();
    print.value(&said).text(&files_print(files));
    print.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    #[test]
    fn only_what_is_said_counts() {
        let of = |text: &str, files: &[(&str, &str)]| {
            let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
            hash(&parse("template.yaml", text).unwrap(), &files)
        };
        let one = of("{name: a, version: 1.0}", &[]);
        for same in [
            "version: '1.0'\n# A remark.\nname: a\n",
            "{\"name\": \"a\", \"version\": \"1.0\", \"commit\": \"5e1f\"}",
            "{name: a, version: '1.0', resources: []}",
        ] {
            assert_eq!(of(same, &[]), one, "{same}");
        }
        for other in [
            of("{name: a, version: 1.1}", &[]),
            of("{name: a, version: 1.0, description: x}", &[]),
            of("{name: a, version: 1.0}", &[("a.tf", "")]),
        ] {
            assert_ne!(other, one);
        }
    }
}
