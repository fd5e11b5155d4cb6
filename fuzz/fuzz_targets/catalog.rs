//! Files of the administrator: kinds, quotas, scaling pools, denied owners. Errors name the file
//! and a line that exists.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use model::kind::{self, Catalog};
use model::yaml::FileError;
use model::{quota, scaling};

const FILE: &str = "file.yaml";
static BUILT_IN: LazyLock<Catalog> = LazyLock::new(Catalog::built_in);

fuzz_target!(|text: &str| {
    match kind::parse(FILE, text) {
        Ok(kind) => {
            assert_eq!(kind::parse(FILE, text).as_ref(), Ok(&kind), "parsing is deterministic");
            // Every kind has what the API shows of it.
            let _ = (kind.default_cloud(), kind.default_version(), kind.trial_type());
            let _ = kind.order_columns();
            let name = kind.name.clone();
            if let Ok(catalog) = BUILT_IN.with(vec![kind]) {
                assert!(catalog.kind(&name).is_some(), "{name}");
            }
        }
        Err(error) => check(&error, text),
    }
    let errors = [
        quota::parse_for(FILE, text, &BUILT_IN).err(),
        scaling::parse_for(FILE, text, &BUILT_IN).err(),
        quota::parse_deny_list(FILE, text).err(),
    ];
    for error in errors.iter().flatten() {
        check(error, text);
    }
});

fn check(error: &FileError, text: &str) {
    assert_eq!(error.file, FILE);
    assert!(!error.reason.is_empty());
    // YAML has more line ends than the end of a line of text.
    let ends = text.chars().filter(|c| matches!(c, '\n' | '\r')).count();
    assert!(error.line.is_none_or(|line| (1..=ends + 2).contains(&line)), "{error}");
}
