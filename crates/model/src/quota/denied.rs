//! The list of users who may not have instances.

use std::collections::BTreeSet;

use crate::Invalid;
use crate::yaml::{self, Refused};

/// Reads a list of user names. Each is there once.
pub fn denied(file: &str, text: &str) -> Result<BTreeSet<String>, Refused> {
    // An empty file denies nobody.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(BTreeSet::new());
    }
    let names: Vec<String> = yaml::read(file, text)?;
    let mut denied = BTreeSet::new();
    for (at, name) in names.into_iter().enumerate() {
        let refuse =
            |reason: &str| yaml::refuse(file, text, &Invalid::new(format!("[{at}]"), reason));
        if name.trim().is_empty() {
            return Err(refuse("a user name must not be empty"));
        }
        if !denied.insert(name) {
            return Err(refuse("this user name is there already"));
        }
    }
    Ok(denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names() {
        assert_eq!(denied("f", "- ann\n- ben\n").unwrap().len(), 2);
        assert!(denied("f", "# nobody\n").unwrap().is_empty());
        let twice = denied("f", "- ann\n- ben\n- ann\n").unwrap_err();
        assert_eq!(twice.line, Some(3), "{twice}");
        for bad in ["ann", "- ann\n- ann", "- {a: b}", "- ''", "- [ann]", "- ann\n  - : x"] {
            let refused = denied("f", bad).unwrap_err();
            assert!(refused.to_string().starts_with('f'), "{bad}: {refused}");
        }
    }
}
