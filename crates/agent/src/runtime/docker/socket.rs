//! Finds the socket of a running engine.

use std::path::{Path, PathBuf};

use bollard::{API_DEFAULT_VERSION, BollardRequest};

use super::{Engine, Options};
use crate::Error;

/// Timeout of a response's beginning. Longer than any stop grace period.
const RESPONSE_TIMEOUT_SECONDS: u64 = 300;
/// Timeout of the first requests.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A running engine.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) api: bollard::Docker,
    pub(super) engine: Engine,
    pub(super) version: String,
    pub(super) architecture: String,
}

/// Finds the first engine that responds. The error says which sockets were tried and what to do.
pub(super) async fn find(options: &Options) -> Result<Found, Error> {
    let mut tried = Vec::new();
    for path in candidates(options)? {
        match connect(&path).await {
            Ok(found) => return Ok(found),
            Err(error) => tried.push(format!("{} ({error})", path.display())),
        }
    }
    Err(Error::Unavailable(format!(
        "Neither Docker nor Podman responds; tried {}. Start one of them (Podman: `podman system \
                 service`), or set DOCKER_HOST to its socket.",
        tried.join(", ")
    )))
}

/// Sockets to try. An explicit one is the only candidate.
fn candidates(options: &Options) -> Result<Vec<PathBuf>, Error> {
    if let Some(socket) = &options.socket {
        return Ok(vec![socket.clone()]);
    }
    if let Ok(host) = std::env::var("DOCKER_HOST")
        && !host.is_empty()
    {
        return match host.strip_prefix("unix://") {
            Some(path) => Ok(vec![path.into()]),
            None => Err(Error::Unavailable(format!(
                "DOCKER_HOST is {host}, but only Unix sockets are supported: set it to \
                                 unix:///path/to/docker.sock."
            ))),
        };
    }
    let mut usual: Vec<PathBuf> =
        vec!["/var/run/docker.sock".into(), "/run/podman/podman.sock".into()];
    if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR") {
        usual.push(Path::new(&dir).join("podman/podman.sock"));
    }
    Ok(usual)
}

async fn connect(path: &Path) -> Result<Found, Error> {
    let unavailable = |why: &str| Error::Unavailable(why.to_owned());
    let text = path.to_str().ok_or_else(|| unavailable("its path is not UTF-8"))?;
    if !path.exists() {
        return Err(unavailable("not found"));
    }
    let failed = |error: bollard::errors::Error| unavailable(&super::fault::innermost(&error));
    let api =
        bollard::Docker::connect_with_unix(text, RESPONSE_TIMEOUT_SECONDS, API_DEFAULT_VERSION)
            .map_err(failed)?
            .with_request_modifier(url_safe);
    let greet = async {
        let api = api.negotiate_version().await?;
        let version = api.version().await?;
        Ok((api, version))
    };
    let (api, version) = tokio::time::timeout(CONNECT_TIMEOUT, greet)
        .await
        .map_err(|_| unavailable("no response"))?
        .map_err(failed)?;
    let is_podman =
        version.components.iter().flatten().any(|component| component.name.contains("Podman"));
    Ok(Found {
        path: path.to_owned(),
        api,
        engine: if is_podman { Engine::Podman } else { Engine::Docker },
        version: version.version.unwrap_or_default(),
        architecture: version.arch.unwrap_or_default(),
    })
}

/// Converts credentials to URL-safe Base64, which engines expect and the library does not write.
fn url_safe(mut request: BollardRequest) -> BollardRequest {
    if let Some(value) = request.headers_mut().get_mut("x-registry-auth")
        && let Ok(text) = value.to_str()
        && let Ok(safe) = text.replace('+', "-").replace('/', "_").parse()
    {
        *value = safe;
    }
    request
}
