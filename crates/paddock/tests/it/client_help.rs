//! Help pages and completions.

use std::fmt::Write as _;
use std::process::Command;

use super::process::{BINARY, Outcome};

fn run(words: &[&str]) -> Outcome {
    Outcome::new(&words.join(" "), Command::new(BINARY).args(words).output().unwrap())
}

#[test]
fn every_help_page_has_a_matching_example() {
    let mut open = vec![Vec::<String>::new()];
    let mut count = 0;
    while let Some(command) = open.pop() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push("--help");
        let help = run(&words).succeeds().stdout;
        let example = help.split("Example:\n").nth(1).unwrap_or_else(|| panic!("{command:?}"));
        let fits = example.lines().any(|line| is_for(line, &command));
        assert!(fits, "{command:?} is not in its own example");
        open.extend(subcommands(&help).map(|name| [command.clone(), vec![name]].concat()));
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn snapshot_of_every_help_page_is_current() {
    let mut text = String::from("Help of every command, with the global options only once.\n");
    let mut open = vec![Vec::<String>::new()];
    while let Some(command) = open.pop() {
        let mut page = Command::new(BINARY);
        let page = page.args(&command).arg("--help").env_clear().output().unwrap();
        let page = Outcome::new(&command.join(" "), page).succeeds().stdout;
        let title = [&["paddock".to_owned()], &command[..]].concat().join(" ");
        write!(text, "\n==== {title} ====\n\n{}\n", without_globals(&page, &command).trim())
            .unwrap();
        let below: Vec<String> = subcommands(&page).collect();
        // The last one is popped first.
        open.extend(below.into_iter().rev().map(|name| [command.clone(), vec![name]].concat()));
    }
    testing::assert_snapshot("help.txt", &text);
}

/// The page without the section of global options, unless it is the top page.
fn without_globals(page: &str, command: &[String]) -> String {
    match page.split_once("Global options:\n") {
        Some((before, rest)) if !command.is_empty() => {
            let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
        _ => page.to_owned(),
    }
}

/// Whether an example line is for this command. `service` commands have the kind before the verb.
fn is_for(line: &str, command: &[String]) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut expected: Vec<&str> =
        ["paddock"].into_iter().chain(command.iter().map(String::as_str)).collect();
    if let ["paddock", "service", verb] = expected[..]
        && verb != "kinds"
    {
        expected = vec!["paddock", "service", "kafka", verb];
    }
    words.starts_with(&expected)
}

fn subcommands(help: &str) -> impl Iterator<Item = String> {
    let section = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from)
}

#[test]
fn help_documents_the_exit_codes() {
    run(&["--help"])
        .succeeds()
        .prints(&["Exit codes: 0 success, 1 failure", "2 invalid command line"]);
    run(&["no-such-command"]).fails(2, &["unrecognized subcommand"]);
    run(&[]).fails(2, &["Usage: paddock"]);
}

#[test]
fn secrets_are_not_accepted_on_the_command_line() {
    run(&["login", "--password", "x"]).fails(2, &["--password"]);
    run(&["--token", "x", "whoami"]).fails(2, &["--token"]);
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        run(&["completions", shell]).succeeds().prints(&["deployment", "service-account", "kinds"]);
    }
    run(&["completions", "cmd"]).fails(2, &["bash"]);
}
