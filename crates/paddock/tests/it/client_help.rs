//! The help of every command, and completions.

use std::process::Command;

use super::process::{BINARY, Outcome};

fn run(words: &[&str]) -> Outcome {
    Outcome::new(&words.join(" "), Command::new(BINARY).args(words).output().unwrap())
}

#[test]
fn every_help_has_an_example_that_fits() {
    let mut open = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push("--help");
        let help = run(&words).succeeds().stdout;
        let example = help.split("Example:\n").nth(1).unwrap_or_else(|| panic!("{command:?}"));
        let fits = example.lines().any(|line| is_of(line, &command));
        assert!(fits, "{command:?} is not in its own example");
        open.extend(subcommands(&help).map(|name| [command.clone(), vec![name]].concat()));
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

/// Whether a line of an example is of that command. Between `service` and its verb stands the kind.
fn is_of(line: &str, command: &[String]) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut wanted: Vec<&str> =
        ["paddock"].into_iter().chain(command.iter().map(String::as_str)).collect();
    if let ["paddock", "service", verb] = wanted[..]
        && verb != "kinds"
    {
        wanted = vec!["paddock", "service", "kafka", verb];
    }
    words.starts_with(&wanted)
}

fn subcommands(help: &str) -> impl Iterator<Item = String> {
    let section = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from)
}

#[test]
fn the_help_documents_the_exit_codes() {
    run(&["--help"]).succeeds().prints(&["Exit codes: 0 done, 1 failed", "2 the command line"]);
    run(&["no-such-command"]).fails(2, &["unrecognized subcommand"]);
    run(&[]).fails(2, &["Usage: paddock"]);
}

#[test]
fn secrets_can_not_be_given_on_the_command_line() {
    run(&["login", "--password", "x"]).fails(2, &["--password"]);
    run(&["--token", "x", "whoami"]).fails(2, &["--token"]);
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        run(&["completions", shell]).succeeds().prints(&["deployment", "service-account", "kinds"]);
    }
    run(&["completions", "cmd"]).fails(2, &["bash"]);
}
