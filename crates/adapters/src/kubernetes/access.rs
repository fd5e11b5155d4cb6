//! Clients of Kubernetes clusters: from a kubeconfig, or from the cluster in which the server runs.
//!
//! A kubeconfig comes from users. It must not make the server run a program or read a file.

use std::time::Duration;

use base::Resolver;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::Secret;
use port::Fault;
use sha2::{Digest, Sha256};

use super::connection;
use crate::http::root_of;

/// The timeout of one response.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A hash of the configuration of a client.
pub(super) fn config_hash(kubeconfig: Option<&Secret>, context: Option<&str>) -> Vec<u8> {
    let text = kubeconfig.map(Secret::reveal).unwrap_or_default();
    let context = context.unwrap_or_default();
    Sha256::digest(format!("{}\n{context}\n{text}", context.len())).to_vec()
}

/// Creates a client that does not retry: the guard does.
pub(super) async fn client(
    kubeconfig: Option<&Secret>,
    context: Option<&str>,
    resolver: &Resolver,
) -> Result<Client, Fault> {
    let mut config = match kubeconfig {
        Some(text) => parse(text, context).await?,
        None => Config::incluster().map_err(|error| {
            Fault::Refused(format!(
                "no kubeconfig was given, and the server does not run in Kubernetes: {}",
                root_of(&error)
            ))
        })?,
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    let client = match kubeconfig {
        Some(_) => {
            let server = config.cluster_url.host().unwrap_or_default();
            resolver.check_literal(server).map_err(|why| refused(&format!("its server {why}")))?;
            connection::client(&config, resolver)
        }
        // Not from a user.
        None => Client::try_from(config),
    };
    client.map_err(|error| refused(&root_of(&error)))
}

fn refused(why: &str) -> Fault {
    Fault::Refused(format!("invalid kubeconfig: {why}"))
}

async fn parse(text: &Secret, context: Option<&str>) -> Result<Config, Fault> {
    // The parser's error may repeat the content.
    let parsed = Kubeconfig::from_yaml(text.reveal());
    let parsed = parsed.map_err(|_| refused("it is not YAML in the format of kubectl"))?;
    let (cluster, user) = select(&parsed, context).map_err(|why| refused(&why))?;
    check(cluster, user).map_err(|why| refused(&why))?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let config = Config::from_custom_kubeconfig(parsed, &options).await;
    let config = config.map_err(|error| refused(&root_of(&error)))?;
    let is_http = matches!(config.cluster_url.scheme_str(), Some("http" | "https"));
    if !is_http || config.cluster_url.host().is_none() {
        return Err(refused("its server must be a URL such as https://10.0.0.1:6443"));
    }
    Ok(config)
}

/// The cluster and the user of the context.
fn select<'a>(
    all: &'a Kubeconfig,
    context: Option<&str>,
) -> Result<(&'a Cluster, Option<&'a AuthInfo>), String> {
    let name = context.or(all.current_context.as_deref()).filter(|name| !name.is_empty());
    let name = name.ok_or("it has no current-context. Name a context")?;
    let found = all.contexts.iter().find(|known| known.name == name);
    let found = found.and_then(|known| known.context.as_ref());
    let found = found.ok_or_else(|| format!("it has no context {name}"))?;
    let cluster = all.clusters.iter().find(|known| known.name == found.cluster);
    let cluster = cluster.and_then(|known| known.cluster.as_ref());
    let cluster = cluster.ok_or_else(|| format!("it has no cluster {}", found.cluster))?;
    let user = found.user.as_ref().map(|user| {
        let named = all.auth_infos.iter().find(|known| known.name == *user);
        named
            .and_then(|known| known.auth_info.as_ref())
            .ok_or_else(|| format!("it has no user {user}"))
    });
    Ok((cluster, user.transpose()?))
}

/// Checks that the kubeconfig is self-contained.
fn check(cluster: &Cluster, user: Option<&AuthInfo>) -> Result<(), String> {
    if cluster.certificate_authority.is_some() && cluster.certificate_authority_data.is_none() {
        return Err(file("certificate-authority", "certificate-authority-data"));
    }
    if cluster.proxy_url.is_some() {
        return Err("it names a proxy, which Paddock does not support".into());
    }
    let Some(user) = user else { return Ok(()) };
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(
            "its user authenticates with a program (exec or auth-provider), which would run on the \
             server. Use a token or a client certificate"
                .into(),
        );
    }
    if user.client_certificate.is_some() && user.client_certificate_data.is_none() {
        return Err(file("client-certificate", "client-certificate-data"));
    }
    if user.client_key.is_some() && user.client_key_data.is_none() {
        return Err(file("client-key", "client-key-data"));
    }
    if user.token_file.is_some() {
        return Err(file("tokenFile", "token"));
    }
    Ok(())
}

fn file(field: &str, instead: &str) -> String {
    format!(
        "{field} names a file, which would be read on the server. Embed it as {instead} with \
         kubectl config view --flatten --minify --raw"
    )
}
