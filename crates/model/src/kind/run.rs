//! The program of an instance: a container, or Kubernetes objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::{self, Values};

/// The program of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// For agents that run containers.
    pub container: Container,
    /// For agents on Kubernetes: one YAML document each, with `{{ names }}` in strings.
    #[serde(default)]
    pub manifests: Vec<String>,
}

/// A container, with `{{ names }}` in strings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// The image.
    pub image: String,
    /// The command; that of the image by default.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables; only they may contain `{{ sso.client_secret }}`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The container ports.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The readiness probe.
    pub ready: Ready,
}

/// A readiness probe.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ready {
    /// Ready when the container runs.
    Running {
        /// The timeout in seconds.
        within: u32,
    },
    /// Ready when a port accepts connections.
    Tcp {
        /// The port.
        port: u16,
        /// The timeout in seconds.
        within: u32,
    },
    /// Ready when an HTTP request succeeds.
    Http {
        /// The port.
        port: u16,
        /// The path.
        #[serde(default = "default_path")]
        path: String,
        /// The expected status code.
        #[serde(default = "default_status")]
        status: u16,
        /// The timeout in seconds.
        within: u32,
    },
}

fn default_path() -> String {
    "/".to_owned()
}

fn default_status() -> u16 {
    200
}

impl Ready {
    /// The timeout in seconds.
    pub fn within(&self) -> u32 {
        match self {
            Ready::Running { within } | Ready::Tcp { within, .. } | Ready::Http { within, .. } => {
                *within
            }
        }
    }

    /// The probed port, if any.
    pub fn port(&self) -> Option<u16> {
        match self {
            Ready::Running { .. } => None,
            Ready::Tcp { port, .. } | Ready::Http { port, .. } => Some(*port),
        }
    }
}

/// A rendered container. The environment may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedContainer {
    /// The image.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
}

impl Container {
    /// Renders the container with these values.
    pub fn render(&self, values: &Values) -> RenderedContainer {
        RenderedContainer {
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
    /// Renders the Kubernetes objects with these values.
    ///
    /// Values are inserted into strings of the parsed document, so that no value can change its
    /// structure.
    pub fn render_objects(&self, values: &Values) -> Vec<Value> {
        let parsed = self.manifests.iter().filter_map(|text| manifest(text).ok());
        parsed.map(|object| render(object, values)).collect()
    }
}

/// Parses a manifest.
pub(super) fn manifest(text: &str) -> Result<Value, String> {
    let value: Value = crate::yaml::read("manifest", text).map_err(|e| e.to_string())?;
    let has = |field: &str| value.pointer(field).is_some_and(Value::is_string);
    match ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|field| !has(field)) {
        Some(field) => Err(format!("requires a string {}", field[1..].replace('/', "."))),
        None => Ok(value),
    }
}

fn render(value: Value, values: &Values) -> Value {
    match value {
        Value::String(text) => Value::String(template::fill(&text, values)),
        Value::Array(items) => items.into_iter().map(|item| render(item, values)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, render(field, values))).collect()
        }
        other => other,
    }
}

impl std::fmt::Debug for RenderedContainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Filled")
            .field("image", &self.image)
            .field("command", &self.command)
            .field("env", &names)
            .finish()
    }
}
