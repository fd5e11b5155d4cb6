//! Which versions of providers were chosen for a module: the same ones on every machine.

use std::io;

use model::{Secret, template};
use serde_json::{Value, json};

use super::folder;
use super::workspace::Workspace;

/// Where Terraform writes them down, in the module.
const LOCK: &str = ".terraform.lock.hcl";
/// The files that they were chosen for.
const FOR: &str = "providers.for";

impl Workspace {
    /// Puts those that were kept in place. Others are chosen where the module has changed: it may ask
    /// for others. What a template brings along counts as it is.
    pub(super) fn place_providers(&self) -> io::Result<()> {
        let Some(files) = &self.inputs.files else { return Ok(()) };
        let (lock, print) = (self.cwd().join(LOCK), template::files_print(files));
        if files.contains_key(&format!("{}/{LOCK}", self.inputs.module)) {
            return folder::remove(&self.at(FOR));
        }
        if folder::read(&self.at(FOR))?.is_none_or(|before| before != print) {
            folder::remove(&lock)?;
            folder::write(&self.at(FOR), &print)?;
        }
        let kept = self.inputs.providers.as_ref();
        let kept: Value =
            kept.and_then(|kept| serde_json::from_str(kept.reveal()).ok()).unwrap_or_default();
        match kept["lock"].as_str() {
            Some(text) if kept["for"] == print && !lock.exists() => folder::write(&lock, text),
            _ => Ok(()),
        }
    }

    /// What shall be kept of them.
    pub(super) fn providers(&self) -> Option<Secret> {
        let print = folder::read(&self.at(FOR)).ok()??;
        let lock = folder::read(&self.cwd().join(LOCK)).ok()??;
        Some(Secret::new(json!({"for": print, "lock": lock}).to_string()))
    }
}
