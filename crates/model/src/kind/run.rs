//! What an agent runs for an instance: a container, or Kubernetes objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::{self, Values};

/// What an agent runs for an instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// For agents that run containers.
    pub container: Container,
    /// For agents on Kubernetes: one YAML document each, with `{{ names }}` in their texts.
    #[serde(default)]
    pub manifests: Vec<String>,
}

/// A container, with `{{ names }}` in its texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// The image.
    pub image: String,
    /// What to run instead of the image's own command.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables; the only place for `{{ sso.client_secret }}`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The ports that it listens on.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// When it counts as ready.
    pub ready: Ready,
}

/// When a container counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ready {
    /// As soon as it runs.
    Running {
        /// How many seconds it may take.
        within: u32,
    },
    /// When a port takes connections.
    Tcp {
        /// The port.
        port: u16,
        /// How many seconds it may take.
        within: u32,
    },
    /// When a page is answered.
    Http {
        /// The port.
        port: u16,
        /// The page's path.
        #[serde(default = "root")]
        path: String,
        /// The answer's status.
        #[serde(default = "ok")]
        status: u16,
        /// How many seconds it may take.
        within: u32,
    },
}

fn root() -> String {
    "/".to_owned()
}

fn ok() -> u16 {
    200
}

impl Ready {
    /// How many seconds it may take.
    pub fn within(&self) -> u32 {
        match self {
            Ready::Running { within } | Ready::Tcp { within, .. } | Ready::Http { within, .. } => {
                *within
            }
        }
    }

    /// The port that is asked, if one is.
    pub fn port(&self) -> Option<u16> {
        match self {
            Ready::Running { .. } => None,
            Ready::Tcp { port, .. } | Ready::Http { port, .. } => Some(*port),
        }
    }
}

/// A container's texts with all names filled in. The environment may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Filled {
    /// The image.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
}

impl Container {
    /// Fills the names in.
    pub fn filled(&self, values: &Values) -> Filled {
        Filled {
            image: template::fill(&self.image, values),
            command: self.command.iter().map(|word| template::fill(word, values)).collect(),
            env: self
                .env
                .iter()
                .map(|(name, text)| (name.clone(), template::fill(text, values)))
                .collect(),
        }
    }
}

impl Run {
    /// The Kubernetes objects with all names filled in.
    ///
    /// Names are filled into texts of the parsed document, so that no value can change its shape.
    pub fn objects(&self, values: &Values) -> Vec<Value> {
        let parsed = self.manifests.iter().filter_map(|text| manifest(text).ok());
        parsed.map(|object| filled(object, values)).collect()
    }
}

/// A manifest as an object.
pub(super) fn manifest(text: &str) -> Result<Value, String> {
    let value: Value = crate::yaml::read("manifest", text).map_err(|e| e.to_string())?;
    let has = |field: &str| value.pointer(field).is_some_and(Value::is_string);
    match ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|field| !has(field)) {
        Some(field) => Err(format!("needs a text {}", field[1..].replace('/', "."))),
        None => Ok(value),
    }
}

fn filled(value: Value, values: &Values) -> Value {
    match value {
        Value::String(text) => Value::String(template::fill(&text, values)),
        Value::Array(items) => items.into_iter().map(|item| filled(item, values)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, filled(field, values))).collect()
        }
        other => other,
    }
}

impl std::fmt::Debug for Filled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Filled")
            .field("image", &self.image)
            .field("command", &self.command)
            .field("env", &names)
            .finish()
    }
}
