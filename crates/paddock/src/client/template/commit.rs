//! Determines the git commit of a folder.

use std::path::Path;
use std::process::{Command, Stdio};

/// Current commit of the working copy that contains `folder`; `None` without git or a commit.
pub(super) fn head(folder: &Path) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["rev-parse", "--verify", "--quiet", "HEAD"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let stdout = String::from_utf8(output.stdout).ok()?;
    Some(stdout.trim())
        .filter(|commit| output.status.success() && is_commit(commit))
        .map(Into::into)
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hash_is_a_commit() {
        for (text, want) in [
            ("0123456789abcdef0123456789abcdef01234567", true),
            (&"a".repeat(64), true),
            ("HEAD", false),
            ("", false),
        ] {
            assert_eq!(is_commit(text), want, "{text}");
        }
    }

    #[test]
    fn folder_outside_a_working_copy_has_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(head(folder.path()), None);
        assert_eq!(head(&folder.path().join("nowhere")), None);
    }
}
