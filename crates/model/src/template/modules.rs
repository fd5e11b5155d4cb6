//! The modules that a template's resources are made with: they are published together with it.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Executor, Template};
use crate::Invalid;
use crate::yaml::{self, Refused};

/// Does it have programs of its own run on the server?
pub fn has_modules(template: &Template) -> bool {
    template.resources.iter().any(|one| one.executor == Executor::Terraform)
}

/// Checks that every module which a resource names came along with the template. `file` is what the
/// template's `text` is called in what is wrong.
pub fn check_modules(
    file: &str,
    text: &str,
    template: &Template,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<(), Refused> {
    let modules = template.resources.iter().enumerate();
    for (i, one) in modules.filter(|(_, one)| one.executor == Executor::Terraform) {
        let source = one.with.get("source").and_then(|source| source.as_str()).unwrap_or_default();
        if let Err(detail) = comes_along(source, files) {
            let invalid = Invalid::new(format!("resources[{i}].with.source"), detail);
            return Err(yaml::refuse(file, text, &invalid));
        }
    }
    Ok(())
}

fn comes_along(source: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    if files.is_empty() {
        let how = "publish its folder as a tar archive";
        return Err(format!("the module {source} must come along with the template; {how}"));
    }
    // What an expression names is known once it has a value.
    let is_known = !source.contains("{{");
    let folder = source.strip_prefix("./").unwrap_or(source).trim_end_matches('/');
    let is_part = |path: &str| {
        let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
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
        "there is no module in {source}: it must have a .tf or .tf.json file among the files that were \
         published"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    fn checked(source: &str, paths: &[&str]) -> Result<(), Refused> {
        let text = format!(
            "name: a\nversion: 1\nresources:\n  - name: net\n    executor: terraform\n    with:\n      \
             source: '{source}'\n"
        );
        let template = parse("template.yaml", &text).unwrap();
        let files = paths.iter().map(|path| ((*path).to_owned(), Vec::new())).collect();
        check_modules("template.yaml", &text, &template, &files)
    }

    #[test]
    fn a_module_comes_along_or_is_named_with_its_line() {
        for (source, paths) in [
            ("./net", ["net/main.tf"]),
            ("./net/", ["net/main.tf.json"]),
            ("./a/net", ["a/net/x.tf"]),
            ("./{{ environment.name }}", ["net/main.tf"]),
        ] {
            assert_eq!(checked(source, &paths), Ok(()), "{source}");
        }
        for (source, paths, why) in [
            ("./net", vec![], "must come along"),
            ("./net", vec!["net/README.md"], "no module in ./net"),
            ("./net", vec!["net/deep/main.tf"], "no module in ./net"),
            ("./net", vec!["network/main.tf"], "no module in ./net"),
            ("./net", vec!["net.tf"], "no module in ./net"),
            ("./{{ environment.name }}", vec!["README.md"], "no module"),
        ] {
            let refused = checked(source, &paths).unwrap_err().to_string();
            assert!(
                refused.starts_with("template.yaml:7: resources.net.with.source: "),
                "{refused}"
            );
            assert!(refused.contains(why), "{refused}");
        }
    }
}
