//! Terraform modules, which are published together with their template.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Executor, Template};
use crate::Invalid;
use crate::yaml::{self, FileError};

/// Does the template run Terraform modules on the server?
pub fn has_modules(template: &Template) -> bool {
    template.resources.iter().any(|one| one.executor == Executor::Terraform)
}

/// Checks that every referenced module was published with the template. Errors refer to `text` as
/// `file`.
pub fn check_modules(
    file: &str,
    text: &str,
    template: &Template,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<(), FileError> {
    let modules = template.resources.iter().enumerate();
    for (i, one) in modules.filter(|(_, one)| one.executor == Executor::Terraform) {
        let source = one.with.get("source").and_then(|source| source.as_str()).unwrap_or_default();
        if let Err(detail) = is_published(source, files) {
            let invalid = Invalid::new(format!("resources[{i}].with.source"), detail);
            return Err(yaml::file_error(file, text, &invalid));
        }
    }
    Ok(())
}

fn is_published(source: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    if files.is_empty() {
        return Err(format!(
            "module {source} must be published with the template; publish its directory as a tar \
             archive"
        ));
    }
    // The value of an expression is not known yet.
    let is_known = !source.contains("{{");
    let directory = source.strip_prefix("./").unwrap_or(source).trim_end_matches('/');
    let is_part = |path: &str| {
        let inside = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
        inside.is_some_and(|name| !name.contains('/')) || !is_known
    };
    let is_module = |path: &&String| {
        let name = path.strip_suffix(".json").unwrap_or(path);
        Path::new(name).extension().is_some_and(|ending| ending == "tf")
    };
    if files.keys().filter(is_module).any(|path| is_part(path)) {
        return Ok(());
    }
    Err(format!(
        "no module in {source}: the published files must include a .tf or .tf.json file there"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    fn check(source: &str, paths: &[&str]) -> Result<(), FileError> {
        let text = format!(
            "name: a\nversion: 1\nresources:\n  - name: net\n    executor: terraform\n    with:\n      \
             source: '{source}'\n"
        );
        let template = parse("template.yaml", &text).unwrap();
        let files = paths.iter().map(|path| ((*path).to_owned(), Vec::new())).collect();
        check_modules("template.yaml", &text, &template, &files)
    }

    #[test]
    fn missing_module_is_rejected_with_its_line() {
        for (source, paths) in [
            ("./net", ["net/main.tf"]),
            ("./net/", ["net/main.tf.json"]),
            ("./a/net", ["a/net/x.tf"]),
            ("./{{ environment.name }}", ["net/main.tf"]),
        ] {
            assert_eq!(check(source, &paths), Ok(()), "{source}");
        }
        for (source, paths, why) in [
            ("./net", vec![], "must be published with the template"),
            ("./net", vec!["net/README.md"], "no module in ./net"),
            ("./net", vec!["net/deep/main.tf"], "no module in ./net"),
            ("./net", vec!["network/main.tf"], "no module in ./net"),
            ("./net", vec!["net.tf"], "no module in ./net"),
            ("./{{ environment.name }}", vec!["README.md"], "no module"),
        ] {
            let refused = check(source, &paths).unwrap_err().to_string();
            assert!(
                refused.starts_with("template.yaml:7: resources.net.with.source: "),
                "{refused}"
            );
            assert!(refused.contains(why), "{refused}");
        }
    }
}
