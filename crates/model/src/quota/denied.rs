//! The deny list of users.

use std::collections::BTreeSet;

use crate::Invalid;
use crate::yaml::{self, FileError};

/// Parses a deny list of unique user names.
pub fn parse_deny_list(file: &str, text: &str) -> Result<BTreeSet<String>, FileError> {
    // An empty file is an empty list.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(BTreeSet::new());
    }
    let names: Vec<String> = yaml::read(file, text)?;
    let mut denied = BTreeSet::new();
    for (at, name) in names.into_iter().enumerate() {
        let refuse =
            |reason: &str| yaml::file_error(file, text, &Invalid::new(format!("[{at}]"), reason));
        if name.trim().is_empty() {
            return Err(refuse("must not be empty"));
        }
        if !denied.insert(name) {
            return Err(refuse("must be unique"));
        }
    }
    Ok(denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_list_is_parsed_and_duplicates_are_refused() {
        assert_eq!(parse_deny_list("f", "- ann\n- ben\n").unwrap().len(), 2);
        assert!(parse_deny_list("f", "# empty\n").unwrap().is_empty());
        let twice = parse_deny_list("f", "- ann\n- ben\n- ann\n").unwrap_err();
        assert_eq!(twice.line, Some(3), "{twice}");
        for bad in ["ann", "- ann\n- ann", "- {a: b}", "- ''", "- [ann]", "- ann\n  - : x"] {
            let refused = parse_deny_list("f", bad).unwrap_err();
            assert!(refused.to_string().starts_with('f'), "{bad}: {refused}");
        }
    }
}
