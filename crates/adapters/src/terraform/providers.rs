//! The dependency lock file of a module: the same provider versions on every machine.

use std::io;

use model::{Secret, template};
use serde_json::{Value, json};

use super::folder;
use super::workspace::Workspace;

/// Terraform's dependency lock file, in the module.
const LOCK: &str = ".terraform.lock.hcl";
/// The file with the hash of the module for which it was created.
const FOR: &str = "providers.for";

impl Workspace {
    /// Restores the stored lock file. It is discarded if the module has changed, which may need
    /// other versions. A lock file of the template takes precedence.
    pub(super) fn restore_providers(&self) -> io::Result<()> {
        let Some(files) = &self.inputs.files else { return Ok(()) };
        let (lock, print) = (self.cwd().join(LOCK), template::files_fingerprint(files));
        if files.contains_key(&format!("{}/{LOCK}", self.inputs.module)) {
            return folder::remove(&self.at(FOR));
        }
        if folder::read(&self.at(FOR))?.is_none_or(|before| before != print) {
            folder::remove(&lock)?;
            folder::write(&self.at(FOR), &print)?;
        }
        let stored = self.inputs.providers.as_ref();
        let stored: Value =
            stored.and_then(|text| serde_json::from_str(text.reveal()).ok()).unwrap_or_default();
        match stored["lock"].as_str() {
            Some(text) if stored["for"] == print && !lock.exists() => folder::write(&lock, text),
            _ => Ok(()),
        }
    }

    /// The lock file to persist.
    pub(super) fn providers(&self) -> Option<Secret> {
        let print = folder::read(&self.at(FOR)).ok()??;
        let lock = folder::read(&self.cwd().join(LOCK)).ok()??;
        Some(Secret::new(json!({"for": print, "lock": lock}).to_string()))
    }
}
