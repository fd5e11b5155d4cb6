//! From which templates an environment is made, and with which parameters.

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
pub(super) struct Wish {
    /// A template that it is made from, the newest if no version is said; may be repeated
    #[arg(long = "template", value_name = "NAME[@VERSION]")]
    templates: Vec<String>,
    /// A parameter: a number, true, false, null (the default again), a list, a map, else text; may be
    /// repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse::pair)]
    set: Vec<(String, String)>,
    /// A file with parameters, in YAML or JSON; --set goes before it
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
}

/// The same, as the server takes it.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By name and version; none if nothing was said.
    pub(super) templates: Vec<String>,
    pub(super) parameters: Map<String, Value>,
    /// The flags that say so again.
    pub(super) flags: Vec<String>,
}

impl Wish {
    /// Reads files, and finds the newest versions of templates that were named without one.
    pub(super) async fn read(self, api: &Api) -> Result<Wanted, Error> {
        let mut templates = Vec::new();
        for template in &self.templates {
            templates.push(reference(api, template).await?);
        }
        let flags = self.flags(&templates);
        Ok(Wanted { parameters: self.parameters()?, templates, flags })
    }

    fn parameters(self) -> Result<Map<String, Value>, Error> {
        let mut parameters = match &self.parameters {
            None => Map::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Error::failed(format!(
                        "--parameters: {} can't be read: {error}",
                        path.display()
                    ))
                })?;
                let read = yaml::values(&path.display().to_string(), &text);
                read.map_err(|refused| Error::failed(format!("--parameters: {refused}")))?
            }
        };
        for (name, text) in unique("parameter", self.set)? {
            parameters.insert(name.clone(), value(&name, text)?);
        }
        Ok(parameters)
    }

    fn flags(&self, templates: &[String]) -> Vec<String> {
        let templates = templates.iter().map(|one| format!("--template {}", shell_word(one)));
        let file = self.parameters.iter().map(|path| path.display().to_string());
        let file = file.map(|path| format!("--parameters {}", shell_word(&path)));
        let set = self.set.iter().map(|(name, text)| format!("{name}={text}"));
        let set = set.map(|pair| format!("--set {}", shell_word(&pair)));
        templates.chain(file).chain(set).collect()
    }
}

impl Wanted {
    /// A command that wants the same of an environment.
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
    let answer = api.send(&Call::get(&["templates", template])).await;
    let answer = answer.map_err(|error| match error.status() {
        Some(404) => Error::failed_but(
            format!("--template: there is no template {template:?} that may be used"),
            r#""paddock template list" shows them all"#,
        ),
        _ => error,
    })?;
    Ok(api.read::<Template>(&answer)?.reference)
}

/// What somebody means by a value: what looks like JSON, or like a list or a map in YAML, is that.
fn value(name: &str, text: String) -> Result<Value, Error> {
    if let Ok(value) = serde_json::from_str(&text) {
        return Ok(value);
    }
    if !text.starts_with(['[', '{']) {
        return Ok(Value::String(text));
    }
    let file = format!("--set {name}");
    yaml::value(&file, &text).map_err(|refused| {
        Error::Usage(format!("{file}: {}; to mean text, write it in quotes", refused.reason))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_they_look_like() {
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
        assert!(error.what().starts_with("--set names: "), "{}", error.what());
    }

    fn wish(set: &[(&str, &str)], parameters: Option<PathBuf>) -> Wish {
        let set = set.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Wish { templates: vec![], set, parameters }
    }

    #[test]
    fn what_is_set_goes_before_what_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, "size: 3\nimage: nginx:1\nports:\n  - 80\n").unwrap();
        let read = wish(&[("size", "4")], Some(file.clone())).parameters().unwrap();
        assert_eq!(Value::Object(read), json!({"size": 4, "image": "nginx:1", "ports": [80]}));

        std::fs::write(&file, "{\n\t\"size\": 3\n}\n").unwrap();
        let read = wish(&[], Some(file.clone())).parameters().unwrap();
        assert_eq!(Value::Object(read), json!({"size": 3}));

        std::fs::write(&file, "size: 3\n  image: x\n").unwrap();
        let error = wish(&[], Some(file)).parameters().unwrap_err();
        assert!(error.what().contains("a.yaml:"), "{}", error.what());
        let error = wish(&[("a", "1"), ("a", "2")], None).parameters().unwrap_err();
        assert_eq!(error.what(), "parameter \"a\" is given twice");
        let error = wish(&[], Some("nowhere.yaml".into())).parameters().unwrap_err();
        assert!(error.what().starts_with("--parameters: nowhere.yaml can't be read"));
    }

    #[test]
    fn the_same_wish_can_be_typed_again() {
        let wish = wish(&[("names", "[a, b]")], Some("p.yaml".into()));
        let flags = wish.flags(&["shop@1".into()]);
        let wanted = Wanted { flags, ..Wanted::default() };
        let want =
            "paddock env apply prod --template shop@1 --parameters p.yaml --set 'names=[a, b]'";
        assert_eq!(wanted.command("apply", "prod"), want);
    }
}
