//! The command-line dialect of the program, which depends on its version.

use std::path::Path;

/// The first version with `show -json`.
const SHOWS_PLANS: Dialect = Dialect(0, 12, 0);
/// The first version with `-json` for plan, apply and destroy.
const HAS_STREAM: Dialect = Dialect(0, 15, 3);

/// The version of the program. OpenTofu continues Terraform's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dialect(u32, u32, u32);

impl Dialect {
    /// Parses the output of `version`. An unknown version is assumed to be new.
    pub(super) fn parse(text: &str) -> Self {
        let words = text.split_whitespace();
        let found = words.filter_map(|word| word.strip_prefix('v')).find_map(|version| {
            let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
            Some(Self(parts.next()??, parts.next()??, parts.next()??))
        });
        found.unwrap_or(Self(1, 0, 0))
    }

    /// Whether this version reports progress as JSON.
    pub(super) fn has_stream(self) -> bool {
        self >= HAS_STREAM
    }

    /// Whether this version prints plans as JSON.
    pub(super) fn shows_plans(self) -> bool {
        self >= SHOWS_PLANS
    }

    pub(super) fn init() -> Vec<String> {
        args(&["init", "-input=false", "-no-color", "-reconfigure"])
    }

    pub(super) fn output() -> Vec<String> {
        args(&["output", "-json", "-no-color"])
    }

    pub(super) fn show(plan: &Path) -> Vec<String> {
        with_path(args(&["show", "-json", "-no-color"]), "", plan)
    }

    /// Creates a plan; its exit status tells whether there are changes.
    pub(super) fn plan(self) -> Vec<String> {
        self.command(&["plan", "-detailed-exitcode", "-input=false"])
    }

    /// Applies without confirmation.
    pub(super) fn apply(self) -> Vec<String> {
        self.command(&["apply", "-auto-approve", "-input=false"])
    }

    /// Applies an existing plan.
    pub(super) fn apply_plan(self, plan: &Path) -> Vec<String> {
        with_path(self.command(&["apply", "-input=false"]), "", plan)
    }

    pub(super) fn destroy(self) -> Vec<String> {
        let is_old = !self.shows_plans();
        self.command(&["destroy", if is_old { "-force" } else { "-auto-approve" }])
    }

    pub(super) fn import(address: &str, id: &str, variables: &Path) -> Vec<String> {
        let command = args(&["import", "-input=false", "-no-color"]);
        let mut command = with_path(command, "-var-file=", variables);
        command.extend(args(&[address, id]));
        command
    }

    fn command(self, command: &[&str]) -> Vec<String> {
        let mut command = args(command);
        command.push("-no-color".to_owned());
        if self.has_stream() {
            command.push("-json".to_owned());
        }
        command
    }
}

/// Appends an argument with a path: an option with a file, or the file.
pub(super) fn with_path(mut command: Vec<String>, option: &str, path: &Path) -> Vec<String> {
    command.push(format!("{option}{}", path.display()));
    command
}

fn args(all: &[&str]) -> Vec<String> {
    all.iter().map(|arg| (*arg).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_the_output_of_each_program() {
        for (text, version) in [
            ("Terraform v0.11.11\n\nYour version of Terraform is out of date!", (0, 11, 11)),
            ("Terraform v1.15.5\non linux_amd64\n", (1, 15, 5)),
            ("OpenTofu v1.8.0-beta1\non linux_arm64", (1, 8, 0)),
            ("Terraform v0.15.3-dev", (0, 15, 3)),
            ("", (1, 0, 0)),
            ("very verbose v", (1, 0, 0)),
        ] {
            let (major, minor, patch) = version;
            assert_eq!(Dialect::parse(text), Dialect(major, minor, patch), "{text}");
        }
    }

    #[test]
    fn commands_suit_each_version() {
        for (version, shows, streams, destroy) in [
            (Dialect(0, 11, 14), false, false, "-force"),
            (Dialect(0, 12, 0), true, false, "-auto-approve"),
            (Dialect(0, 14, 11), true, false, "-auto-approve"),
            (Dialect(0, 15, 2), true, false, "-auto-approve"),
            (Dialect(0, 15, 3), true, true, "-auto-approve"),
            (Dialect(1, 15, 5), true, true, "-auto-approve"),
        ] {
            assert_eq!(version.shows_plans(), shows, "{version:?}");
            assert_eq!(version.has_stream(), streams, "{version:?}");
            assert_eq!(version.destroy()[1], destroy, "{version:?}");
            assert_eq!(version.plan().contains(&"-json".to_owned()), streams, "{version:?}");
        }
    }
}
