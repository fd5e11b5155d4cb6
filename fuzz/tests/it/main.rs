//! Runs every fuzz target over its corpus, without instrumentation: a regression test.

use std::fs;
use std::path::Path;
use std::process::Command;

macro_rules! targets {
    ($($target:ident)*) => {
        const TARGETS: &[&str] = &[$(stringify!($target)),*];
        $(mod $target {
            #[test]
            fn corpus_passes() {
                super::run(stringify!($target), env!(concat!("CARGO_BIN_EXE_", stringify!($target))));
            }
        })*
    };
}

targets!(archive catalog config dns expression jwt layer manifest quantity search template);

/// Names of the files in a directory of this crate.
fn names(directory: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn run(target: &str, program: &str) {
    let corpus = format!("corpus/{target}");
    let inputs = names(&corpus);
    assert!(inputs.len() >= 10, "{target} has {} inputs", inputs.len());
    let mut command = Command::new(program);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-timeout=60", "-rss_limit_mb=1024"]);
    // Given as files, not as a directory: libFuzzer runs each once and changes nothing.
    command.args(inputs.iter().map(|name| format!("{corpus}/{name}")));
    let output = command.output().expect("the target was built");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{target}: {}\n{log}", output.status);
    let executed = log.lines().filter(|line| line.starts_with("Executed ")).count();
    assert_eq!(executed, inputs.len(), "{log}");
}

#[test]
fn every_target_is_tested_and_has_a_corpus() {
    let sources: Vec<_> =
        names("fuzz_targets").iter().map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(sources, TARGETS);
    assert_eq!(names("corpus"), TARGETS);
}
