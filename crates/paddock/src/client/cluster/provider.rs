//! What the providers of clusters are told, on the command line.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::client::error::Error;
use crate::client::parse;
use crate::client::resources::unique;

/// `--kubeconfig` and its kin.
#[derive(clap::Args)]
pub(super) struct Provider {
    /// Who makes the cluster [default: local]
    #[arg(long = "provider", value_name = "NAME", value_parser = ["local", "agent", "kubernetes", "terraform"])]
    by: Option<String>,
    /// With --provider kubernetes: a file that says how it is reached, as written by
    /// `kubectl config view --flatten --minify --raw`
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Which context of it [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Where in it the agent and what it runs live [default: paddock]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The most that what runs there may ask for together; may be repeated
    #[arg(long = "quota", value_name = "TYPE=QUANTITY", value_parser = parse::pair)]
    quota: Vec<(String, String)>,
    /// A file with credentials of registries, as Docker's config.json
    #[arg(long, value_name = "FILE")]
    pull_secret: Option<PathBuf>,
    /// With --provider terraform: the module, a folder in the server's directory of modules
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// A variable of the module, as JSON or text; may be repeated
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = parse::pair)]
    variables: Vec<(String, String)>,
    /// A JSON file with variables that must not be seen
    #[arg(long, value_name = "FILE")]
    secret_variables: Option<PathBuf>,
}

impl Provider {
    /// Does somebody else than this machine say how much the cluster has?
    pub(super) fn tells_capacity(&self) -> bool {
        self.by.as_deref().is_some_and(|name| name != "local")
    }

    /// Adds what was said to the body of the request.
    pub(super) fn tell(self, body: &mut Value) -> Result<(), Error> {
        let (kubernetes, terraform) = (self.kubernetes()?, self.terraform()?);
        if let Some(by) = self.by {
            body["provider"] = by.into();
        }
        for (name, part) in [("kubernetes", kubernetes), ("terraform", terraform)] {
            if !part.is_empty() {
                body[name] = Value::Object(part);
            }
        }
        Ok(())
    }

    fn kubernetes(&self) -> Result<Map<String, Value>, Error> {
        let mut said = Map::new();
        for (name, path) in [("kubeconfig", &self.kubeconfig), ("pull_secret", &self.pull_secret)] {
            if let Some(path) = path {
                said.insert(name.into(), read(path)?.into());
            }
        }
        for (name, text) in [("context", &self.context), ("namespace", &self.namespace)] {
            if let Some(text) = text {
                said.insert(name.into(), text.clone().into());
            }
        }
        let quota = unique("quota", self.quota.clone())?;
        if !quota.is_empty() {
            said.insert("quota".into(), json!(quota));
        }
        Ok(said)
    }

    fn terraform(&self) -> Result<Map<String, Value>, Error> {
        let mut said = Map::new();
        if let Some(module) = &self.module {
            said.insert("module".into(), module.clone().into());
        }
        let variables = unique("variable", self.variables.clone())?;
        if !variables.is_empty() {
            let read = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
            let variables: Map<_, _> =
                variables.into_iter().map(|(name, text)| (name, read(text))).collect();
            said.insert("variables".into(), variables.into());
        }
        if let Some(path) = &self.secret_variables {
            let parsed: Result<Map<String, Value>, _> = serde_json::from_str(&read(path)?);
            // What a parser says may repeat what it has read.
            let secret = parsed.map_err(|_| {
                Error::failed(format!("--secret-variables: {} is no JSON object", path.display()))
            })?;
            said.insert("secret_variables".into(), secret.into());
        }
        Ok(said)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::failed(format!("{} can't be read: {error}", path.display())))
}
