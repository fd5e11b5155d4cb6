//! Semantic validation of executor configurations. Errors name fields as in `with`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Certificate, Command, ConsulKv, Deployment, Generate, Service, Terraform, VaultSecret,
};
use crate::{Invalid, Quantity, Resources, deployment, name};

/// The maximum timeout of a step: one day.
const MAX_SECONDS: u32 = 24 * 3600;

pub(super) fn terraform(one: &Terraform) -> Result<(), Invalid> {
    let directory = one.source.strip_prefix("./").unwrap_or_default().trim_end_matches('/');
    let is_valid_segment = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !directory.split('/').all(is_valid_segment) || directory.contains(['\\', '\0']) {
        let detail = "must be a directory within the template's files, like ./network, without ..";
        return Err(Invalid::new("source", detail));
    }
    seconds("timeout_seconds", one.timeout_seconds)
}

pub(super) fn consul_kv(one: &ConsulKv) -> Result<(), Invalid> {
    let prefix = one.prefix.as_str();
    if prefix.is_empty() || prefix.starts_with('/') {
        let detail = "must not be empty or start with /: the resource owns all keys below it";
        return Err(Invalid::new("prefix", detail));
    }
    for key in std::iter::once("").chain(one.values.keys().map(String::as_str)) {
        let whole = format!("{prefix}{key}");
        if whole.contains("//") || whole.chars().any(char::is_control) {
            let field = if key.is_empty() { "prefix".to_owned() } else { format!("values.{key}") };
            let detail = format!("{} must not contain //", whole.escape_default());
            return Err(Invalid::new(field, detail));
        }
    }
    if one.values.contains_key("") {
        return Err(Invalid::new("values", "a key must not be empty"));
    }
    match &one.datacenter {
        Some(datacenter) => name::line("datacenter", datacenter, 64).map(drop),
        None => Ok(()),
    }
}

pub(super) fn vault_secret(one: &VaultSecret) -> Result<(), Invalid> {
    vault_path("path", &one.path)?;
    if let Some(mount) = &one.mount {
        vault_path("mount", mount)?;
    }
    for (key, generate) in &one.generate {
        generated(&format!("generate.{key}"), generate)?;
    }
    if let Some(key) = one.values.keys().find(|key| one.generate.contains_key(*key)) {
        return Err(Invalid::new(
            format!("values.{key}"),
            "is also in generate; set it in one of them",
        ));
    }
    match &one.certificate {
        Some(one) => certificate(one).map_err(|invalid| invalid.within("certificate")),
        None => Ok(()),
    }
}

fn vault_path(field: &str, path: &str) -> Result<(), Invalid> {
    let is_valid_segment = |part: &str| !part.is_empty() && part != "." && part != "..";
    let allowed = |c: char| !c.is_control() && !c.is_whitespace() && !"?#%\\".contains(c);
    if path.len() <= 512 && path.split('/').all(is_valid_segment) && path.chars().all(allowed) {
        return Ok(());
    }
    let detail =
        "must be a path like shop/db: no leading or trailing /, no //, .., whitespace, ?, # or %";
    Err(Invalid::new(field, detail))
}

fn generated(field: &str, one: &Generate) -> Result<(), Invalid> {
    if !(1..=1024).contains(&one.length) {
        return Err(Invalid::new(format!("{field}.length"), "must be from 1 to 1024"));
    }
    let Some(alphabet) = &one.alphabet else { return Ok(()) };
    if alphabet.chars().collect::<BTreeSet<char>>().len() < 2 {
        let detail = "must have at least two different characters";
        return Err(Invalid::new(format!("{field}.alphabet"), detail));
    }
    Ok(())
}

fn certificate(one: &Certificate) -> Result<(), Invalid> {
    if let Some(mount) = &one.mount {
        vault_path("mount", mount)?;
    }
    vault_path("role", &one.role)?;
    name::line("common_name", &one.common_name, 253)?;
    for (i, other) in one.alt_names.iter().enumerate() {
        name::line(&format!("alt_names[{i}]"), other, 253)?;
    }
    if one.ttl_seconds == Some(0) {
        return Err(Invalid::new("ttl_seconds", "must be at least 1"));
    }
    Ok(())
}

pub(super) fn service(one: &Service) -> Result<(), Invalid> {
    name::line("kind", &one.kind, 63)?;
    if let Some(own) = &one.name {
        name::dns_label("name", own)?;
    }
    if one.plan.is_some() && one.instance_type.is_some() {
        return Err(Invalid::new("plan", "already includes the type; remove instance_type"));
    }
    Ok(())
}

pub(super) fn deployment(one: &Deployment) -> Result<(), Invalid> {
    if let Some(own) = &one.name {
        name::dns_label("name", own)?;
    }
    if let Some(image) = &one.image {
        name::line("image", image, 1024)?;
    }
    amount("cpu", one.cpu.as_ref())?;
    amount("ram", one.ram.as_ref())?;
    amounts("resources", &one.resources)?;
    deployment::check_priority(one.priority)?;
    if let Some(replicas) = one.replicas {
        deployment::check_replicas(replicas)?;
    }
    if let Some(i) = one.ports.iter().position(|&port| port == 0) {
        return Err(Invalid::new(format!("ports[{i}]"), "must be from 1 to 65535"));
    }
    name::labels("labels", &one.labels)
}

pub(super) fn command(one: &Command) -> Result<(), Invalid> {
    name::line("url", &one.url, 2048)?;
    amount("cpu", one.cpu.as_ref())?;
    amount("ram", one.ram.as_ref())?;
    for (field, is_set) in [("method", one.method.is_some()), ("body", one.body.is_some())] {
        if is_set && !one.is_call() {
            let detail = "is only allowed for HTTP calls: url must start with http:// or https://";
            return Err(Invalid::new(field, detail));
        }
    }
    if let Some(method) = &one.method {
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        if !known.contains(&method.as_str()) {
            return Err(Invalid::new("method", format!("must be one of {}", known.join(", "))));
        }
    }
    seconds("timeout_seconds", one.timeout_seconds)
}

fn seconds(field: &str, seconds: Option<u32>) -> Result<(), Invalid> {
    if seconds.is_some_and(|seconds| !(1..=MAX_SECONDS).contains(&seconds)) {
        return Err(Invalid::new(field, format!("must be from 1 to {MAX_SECONDS}")));
    }
    Ok(())
}

fn amount(field: &str, value: Option<&Value>) -> Result<Option<Quantity>, Invalid> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_value(value.clone())
        .map(Some)
        .map_err(|error| Invalid::new(field, error.to_string()))
}

fn amounts(field: &str, values: &BTreeMap<String, Value>) -> Result<(), Invalid> {
    let mut all = Resources::default();
    for (kind, value) in values {
        let quantity = amount(&format!("{field}.{kind}"), Some(value))?.unwrap_or_default();
        all.set(kind.clone(), quantity);
    }
    all.check(field)
}
