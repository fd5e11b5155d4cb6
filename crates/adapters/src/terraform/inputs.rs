//! The inputs of a module run, and its outputs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use model::{Secret, template};
use port::{Fault, Files};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The inputs of a module run.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The module: a folder in the module folder, or among `files`.
    pub module: String,
    /// The files of a template's module; none for one in the module folder.
    pub files: Option<Files>,
    /// Its variables.
    pub variables: Map<String, Value>,
    /// Secret variables. They override the others.
    pub secret_variables: Map<String, Value>,
    /// Earlier values of secret variables: they are still in the state, and must be redacted, too.
    pub past_secrets: Map<String, Value>,
    /// Environment variables with the organization's own credentials, instead of the platform's.
    pub credentials: BTreeMap<String, Secret>,
    /// The stored state. The one in the workspace is used if it is newer.
    pub state: Option<Secret>,
    /// The stored dependency lock file, with the provider versions.
    pub providers: Option<Secret>,
    /// The timeout of the whole run; without it each command has the timeout of the options.
    pub limit: Option<Duration>,
    /// The fencing token: a server with an older one must not start a run.
    pub fence: Option<i64>,
}

impl Inputs {
    /// Parses secret variables from a JSON object.
    pub fn secret_variables(text: &Secret) -> Result<Map<String, Value>, Fault> {
        // The parser's error may repeat the content.
        serde_json::from_str(text.reveal()).map_err(|_| {
            Fault::Refused(
                "the secret variables must be a JSON object such as {\"password\": \"…\"}".into(),
            )
        })
    }

    /// All variables.
    pub(super) fn all_variables(&self) -> Map<String, Value> {
        let mut all = self.variables.clone();
        all.extend(self.secret_variables.clone());
        all
    }

    /// A hash that distinguishes runs with different inputs, without the state and earlier secrets.
    pub(super) fn hash(&self) -> Vec<u8> {
        let all = serde_json::to_string(&self.all_variables()).unwrap_or_default();
        let files = self.files.as_ref().map(|files| template::files_fingerprint(files));
        let files = files.unwrap_or_default();
        Sha256::digest(format!("{}\n{files}\n{all}", self.module)).to_vec()
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs")
            .field("module", &self.module)
            .field("variables", &self.variables)
            .field("secret_variables", &self.secret_variables.keys().collect::<Vec<_>>())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The outputs of a module. `Debug` shows only their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Outputs(Map<String, Value>);

impl Outputs {
    /// Parses the output of `output -json`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The outputs in the format of `output -json`.
    pub(super) fn to_secret(&self) -> Secret {
        Secret::new(Value::Object(self.0.clone()).to_string())
    }

    /// Each output: its name, its value, and whether it is sensitive.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Value, bool)> {
        let each = self.0.iter();
        each.map(|(name, output)| (name, &output["value"], output["sensitive"] == true))
    }

    /// The value of an output.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)?.get("value").filter(|value| !value.is_null())
    }

    /// An output as text; other types as JSON. None if it is empty.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = match self.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        (!text.is_empty()).then_some(text)
    }
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
