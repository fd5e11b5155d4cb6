//! How the program is spoken to, which has changed over the years: by its version.

use std::path::Path;

/// From here on plans can be shown as JSON.
const SHOWS_PLANS: Dialect = Dialect(0, 12, 0);
/// From here on plan, apply and destroy tell what they do as JSON, line by line.
const HAS_STREAM: Dialect = Dialect(0, 15, 3);

/// The version of the program: OpenTofu counts on from Terraform's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dialect(u32, u32, u32);

impl Dialect {
    /// From what `version` writes. Whoever says none is taken for a new one.
    pub(super) fn parse(text: &str) -> Self {
        let words = text.split_whitespace();
        let found = words.filter_map(|word| word.strip_prefix('v')).find_map(|version| {
            let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
            Some(Self(parts.next()??, parts.next()??, parts.next()??))
        });
        found.unwrap_or(Self(1, 0, 0))
    }

    /// Does it tell what it does in a form for programs?
    pub(super) fn has_stream(self) -> bool {
        self >= HAS_STREAM
    }

    /// Can a plan be read by others?
    pub(super) fn shows_plans(self) -> bool {
        self >= SHOWS_PLANS
    }

    pub(super) fn init() -> Vec<String> {
        words(&["init", "-input=false", "-no-color", "-reconfigure"])
    }

    pub(super) fn output() -> Vec<String> {
        words(&["output", "-json", "-no-color"])
    }

    pub(super) fn show(plan: &Path) -> Vec<String> {
        with_path(words(&["show", "-json", "-no-color"]), "", plan)
    }

    /// Makes a plan and says by its status whether it would change anything.
    pub(super) fn plan(self) -> Vec<String> {
        self.told(&["plan", "-detailed-exitcode", "-input=false"])
    }

    /// Applies without asking.
    pub(super) fn apply(self) -> Vec<String> {
        self.told(&["apply", "-auto-approve", "-input=false"])
    }

    /// Applies a plan as it is.
    pub(super) fn apply_plan(self, plan: &Path) -> Vec<String> {
        with_path(self.told(&["apply", "-input=false"]), "", plan)
    }

    pub(super) fn destroy(self) -> Vec<String> {
        let is_old = !self.shows_plans();
        self.told(&["destroy", if is_old { "-force" } else { "-auto-approve" }])
    }

    pub(super) fn import(address: &str, id: &str, variables: &Path) -> Vec<String> {
        let command = words(&["import", "-input=false", "-no-color"]);
        let mut command = with_path(command, "-var-file=", variables);
        command.extend(words(&[address, id]));
        command
    }

    fn told(self, command: &[&str]) -> Vec<String> {
        let mut command = words(command);
        command.push("-no-color".to_owned());
        if self.has_stream() {
            command.push("-json".to_owned());
        }
        command
    }
}

/// A command with one more word: an option that names a file, or the file.
pub(super) fn with_path(mut command: Vec<String>, option: &str, path: &Path) -> Vec<String> {
    command.push(format!("{option}{}", path.display()));
    command
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_each_program_writes() {
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
    fn each_version_is_told_what_it_understands() {
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
