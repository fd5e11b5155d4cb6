//! THREAT-MODEL.md: every threat names a test, and every named test exists.

use std::fs;
use std::path::{Path, PathBuf};

use crate::house::root;

/// The tests in a row of a table of threats, by their names; none for other lines.
fn tests_of(line: &str) -> Option<Vec<String>> {
    let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let is_threat = cells[0].split('.').all(|part| part.parse::<u32>().is_ok());
    let [_, _, _, tests, _] = cells[..] else {
        assert!(!is_threat, "a threat has five columns: {line}");
        return None;
    };
    is_threat.then(|| tests.split(", ").map(|test| test.trim_matches('`').to_owned()).collect())
}

/// The files that may contain a test, and its function.
fn places(test: &str) -> Option<(Vec<PathBuf>, String)> {
    let (krate, path) = test.split_once(' ')?;
    if krate == "fuzz" {
        let file = format!("fuzz/fuzz_targets/{path}.rs");
        return Some((vec![file.into()], "fuzz_target!(".into()));
    }
    let (module, function) = path.rsplit_once("::")?;
    let file = |folder: &Path, module: &str| folder.join(module.replace("::", "/") + ".rs");
    let mut files = Vec::new();
    if let Some(krate) = krate.strip_suffix("::it") {
        files.push(file(&Path::new("crates").join(krate).join("tests/it"), module));
    } else {
        let folder = Path::new("crates").join(krate).join("src");
        files.push(file(&folder, module));
        files.extend(module.strip_suffix("::tests").map(|module| file(&folder, module)));
    }
    Some((files, format!("fn {function}(")))
}

fn exists(test: &str) -> bool {
    let Some((files, function)) = places(test) else { return false };
    let texts = files.iter().filter_map(|file| fs::read_to_string(root().join(file)).ok());
    texts.into_iter().any(|text| text.contains(&function))
}

#[test]
fn every_threat_names_tests_that_exist() {
    let document = fs::read_to_string(root().join("THREAT-MODEL.md")).unwrap();
    let threats: Vec<_> = document.lines().filter_map(tests_of).collect();
    assert!(threats.len() > 50, "only {} threats were found", threats.len());
    let is_missing = |test: &&String| !exists(test);
    let missing: Vec<_> = threats.iter().flatten().filter(is_missing).collect();
    assert!(missing.is_empty(), "THREAT-MODEL.md names tests that do not exist: {missing:#?}");
}

#[test]
fn misspelled_tests_are_found() {
    let row = "| 1.2 | a | b | `paddock::it house::no_tracked_file_is_empty`, `a b` | – |";
    let tests = tests_of(row).unwrap();
    assert_eq!(tests, ["paddock::it house::no_tracked_file_is_empty", "a b"]);
    assert_eq!(tests_of("| # | Threat | Control | Test | Residual risk |"), None);
    assert!(exists(&tests[0]) && exists("base tree::tests::symlinks_are_not_followed"));
    for misspelled in ["house::no_tracked_file_is_empty", "paddock::it house::no_file", "fuzz x"] {
        assert!(!exists(misspelled), "{misspelled}");
    }
}
