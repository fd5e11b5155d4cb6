//! Specification of an environment: templates and parameters.

use std::path::PathBuf;

use model::yaml;
use serde_json::{Map, Value};
use wire::template::Template;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format::shell_word;
use crate::client::http::Api;
use crate::client::parse;
use crate::client::resources::unique;

/// `--template`, `--set` and `--parameters`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SpecArgs {
    /// Template, by default its newest version; repeatable
    #[arg(long = "template", value_name = "NAME[@VERSION]")]
    templates: Vec<String>,
    /// Parameter: JSON, a YAML list or map, or text; null restores the default; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse::pair)]
    set: Vec<(String, String)>,
    /// YAML or JSON file with parameters; --set takes precedence
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
}

/// Resolved specification.
#[derive(Debug, Default)]
pub(super) struct Spec {
    /// Templates with version; empty if not given.
    pub(super) templates: Vec<String>,
    pub(super) parameters: Map<String, Value>,
    /// Equivalent command-line flags.
    pub(super) flags: Vec<String>,
}

impl SpecArgs {
    /// Reads the parameter file and resolves templates without version to their newest one.
    pub(super) async fn read(self, api: &Api) -> Result<Spec, Error> {
        let mut templates = Vec::new();
        for template in &self.templates {
            templates.push(reference(api, template).await?);
        }
        let flags = self.flags(&templates);
        Ok(Spec { parameters: self.parameters()?, templates, flags })
    }

    fn parameters(self) -> Result<Map<String, Value>, Error> {
        let mut parameters = match &self.parameters {
            None => Map::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Error::failed(format!("--parameters: cannot read {}: {error}", path.display()))
                })?;
                let read = yaml::values(&path.display().to_string(), &text);
                read.map_err(|error| Error::failed(format!("--parameters: {error}")))?
            }
        };
        for (name, text) in unique("parameter", self.set)? {
            parameters.insert(name.clone(), value(&name, text)?);
        }
        Ok(parameters)
    }

    fn flags(&self, templates: &[String]) -> Vec<String> {
        let templates = templates.iter().map(|t| format!("--template {}", shell_word(t)));
        let file = self.parameters.iter().map(|path| path.display().to_string());
        let file = file.map(|path| format!("--parameters {}", shell_word(&path)));
        let set = self.set.iter().map(|(name, text)| format!("{name}={text}"));
        let set = set.map(|pair| format!("--set {}", shell_word(&pair)));
        templates.chain(file).chain(set).collect()
    }
}

impl Spec {
    /// A command with the same specification.
    pub(super) fn command(&self, verb: &str, name: &str) -> String {
        let mut words = vec![format!("paddock env {verb} {}", shell_word(name))];
        words.extend(self.flags.iter().cloned());
        words.join(" ")
    }
}

async fn reference(api: &Api, template: &str) -> Result<String, Error> {
    if template.contains('@') {
        return Ok(template.into());
    }
    let response = api.send(&Call::get(&["templates", template])).await;
    let response = response.map_err(|error| match error.status() {
        Some(404) => Error::failed_with_hint(
            format!("--template: template {template:?} not found, or all versions are deprecated"),
            r#"run "paddock template list" to see all templates"#,
        ),
        _ => error,
    })?;
    Ok(api.read::<Template>(&response)?.reference)
}

/// Parses a parameter value: JSON, a YAML list or map, or otherwise text.
fn value(name: &str, text: String) -> Result<Value, Error> {
    if let Ok(value) = serde_json::from_str(&text) {
        return Ok(value);
    }
    if !text.starts_with(['[', '{']) {
        return Ok(Value::String(text));
    }
    let file = format!("--set {name}");
    yaml::value(&file, &text).map_err(|error| {
        Error::Usage(format!("{file}: {}; to pass it as text, quote it", error.reason))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_parsed_as_json_yaml_or_text() {
        for (text, want) in [
            ("3", json!(3)),
            ("-1.5", json!(-1.5)),
            ("true", json!(true)),
            ("null", json!(null)),
            ("[1,2]", json!([1, 2])),
            ("[a, b]", json!(["a", "b"])),
            ("{size: 3}", json!({"size": 3})),
            ("\"3\"", json!("3")),
            ("web", json!("web")),
            ("yes", json!("yes")),
            ("a: b # c", json!("a: b # c")),
            ("1.4.0", json!("1.4.0")),
            ("", json!("")),
        ] {
            assert_eq!(value("x", text.into()).unwrap(), want, "{text}");
        }
        let error = value("names", "[a".into()).unwrap_err();
        assert!(matches!(error, Error::Usage(_)));
        assert!(error.message().starts_with("--set names: "), "{}", error.message());
    }

    fn spec_args(set: &[(&str, &str)], parameters: Option<PathBuf>) -> SpecArgs {
        let set = set.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        SpecArgs { templates: vec![], set, parameters }
    }

    #[test]
    fn set_takes_precedence_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, "size: 3\nimage: nginx:1\nports:\n  - 80\n").unwrap();
        let read = spec_args(&[("size", "4")], Some(file.clone())).parameters().unwrap();
        assert_eq!(Value::Object(read), json!({"size": 4, "image": "nginx:1", "ports": [80]}));

        std::fs::write(&file, "{\n\t\"size\": 3\n}\n").unwrap();
        let read = spec_args(&[], Some(file.clone())).parameters().unwrap();
        assert_eq!(Value::Object(read), json!({"size": 3}));

        std::fs::write(&file, "size: 3\n  image: x\n").unwrap();
        let error = spec_args(&[], Some(file)).parameters().unwrap_err();
        assert!(error.message().contains("a.yaml:"), "{}", error.message());
        let error = spec_args(&[("a", "1"), ("a", "2")], None).parameters().unwrap_err();
        assert_eq!(error.message(), "parameter \"a\" is given twice");
        let error = spec_args(&[], Some("nowhere.yaml".into())).parameters().unwrap_err();
        assert!(error.message().starts_with("--parameters: cannot read nowhere.yaml"));
    }

    #[test]
    fn command_repeats_the_specification() {
        let args = spec_args(&[("names", "[a, b]")], Some("p.yaml".into()));
        let flags = args.flags(&["shop@1".into()]);
        let spec = Spec { flags, ..Spec::default() };
        let want =
            "paddock env apply prod --template shop@1 --parameters p.yaml --set 'names=[a, b]'";
        assert_eq!(spec.command("apply", "prod"), want);
    }
}
