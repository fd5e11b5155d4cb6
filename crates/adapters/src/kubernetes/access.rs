//! The way to a Kubernetes: from its kubeconfig, or from where the server itself runs.
//!
//! A kubeconfig comes from users. Nothing in it may make the server run a program or read a file.

use std::time::Duration;

use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::Secret;
use port::Fault;
use sha2::{Digest, Sha256};

use crate::http::root_of;

/// How long one answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A hash of all that a client is made from.
pub(super) fn made_of(kubeconfig: Option<&Secret>, context: Option<&str>) -> Vec<u8> {
    let text = kubeconfig.map(Secret::reveal).unwrap_or_default();
    let context = context.unwrap_or_default();
    Sha256::digest(format!("{}\n{context}\n{text}", context.len())).to_vec()
}

/// A client that asks once and says what it was told: the guard asks again.
pub(super) async fn client(
    kubeconfig: Option<&Secret>,
    context: Option<&str>,
) -> Result<Client, Fault> {
    let mut config = match kubeconfig {
        Some(text) => given(text, context).await?,
        None => Config::incluster().map_err(|error| {
            Fault::Refused(format!(
                "no kubeconfig was given, and the server does not run in a Kubernetes: {}",
                root_of(&error)
            ))
        })?,
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    config.read_timeout = Some(ANSWER_WITHIN);
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|error| refused(&root_of(&error)))
}

fn refused(why: &str) -> Fault {
    Fault::Refused(format!("the kubeconfig can't be used: {why}"))
}

async fn given(text: &Secret, context: Option<&str>) -> Result<Config, Fault> {
    // What a parser says may repeat what it has read.
    let parsed = Kubeconfig::from_yaml(text.reveal());
    let parsed = parsed.map_err(|_| refused("it is not YAML as kubectl writes it"))?;
    let (cluster, user) = chosen(&parsed, context).map_err(|why| refused(&why))?;
    check(cluster, user).map_err(|why| refused(&why))?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let config = Config::from_custom_kubeconfig(parsed, &options).await;
    let config = config.map_err(|error| refused(&root_of(&error)))?;
    let is_http = matches!(config.cluster_url.scheme_str(), Some("http" | "https"));
    if !is_http || config.cluster_url.host().is_none() {
        return Err(refused("its server is no address such as https://10.0.0.1:6443"));
    }
    Ok(config)
}

/// The cluster and the user of the context.
fn chosen<'a>(
    all: &'a Kubeconfig,
    context: Option<&str>,
) -> Result<(&'a Cluster, Option<&'a AuthInfo>), String> {
    let name = context.or(all.current_context.as_deref()).filter(|name| !name.is_empty());
    let name = name.ok_or("it has no current-context, and no context was named")?;
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

/// Is all that is needed in it?
fn check(cluster: &Cluster, user: Option<&AuthInfo>) -> Result<(), String> {
    if cluster.certificate_authority.is_some() && cluster.certificate_authority_data.is_none() {
        return Err(file("certificate-authority", "certificate-authority-data"));
    }
    if cluster.proxy_url.is_some() {
        return Err("it names a proxy, which Paddock does not use".into());
    }
    let Some(user) = user else { return Ok(()) };
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(
            "its user signs in with a program (exec or auth-provider), which would run on \
                    the server; give one with a token or a client certificate in it"
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
        "{field} names a file, which would be read on the server; put it into the kubeconfig as \
         {instead} (kubectl config view --flatten --minify --raw does so)"
    )
}
