//! Command-line options of cluster providers.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::client::error::Error;
use crate::client::parse;
use crate::client::resources::unique;

/// Options of the provider.
#[derive(clap::Args)]
pub(super) struct Provider {
    /// Provider of the cluster [default: local]
    #[arg(id = "provider", long, value_name = "NAME", value_parser = ["local", "agent", "kubernetes", "terraform"])]
    name: Option<String>,
    /// With --provider kubernetes: kubeconfig file, from `kubectl config view --flatten --minify
    /// --raw`
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Namespace of the agent and its workloads [default: paddock]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Resource quota of the namespace; repeatable
    #[arg(long = "quota", value_name = "TYPE=QUANTITY", value_parser = parse::pair)]
    quota: Vec<(String, String)>,
    /// File with registry credentials, in the format of Docker's config.json
    #[arg(long, value_name = "FILE")]
    pull_secret: Option<PathBuf>,
    /// With --provider terraform: module, a subdirectory of the server's module directory
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Variable of the module, as JSON or text; repeatable
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = parse::pair)]
    variables: Vec<(String, String)>,
    /// JSON file with sensitive variables of the module
    #[arg(long, value_name = "FILE")]
    secret_variables: Option<PathBuf>,
}

impl Provider {
    /// Whether the provider determines the capacity of the cluster.
    pub(super) fn reports_capacity(&self) -> bool {
        self.name.as_deref().is_some_and(|name| name != "local")
    }

    /// Adds the provider's options to the request body.
    pub(super) fn add_to(self, body: &mut Value) -> Result<(), Error> {
        let (kubernetes, terraform) = (self.kubernetes()?, self.terraform()?);
        if let Some(name) = self.name {
            body["provider"] = name.into();
        }
        for (name, part) in [("kubernetes", kubernetes), ("terraform", terraform)] {
            if !part.is_empty() {
                body[name] = Value::Object(part);
            }
        }
        Ok(())
    }

    fn kubernetes(&self) -> Result<Map<String, Value>, Error> {
        let mut options = Map::new();
        for (name, path) in [("kubeconfig", &self.kubeconfig), ("pull_secret", &self.pull_secret)] {
            if let Some(path) = path {
                options.insert(name.into(), read(path)?.into());
            }
        }
        for (name, text) in [("context", &self.context), ("namespace", &self.namespace)] {
            if let Some(text) = text {
                options.insert(name.into(), text.clone().into());
            }
        }
        let quota = unique("quota", self.quota.clone())?;
        if !quota.is_empty() {
            options.insert("quota".into(), json!(quota));
        }
        Ok(options)
    }

    fn terraform(&self) -> Result<Map<String, Value>, Error> {
        let mut options = Map::new();
        if let Some(module) = &self.module {
            options.insert("module".into(), module.clone().into());
        }
        let variables = unique("variable", self.variables.clone())?;
        if !variables.is_empty() {
            let read = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
            let variables: Map<_, _> =
                variables.into_iter().map(|(name, text)| (name, read(text))).collect();
            options.insert("variables".into(), variables.into());
        }
        if let Some(path) = &self.secret_variables {
            let parsed: Result<Map<String, Value>, _> = serde_json::from_str(&read(path)?);
            // The parser's error is omitted: it may quote a secret.
            let secret = parsed.map_err(|_| {
                Error::failed(format!(
                    "--secret-variables: {} is not a JSON object",
                    path.display()
                ))
            })?;
            options.insert("secret_variables".into(), secret.into());
        }
        Ok(options)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::failed(format!("cannot read {}: {error}", path.display())))
}
