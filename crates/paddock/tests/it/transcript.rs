//! Transcripts of the documentation: every `console` block is executed with the real binary.
//!
//! The blocks of a page run in order in one shell, on an empty directory, with the page's own server.
//! Commands start with `$ ` (continued with `> `); the lines after a command are its output. The
//! output must match, except for values that differ between runs (`compare`). `docs/record` writes
//! the actual output into the pages instead.

mod compare;
mod page;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use self::compare::Bindings;
use self::page::{Page, Part, Step};
use self::shell::Shell;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Set by `docs/record`.
const RECORD: &str = "RECORD_TRANSCRIPTS";

macro_rules! pages {
    ($($name:ident: $file:literal,)*) => {
        /// Pages with transcripts.
        const PAGES: &[&str] = &[$($file),*];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                execute($file).await;
            }
        )*
    };
}

pages! {
    readme: "README.md",
    getting_started: "docs/getting-started.md",
    deployments: "docs/deployments.md",
    managed_services: "docs/managed-services.md",
    environments: "docs/environments.md",
}

#[test]
fn every_page_with_transcripts_is_executed() {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let all = docs.chain(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(String::from));
    for file in all.filter(|file| Path::new(file).extension().is_some_and(|end| end == "md")) {
        let has_transcripts = !Page::parse(&read(&file)).is_empty();
        assert_eq!(has_transcripts, PAGES.contains(&file.as_str()), "{file}");
    }
}

fn path(file: &str) -> PathBuf {
    Path::new(ROOT).join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap()
}

/// Executes the transcripts of a page, and compares or records their output.
async fn execute(file: &str) {
    let is_recording = std::env::var_os(RECORD).is_some();
    let mut page = Page::parse(&read(file));
    let mut shell = Shell::open(&path("examples"));
    let mut bindings = Bindings::new(&shell.address);
    for n in 0..page.parts.len() {
        match &mut page.parts[n] {
            Part::Text(_) => {}
            Part::Needs(systems) => shell.provide(systems).await,
            Part::Step(step) => {
                let actual = run(&mut shell, step, &bindings, file);
                let difference = bindings.compare(&step.output, &actual);
                if is_recording {
                    step.output = bindings.record(&step.output, &actual);
                    step.command = bindings.record_command(&step.command);
                    // After each step: what was recorded before a failing command is of use.
                    fs::write(path(file), page.render()).unwrap();
                } else if let Some(difference) = difference {
                    panic!(
                        "{file}:{}: $ {}\n{difference}\nIf the change is intended: docs/record",
                        step.line, step.command
                    );
                }
            }
        }
    }
}

/// Runs a step, and checks its exit code: a command may fail only if its documented output says so.
fn run(shell: &mut Shell, step: &Step, bindings: &Bindings, file: &str) -> Vec<String> {
    let (code, output) = shell.run(&bindings.substitute(&step.command));
    let fails = step.output.iter().any(|line| line.starts_with("error:"));
    assert_eq!(
        code != 0,
        fails,
        "{file}:{}: $ {} exited with {code}:\n{}",
        step.line,
        step.command,
        output.join("\n")
    );
    output
}
