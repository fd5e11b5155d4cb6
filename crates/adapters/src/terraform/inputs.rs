//! What one run of a module begins with, and what came out of it.

use std::fmt;
use std::time::Duration;

use model::{Secret, template};
use port::{Fault, Files};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// What a module is run with.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The module: a folder in the folder of modules, or among `files`.
    pub module: String,
    /// Files that came with the module; none if it is one of the folder of modules.
    pub files: Option<Files>,
    /// Its variables.
    pub variables: Map<String, Value>,
    /// Variables that must not be seen. They win over the others.
    pub secret_variables: Map<String, Value>,
    /// What such variables were before: it is still in the state, and must not be seen either.
    pub past_secrets: Map<String, Value>,
    /// The state that was kept. The one in the folder is taken if it is newer.
    pub state: Option<Secret>,
    /// Which versions of providers were chosen, as they were kept.
    pub providers: Option<Secret>,
    /// How long a whole run may take; without it each command has the time that the options give.
    pub limit: Option<Duration>,
    /// Grows whenever another server takes over: who comes with an older one begins nothing.
    pub fence: Option<i64>,
}

impl Inputs {
    /// Variables that must not be seen, from the JSON object that they are kept as.
    pub fn secret_variables(text: &Secret) -> Result<Map<String, Value>, Fault> {
        // What the parser says may repeat what it has read.
        serde_json::from_str(text.reveal()).map_err(|_| {
            Fault::Refused(
                "the secret variables are no JSON object such as {\"password\": \"…\"}".into(),
            )
        })
    }

    /// All variables, as they are written for Terraform.
    pub(super) fn all_variables(&self) -> Map<String, Value> {
        let mut all = self.variables.clone();
        all.extend(self.secret_variables.clone());
        all
    }

    /// Tells runs with different inputs apart; the state and what is past are none of them.
    pub(super) fn print(&self) -> Vec<u8> {
        let all = serde_json::to_string(&self.all_variables()).unwrap_or_default();
        let files = self.files.as_ref().map(|files| template::files_print(files));
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

/// The outputs of a module. Debugging shows their names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Outputs(Map<String, Value>);

impl Outputs {
    /// From what `output -json` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// As `output -json` wrote them.
    pub(super) fn to_secret(&self) -> Secret {
        Secret::new(Value::Object(self.0.clone()).to_string())
    }

    /// Each output: its name, its value, and whether it must not be seen.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Value, bool)> {
        let each = self.0.iter();
        each.map(|(name, output)| (name, &output["value"], output["sensitive"] == true))
    }

    /// The value of an output.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)?.get("value").filter(|value| !value.is_null())
    }

    /// An output as text: what is none is written as JSON. An empty one counts as none.
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
