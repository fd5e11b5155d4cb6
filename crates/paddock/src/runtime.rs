//! Starts the container runtime of this machine from its settings.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{Runtime, RuntimeChoice, docker};
use anyhow::Context;
use base::{Entropy, OsEntropy, task};
use model::Resources;
use runtime::{Cidr, Credentials, Registries, Userns};
use serde::Deserialize;

/// Interval of image garbage collection, and how long an image must be unused before it is deleted.
const GC_INTERVAL: Duration = Duration::from_hours(1);
const GC_UNUSED_FOR: Duration = Duration::from_hours(24);

/// Settings of the container runtime.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Selected runtime.
    pub(crate) choice: RuntimeChoice,
    /// Directory of images and containers.
    pub(crate) dir: PathBuf,
    /// Credentials and rules of registries.
    pub(crate) registries: Registries,
    /// Maximum image size.
    pub(crate) max_image_bytes: u64,
    /// Whether containers may open connections to public addresses.
    pub(crate) egress: bool,
    /// Private networks that containers may reach.
    pub(crate) egress_allow: Vec<Cidr>,
    /// Whether containers run in user namespaces.
    pub(crate) userns: Userns,
    /// Capacity that all containers may use together.
    pub(crate) capacity: Resources,
}

/// Starts the selected runtime and its image garbage collection.
pub(crate) async fn start(settings: Settings) -> anyhow::Result<Arc<dyn Runtime>> {
    let Settings { choice, dir, registries, max_image_bytes, .. } = settings;
    if !registries.credentials.is_empty() && registries.repositories.is_empty() {
        tracing::warn!(
            "registry credentials are not used: name the repositories that every organization may pull \
             with --registry-repositories"
        );
    }
    let instance = match choice {
        RuntimeChoice::Simulated(_) | RuntimeChoice::Kubernetes(_) => String::new(),
        _ => instance(&dir)?,
    };
    let embedded = runtime::Options {
        registries: registries.clone(),
        max_image_bytes,
        egress: settings.egress,
        egress_allow: settings.egress_allow,
        userns: settings.userns,
        max_cpu_milli: limit(settings.capacity.get("cpu").milli()),
        max_ram_bytes: limit(settings.capacity.get("ram").milli() / 1000),
        ..runtime::Options::new(&dir, &instance)
    };
    let archives = dir.join("archives");
    // Of a process that was killed while it loaded an image.
    let _ = base::tree::remove(&archives);
    let docker = docker::Options {
        dir: archives,
        registries,
        max_image_bytes,
        ..docker::Options::new(&instance)
    };
    let runtime = agent::choose(choice, embedded, docker).await;
    let collected = runtime.clone();
    task::spawn("image garbage collection", async move {
        collected.gc_forever(GC_INTERVAL, GC_UNUSED_FOR).await;
    });
    Ok(runtime)
}

/// A limit; zero is none.
fn limit(amount: i64) -> Option<i64> {
    Some(amount).filter(|amount| *amount > 0)
}

/// Name that distinguishes this runtime's containers from others on the same machine. It is stored
/// in the directory so that containers are found again after a restart.
fn instance(dir: &Path) -> anyhow::Result<String> {
    let failed = || format!("container runtime cannot use {}", dir.display());
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir).with_context(failed)?;
    let path = dir.join("instance");
    if let Ok(name) = std::fs::read_to_string(&path) {
        return Ok(name.trim().to_owned());
    }
    let mut bytes = [0; 4];
    OsEntropy.fill(&mut bytes);
    let name = format!("{:08x}", u32::from_be_bytes(bytes));
    let mut options = std::fs::OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).open(path).with_context(failed)?;
    file.write_all(name.as_bytes()).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    Ok(name)
}

/// Credentials file in the format of Docker's `config.json`.
#[derive(Deserialize)]
struct AuthFile {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    /// `username:password` in Base64.
    #[serde(rename = "auth")]
    packed: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

/// Reads credentials by registry. Errors never contain secrets.
pub(crate) fn registries(path: &Path) -> anyhow::Result<BTreeMap<String, Credentials>> {
    let at = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--registry-auth-file: cannot read {at}"))?;
    let file: AuthFile = serde_json::from_str(&text).map_err(|error| {
        anyhow::anyhow!(
            "--registry-auth-file: {at}, line {}: not in the format of Docker's config.json: \
             {{\"auths\": {{\"registry.local:5000\": {{\"username\": …, \"password\": …}}}}}}",
            error.line()
        )
    })?;
    let read = |(registry, auth): (String, Auth)| {
        let credentials = auth.credentials().with_context(|| {
            format!(
                "--registry-auth-file: {at}: {registry} has neither username and password nor auth"
            )
        })?;
        Ok((registry, credentials))
    };
    file.auths.into_iter().map(read).collect()
}

impl Auth {
    fn credentials(self) -> Option<Credentials> {
        if let (Some(username), Some(password)) = (self.username, self.password) {
            return Some(Credentials { username, password });
        }
        let bytes = data_encoding::BASE64.decode(self.packed?.as_bytes()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (username, password) = text.split_once(':')?;
        Some(Credentials { username: username.to_owned(), password: password.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_login_credentials_are_parsed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let text = r#"{"auths": {"a:5000": {"auth": "dXNlcjpwYTpzcw=="},
            "b": {"username": "u", "password": "p"}}, "credsStore": "x"}"#;
        std::fs::write(&path, text).unwrap();
        let found = registries(&path).unwrap();
        assert_eq!((&*found["a:5000"].username, &*found["a:5000"].password), ("user", "pa:ss"));
        assert_eq!((&*found["b"].username, &*found["b"].password), ("u", "p"));
        for (text, part) in [("{\n x}", "line 2"), (r#"{"auths": {"c": {}}}"#, "c has neither")] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", registries(&path).unwrap_err());
            assert!(error.starts_with("--registry-auth-file") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn instance_name_is_stable() {
        let dir = tempfile::tempdir().unwrap();
        let name = instance(dir.path()).unwrap();
        assert_eq!((name.len(), instance(dir.path()).unwrap()), (8, name));
    }
}
