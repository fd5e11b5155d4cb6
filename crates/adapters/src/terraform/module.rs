//! Modules: finding one, its declarations, and copying it to its workspace.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use model::name;
use port::Fault;

/// The maximum depth of folders; more indicates a loop of links.
const MAX_DEPTH: usize = 32;

/// The folder of a module in the module folder.
pub(super) fn find(modules: &Path, module: &str) -> Result<PathBuf, Fault> {
    let refuse =
        |why: &str| Err(Fault::Refused(format!("terraform.module: {why}; {}", existing(modules))));
    if name::dns_label("terraform.module", module).is_err() {
        return refuse("must have 1 to 63 characters of a-z, 0-9 and -");
    }
    let Ok(all) = modules.canonicalize() else {
        return Err(Fault::Unavailable(format!(
            "cannot read the module folder {}. Set it with --terraform-modules",
            modules.display()
        )));
    };
    match all.join(module).canonicalize() {
        Ok(found) if found.starts_with(&all) && found.is_dir() => Ok(found),
        _ => refuse(&format!("module {module} not found")),
    }
}

fn existing(modules: &Path) -> String {
    let entries = std::fs::read_dir(modules).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    let names: BTreeSet<_> =
        names.filter(|one| name::dns_label("terraform.module", one).is_ok()).collect();
    if names.is_empty() {
        return "no modules exist. Add one to the folder of --terraform-modules".into();
    }
    format!("the modules are {}", names.into_iter().collect::<Vec<_>>().join(", "))
}

/// The variables that a module declares, found without evaluating it.
pub(super) fn declared(module: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(module).into_iter().flatten().flatten() {
        let path = entry.path();
        let text = if is_source(&path) { std::fs::read_to_string(&path) } else { continue };
        let text = text.unwrap_or_default();
        if path.extension().is_some_and(|end| end == "json") {
            names.extend(declared_in_json(&text));
        } else {
            names.extend(text.lines().filter_map(declared_in_line));
        }
    }
    names
}

fn declared_in_line(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("variable")?;
    let rest = rest.strip_prefix([' ', '\t', '"'])?.trim_start_matches([' ', '\t', '"']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))?;
    let is_block = rest[end..].trim_start_matches(['"', ' ', '\t']).starts_with('{');
    (end > 0 && is_block).then(|| rest[..end].to_owned())
}

fn declared_in_json(text: &str) -> Vec<String> {
    let parsed: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let variables = parsed.get("variable").and_then(|all| all.as_object());
    variables.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

/// The variables that a source file declares as sensitive, found without evaluating it.
pub(super) fn sensitive(path: &Path, text: &str) -> BTreeSet<String> {
    if path.extension().is_some_and(|end| end == "json") {
        let parsed: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let is_hidden = |name: &String| parsed["variable"][name]["sensitive"] == true;
        return declared_in_json(text).into_iter().filter(is_hidden).collect();
    }
    let mut names = BTreeSet::new();
    let mut block = None;
    for line in text.lines() {
        let opened = declared_in_line(line);
        let is_one_line = opened.is_some() && line.trim_end().ends_with('}');
        if opened.is_some() || line.starts_with(char::is_alphabetic) {
            block = opened;
        }
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let is_sensitive =
            compact.starts_with("sensitive=true") || compact.contains("{sensitive=true");
        names.extend(block.clone().filter(|_| is_sensitive));
        if is_one_line || line.starts_with('}') {
            block = None;
        }
    }
    names
}

pub(super) fn is_source(path: &Path) -> bool {
    let end = |path: &Path, is: &str| path.extension().is_some_and(|end| end == is);
    end(path, "tf")
        || end(path, "json") && path.file_stem().is_some_and(|stem| end(stem.as_ref(), "tf"))
}

/// Copies a module over an earlier copy. Files that a run created are retained; stale sources are
/// deleted.
pub(super) fn copy(module: &Path, modules: &Path, to: &Path) -> io::Result<()> {
    copy_folder(module, &modules.canonicalize()?, to, MAX_DEPTH)
}

fn copy_folder(from: &Path, within: &Path, to: &Path, depth: usize) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other("its folders are nested too deep, or a link forms a loop"));
    }
    super::folder::create_private(to)?;
    delete_stale(from, to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        if is_excluded(&name.to_string_lossy()) {
            continue;
        }
        let source = from.join(&name).canonicalize()?;
        if !source.starts_with(within) {
            let name = name.display();
            return Err(io::Error::other(format!("{name} links outside the module folder")));
        }
        if source.is_dir() {
            copy_folder(&source, within, &to.join(&name), depth - 1)?;
        } else {
            std::fs::copy(&source, to.join(&name))?;
        }
    }
    Ok(())
}

fn delete_stale(from: &Path, to: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(to)? {
        let entry = entry?;
        if is_source(&entry.path()) && !from.join(entry.file_name()).exists() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a file belongs to local use of the module.
pub(super) fn is_excluded(name: &str) -> bool {
    name == ".terraform" || name == ".git" || name.contains(".tfstate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_in_any_style() {
        for (line, name) in [
            ("variable \"one\" {", Some("one")),
            ("  variable two {}", Some("two")),
            ("variable\t\"paddock_token\"{ type = string }", Some("paddock_token")),
            ("# variable \"no\" {", None),
            ("variables \"no\" {", None),
            ("variable \"no\"", None),
            ("value = var.no", None),
            ("variable {", None),
        ] {
            assert_eq!(declared_in_line(line).as_deref(), name, "{line}");
        }
        let json = r#"{"variable": {"three": {}, "four": {"type": "string"}}}"#;
        assert_eq!(declared_in_json(json), ["four", "three"]);
        assert_eq!(declared_in_json("{"), Vec::<String>::new());
    }

    #[test]
    fn sensitive_variables_are_found() {
        let text = "variable \"a\" {\n  type = string\n  sensitive   = true\n}\nvariable \"b\" {}\n\
                    output \"c\" {\n  sensitive = true\n}\nvariable \"d\" { sensitive = true }\n\
                    variable \"e\" {\n  sensitive = false\n}\n";
        let found = sensitive(Path::new("main.tf"), text);
        assert_eq!(found, BTreeSet::from(["a".to_owned(), "d".to_owned()]));
        let json = r#"{"variable": {"f": {"sensitive": true}, "g": {}}}"#;
        let found = sensitive(Path::new("x.tf.json"), json);
        assert_eq!(found, BTreeSet::from(["f".to_owned()]));
    }
}
