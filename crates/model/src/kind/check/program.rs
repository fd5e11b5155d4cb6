//! Validation of versions, requirements and the program of an instance.

use super::super::template::{self, SECRET};
use super::super::{Container, Needs, Ready, Run, Version, run};
use super::{at_least_one, dns_name, unique};
use crate::{Invalid, name};

/// The maximum time to become ready: one day.
const MAX_WITHIN_SECONDS: u32 = 24 * 3600;

/// The maximum length of a prefix: host labels have up to 31 characters.
const MAX_PREFIX: usize = 31;

pub(super) fn versions(versions: &[Version]) -> Result<(), Invalid> {
    at_least_one("versions", versions)?;
    for (i, version) in versions.iter().enumerate() {
        let field = |name: &str| format!("versions[{i}].{name}");
        name::line(&field("operator"), &version.operator, 128)?;
        name::line(&field("version"), &version.version, 64)?;
        let earlier = i.checked_sub(1).map(|before| &versions[before]);
        if earlier.is_some_and(|earlier| earlier.compare(version).is_ge()) {
            let detail = "must be newer than the previous version: new instances get the last one";
            return Err(Invalid::new(field("version"), detail));
        }
    }
    Ok(())
}

pub(super) fn needs(needs: &Needs) -> Result<(), Invalid> {
    dns_name("domain", &needs.domain)?;
    unique("dns", "", needs.dns.iter().map(String::as_str))?;
    for (i, prefix) in needs.dns.iter().enumerate() {
        let field = format!("dns[{i}]");
        let starts = prefix.starts_with(|c: char| c.is_ascii_lowercase());
        let is_label = starts && name::dns_label(&field, prefix).is_ok();
        let is_valid = prefix.is_empty() || (is_label && prefix.len() <= MAX_PREFIX);
        if !is_valid {
            let detail = format!(
                "must be empty, or start with a-z, contain only a-z, 0-9 and -, and have at most \
                 {MAX_PREFIX} characters"
            );
            return Err(Invalid::new(field, detail));
        }
    }
    Ok(())
}

pub(super) fn run(run: &Run, needs: &Needs) -> Result<(), Invalid> {
    container(&run.container, needs).map_err(|e| e.within("container"))?;
    for (i, text) in run.manifests.iter().enumerate() {
        let field = format!("manifests[{i}]");
        let object = run::manifest(text).map_err(|detail| Invalid::new(&field, detail))?;
        // Only Secret objects are protected in Kubernetes; all other objects are readable.
        let is_secret = object["kind"] == "Secret";
        names(&field, text, needs, &|name| is_secret || name != SECRET)?;
    }
    Ok(())
}

fn container(container: &Container, needs: &Needs) -> Result<(), Invalid> {
    name::line("image", &container.image, 512)?;
    names("image", &container.image, needs, &is_safe_in_command)?;
    for (i, word) in container.command.iter().enumerate() {
        names(&format!("command[{i}]"), word, needs, &is_safe_in_command)?;
    }
    for (variable, text) in &container.env {
        let field = format!("env.{variable}");
        if !is_variable(variable) {
            return Err(Invalid::new(
                field,
                "a variable name must contain only letters, digits and _",
            ));
        }
        names(&field, text, needs, &|_| true)?;
    }
    ready(&container.ready, &container.ports).map_err(|e| e.within("ready"))
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && (1..=255).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Is the name allowed in a command? Secrets would be visible in process lists, and free text of
/// users could be interpreted as commands.
fn is_safe_in_command(name: &str) -> bool {
    ![SECRET, "owner", "organization"].contains(&name)
}

/// Checks the names in a template.
fn names(
    field: &str,
    text: &str,
    needs: &Needs,
    is_allowed: &dyn Fn(&str) -> bool,
) -> Result<(), Invalid> {
    let wrong = |detail: String| Err(Invalid::new(field, detail));
    if text.contains('\0') {
        return wrong("must not contain a NUL character".to_owned());
    }
    let names = template::names(text).map_err(|detail| Invalid::new(field, detail))?;
    if let Some(name) = names.iter().find(|name| !is_allowed(name)) {
        return wrong(format!("{{{{ {name} }}}} is not allowed here; use it in env"));
    }
    if !needs.sso && names.iter().any(|name| name.starts_with("sso.")) {
        return wrong("{{ sso.… }} requires needs.sso: true".to_owned());
    }
    Ok(())
}

fn ready(ready: &Ready, ports: &[u16]) -> Result<(), Invalid> {
    let probe = match ready {
        Ready::Running { .. } => "running",
        Ready::Tcp { .. } => "tcp",
        Ready::Http { .. } => "http",
    };
    if !(1..=MAX_WITHIN_SECONDS).contains(&ready.within()) {
        let detail = format!("must be from 1 to {MAX_WITHIN_SECONDS} seconds");
        return Err(Invalid::new(format!("{probe}.within"), detail));
    }
    if ready.port().is_some_and(|port| !ports.contains(&port)) {
        return Err(Invalid::new(format!("{probe}.port"), "must be one of the container's ports"));
    }
    match ready {
        Ready::Http { path, .. }
            if !path.starts_with('/') || path.contains(char::is_whitespace) =>
        {
            Err(Invalid::new("http.path", "must start with / and contain no whitespace"))
        }
        Ready::Http { status, .. } if !(100..=599).contains(status) => {
            Err(Invalid::new("http.status", "must be from 100 to 599"))
        }
        _ => Ok(()),
    }
}
