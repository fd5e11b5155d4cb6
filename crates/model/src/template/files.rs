//! Fingerprint of the files published with a template.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// A hash of all paths and contents; empty if there are no files.
pub fn files_fingerprint(files: &BTreeMap<String, Vec<u8>>) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut hash = Sha256::new();
    for (path, content) in files {
        for part in [path.as_bytes(), content] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_path_or_content_changes_the_fingerprint() {
        let files = |all: &[(&str, &str)]| {
            files_fingerprint(
                &all.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect(),
            )
        };
        let one = files(&[("a/main.tf", "x")]);
        assert_eq!(one.len(), 64);
        assert_eq!(one, files(&[("a/main.tf", "x")]));
        for other in [files(&[]), files(&[("a/main.t", "fx")]), files(&[("a/main.tf", "y")])] {
            assert_ne!(one, other);
        }
    }
}
