//! Registries that refer the server to other hosts, and the credentials that they get.

use runtime::{Container, Credentials, Registries};

use crate::lab::{Lab, container, loopback};
use crate::packing;
use crate::registry::{Fake, digest_of};

/// "user:secret" in Base64.
const PASSWORD: &str = "dXNlcjpzZWNyZXQ=";

/// Credentials of a registry, for all of its repositories, and allowed hosts.
fn registries(registry: &Fake, allowed: &[&Fake]) -> Registries {
    let address = &registry.address;
    let credentials = Credentials { username: "user".into(), password: "secret".into() };
    Registries {
        credentials: [(address.clone(), credentials)].into(),
        repositories: vec![format!("{address}/*").parse().unwrap()],
        realms: allowed.iter().map(|fake| fake.address.parse().unwrap()).collect(),
        ..Registries::default()
    }
}

async fn start(registry: &Fake, registries: Registries) -> Result<(), String> {
    let image = registry.put("web", &packing::web());
    let lab = Lab::with(|options| options.registries = registries).await;
    let started = lab.runtime().start(&container("web-0", &image)).await;
    lab.runtime().stop("web-0").await.unwrap();
    started.map(drop).map_err(|error| error.to_string())
}

/// All headers `Authorization` that a server got.
fn authorizations(fake: &Fake) -> Vec<String> {
    let content = fake.content.lock().unwrap();
    let mut all: Vec<_> =
        content.requests.iter().filter_map(|(_, header)| header.clone()).collect();
    all.dedup();
    all
}

fn request_count(fake: &Fake) -> usize {
    fake.content.lock().unwrap().requests.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_at_a_private_address_is_not_contacted_unless_permitted() {
    let registry = Fake::start();
    let why = start(&registry, Registries::default()).await.unwrap_err();
    assert!(why.contains("is not permitted: it is a loopback address"), "{why}");
    assert!(why.contains("allow_address"), "{why}");
    assert_eq!(request_count(&registry), 0);
    let named = format!("{}/other", registry.address).parse().unwrap();
    let named = Registries { repositories: vec![named], ..Registries::default() };
    start(&registry, named).await.unwrap();
    let permitted = Registries { addresses: loopback(), ..Registries::default() };
    start(&registry, permitted).await.unwrap();
}

/// A registry that refers to another server for tokens.
fn with_realm() -> (Fake, Fake) {
    let (registry, other) = (Fake::start(), Fake::start());
    let realm = format!("http://{}/token", other.address);
    registry.content.lock().unwrap().realm = Some((realm, "of-other".to_owned()));
    other.content.lock().unwrap().token = Some("of-other".to_owned());
    (registry, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_cannot_send_the_server_to_another_host_for_a_token() {
    let (registry, other) = with_realm();
    let why = start(&registry, registries(&registry, &[])).await.unwrap_err();
    assert!(why.contains(&format!("--registry-realm {}", other.address)), "{why}");
    assert_eq!(request_count(&other), 0, "the other host got a request");
    assert_eq!(authorizations(&registry), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_token_service_gets_credentials_and_the_registry_its_token() {
    let (registry, other) = with_realm();
    start(&registry, registries(&registry, &[&other])).await.unwrap();
    assert_eq!(authorizations(&other), [format!("Basic {PASSWORD}")]);
    assert_eq!(authorizations(&registry), ["Bearer of-other"]);
    let scope = other.content.lock().unwrap().requests[0].0.clone();
    assert!(
        scope.contains("scope=repository%3Aweb%3Apull") && scope.contains("service=x"),
        "{scope}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn token_service_on_the_registrys_host_is_used() {
    let registry = Fake::start();
    let realm = format!("http://{}/token", registry.address);
    registry.content.lock().unwrap().realm = Some((realm, "own".to_owned()));
    registry.content.lock().unwrap().token = Some("own".to_owned());
    let permitted = Registries { addresses: loopback(), ..Registries::default() };
    start(&registry, permitted).await.unwrap();
    assert_eq!(authorizations(&registry), ["Bearer own"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_get_no_credentials_and_reach_no_private_address() {
    let (registry, store) = (Fake::start(), Fake::start());
    store.put("web", &packing::web());
    registry.content.lock().unwrap().password = Some(PASSWORD.to_owned());
    registry.content.lock().unwrap().redirect = Some(format!("http://{}", store.address));
    let why = start(&registry, registries(&registry, &[])).await.unwrap_err();
    assert!(why.contains("is not permitted: it is a loopback address"), "{why}");
    assert_eq!(request_count(&store), 0);
    start(&registry, registries(&registry, &[&store])).await.unwrap();
    assert_eq!(authorizations(&registry), [format!("Basic {PASSWORD}")]);
    assert!(request_count(&store) > 0);
    assert_eq!(authorizations(&store), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn platform_credentials_serve_listed_repositories_only() {
    let registry = Fake::start();
    registry.content.lock().unwrap().password = Some(PASSWORD.to_owned());
    for (repositories, works) in [(vec!["web"], true), (vec!["other"], false), (vec![], false)] {
        let patterns = repositories.iter().map(|name| format!("{}/{name}", registry.address));
        let repositories = patterns.map(|pattern| pattern.parse().unwrap()).collect();
        let started = start(&registry, Registries { repositories, ..registries(&registry, &[]) });
        let started = started.await;
        assert_eq!(started.is_ok(), works, "{started:?}");
        assert!(started.err().is_none_or(|why| why.contains("denied access")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_credentials_pull_images_for_that_owner_only() {
    let registry = Fake::start();
    registry.content.lock().unwrap().password = Some(PASSWORD.to_owned());
    let image = registry.put("web", &packing::web());
    let lab = Lab::new().await;
    let credentials =
        |password: &str| Some(Credentials { username: "user".into(), password: password.into() });
    let start = async |owner: &str, image: &str, pull: Option<Credentials>| {
        let owner = Some(owner.to_owned());
        let one = Container { owner, pull, ..container("web-0", image) };
        let started = lab.runtime().start(&one).await;
        lab.runtime().stop("web-0").await.unwrap();
        started.map(drop).map_err(|error| error.to_string())
    };
    let denied = |result: Result<(), String>| result.unwrap_err().contains("denied access");
    assert!(denied(start("a", &image, None).await));
    assert!(denied(start("a", &image, credentials("wrong")).await));
    start("a", &image, credentials("secret")).await.unwrap();
    // Neither the cache of recent pulls nor the stored image serves others.
    assert!(denied(start("b", &image, None).await));
    assert!(denied(start("b", &image, credentials("wrong")).await));
    let digest = digest_of(&registry.content.lock().unwrap().manifests["web/1.0"]);
    let pinned = format!("{}@{digest}", image.rsplit_once(':').unwrap().0);
    start("a", &pinned, credentials("secret")).await.unwrap();
    assert!(denied(start("b", &pinned, None).await));
    assert!(denied(start("b", &pinned, credentials("wrong")).await));
    let stored = std::fs::read_dir(lab.options.dir.join("images")).unwrap();
    for file in stored {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("secret") && !text.contains(PASSWORD), "{text}");
    }
}
