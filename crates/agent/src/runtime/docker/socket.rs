//! Finds the socket of an engine that answers.

use std::path::{Path, PathBuf};

use bollard::{API_DEFAULT_VERSION, BollardRequest};

use super::{Engine, Options};
use crate::Error;

/// How long an engine may take to begin its answer. Longer than any container's grace.
const ANSWER_SECONDS: u64 = 300;
/// How long it may take to answer at all.
const HELLO: std::time::Duration = std::time::Duration::from_secs(10);

/// An engine that answers.
pub(super) struct Answering {
    pub(super) path: PathBuf,
    pub(super) api: bollard::Docker,
    pub(super) engine: Engine,
    pub(super) version: String,
    pub(super) architecture: String,
}

/// The first one that answers. The error says what was tried and what to do.
pub(super) async fn find(options: &Options) -> Result<Answering, Error> {
    let mut tried = Vec::new();
    for path in candidates(options)? {
        match ask(&path).await {
            Ok(answering) => return Ok(answering),
            Err(why) => tried.push(format!("{} ({why})", path.display())),
        }
    }
    Err(Error::Unavailable(format!(
        "Neither Docker nor Podman answers; tried {}. Start one of them (for Podman `podman system \
         service`), or set DOCKER_HOST to its socket.",
        tried.join(", ")
    )))
}

/// Where an engine may be. What someone named is the only place.
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
                "DOCKER_HOST is {host}, but only sockets of this machine can be used: set it to \
                 unix:///path/of/the.sock."
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

async fn ask(path: &Path) -> Result<Answering, Error> {
    let unavailable = |why: &str| Error::Unavailable(why.to_owned());
    let text = path.to_str().ok_or_else(|| unavailable("its name is not text"))?;
    if !path.exists() {
        return Err(unavailable("there is none"));
    }
    let said = |error: bollard::errors::Error| unavailable(&super::fault::innermost(&error));
    let api = bollard::Docker::connect_with_unix(text, ANSWER_SECONDS, API_DEFAULT_VERSION)
        .map_err(said)?
        .with_request_modifier(url_safe);
    let hello = async {
        let api = api.negotiate_version().await?;
        let version = api.version().await?;
        Ok((api, version))
    };
    let (api, version) = tokio::time::timeout(HELLO, hello)
        .await
        .map_err(|_| unavailable("it does not answer"))?
        .map_err(said)?;
    let is_podman =
        version.components.iter().flatten().any(|component| component.name.contains("Podman"));
    Ok(Answering {
        path: path.to_owned(),
        api,
        engine: if is_podman { Engine::Podman } else { Engine::Docker },
        version: version.version.unwrap_or_default(),
        architecture: version.arch.unwrap_or_default(),
    })
}

/// The engines read credentials in the alphabet for URLs, the library writes them in the other.
fn url_safe(mut request: BollardRequest) -> BollardRequest {
    if let Some(value) = request.headers_mut().get_mut("x-registry-auth")
        && let Ok(text) = value.to_str()
        && let Ok(safe) = text.replace('+', "-").replace('/', "_").parse()
    {
        *value = safe;
    }
    request
}
