//! The commit that a folder is at, if git knows it.

use std::path::Path;
use std::process::{Command, Stdio};

/// The commit that the working copy around `folder` is at. Without git, or a commit, there is none.
pub(super) fn of(folder: &Path) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["rev-parse", "--verify", "--quiet", "HEAD"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim()).filter(|commit| output.status.success() && is_commit(commit)).map(Into::into)
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
    fn a_folder_that_git_does_not_know_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()), None);
        assert_eq!(of(&folder.path().join("nowhere")), None);
    }
}
