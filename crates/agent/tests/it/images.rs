//! Images without a registry, with real engines.

use std::fs::File;
use std::io::Write as _;

use agent::docker::Engine;
use agent::{Docker, Runtime};
use model::agent::Observed;
use model::cluster::ONLY_NODE;
use model::deployment::{Pull, Reason, Restart, Spec};
use model::image::StoreError;
use model::{OrganizationId, Xid};
use serde_json::json;

use crate::contract::{replica, start};
use crate::engine::EngineLab;
use crate::packing::{self, Image, Layer};

#[tokio::test(flavor = "multi_thread")]
async fn docker_keeps_images_of_organizations_apart() {
    check_images(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_keeps_images_of_organizations_apart() {
    check_images(Engine::Podman).await;
}

fn organization(n: u32) -> OrganizationId {
    OrganizationId(Xid::new(1, [8; 5], n))
}

/// An archive of an image that serves a page on port 8080, under these names.
fn archive(page: &str, tags: &[&str]) -> File {
    let own = Layer::new().file("www/index.html", page.as_bytes()).tar();
    let command = ["/bin/httpd", "-f", "-p", "8080", "-h", "/www"];
    let image = Image::new(vec![packing::busybox().tar(), own], json!({"Cmd": command}));
    let layers = ["0.tar", "1.tar.zst"];
    let manifest = json!([{"Config": "c.json", "RepoTags": tags, "Layers": layers}]);
    let tar = Layer::new()
        .file("manifest.json", manifest.to_string().as_bytes())
        .file("c.json", &image.configuration())
        .file(layers[0], &image.layers[0].0)
        .file(layers[1], &image.layers[1].1)
        .tar();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&tar).unwrap();
    file
}

fn web(image: &str) -> Spec {
    let image = Some(image.to_owned());
    Spec { image, replicas: 1, ports: vec![8080], restart: Restart::Never, ..Spec::default() }
}

async fn run(
    runtime: &Docker,
    organization: OrganizationId,
    image: &str,
) -> Result<Vec<String>, Reason> {
    match runtime.start(replica(1), ONLY_NODE, Some(organization), &web(image)).await {
        Observed::Running { endpoints } => Ok(endpoints),
        Observed::Failed { reason } => Err(reason),
        other => panic!("{other:?}"),
    }
}

async fn check_images(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    let images = runtime.images().unwrap();
    let (ann, bob) = (organization(1), organization(2));

    let endpoints = start(&runtime, replica(1), &web(runtime::BUILTIN_IMAGE)).await.unwrap();
    assert!(lab.get(&endpoints[0]).contains("Hello from Paddock"));
    runtime.stop(replica(1)).await.unwrap();

    // The names in the archive reach neither the engine nor the other organization.
    let stolen = format!("localhost/paddock-{}/{bob}/web:1", lab.options.instance);
    let loaded = images.load(ann, archive("anns", &["web:1", &stolen, "alpine:1"]), None).await;
    let names: Vec<_> = loaded.unwrap().into_iter().map(|image| image.name).collect();
    assert_eq!(names[0], "localhost/web:1");
    assert!(
        lab.images()
            .await
            .iter()
            .all(|tag| !tag.ends_with("/alpine:1") || tag.contains("paddock-"))
    );
    let why = run(&runtime, bob, "localhost/web:1").await.unwrap_err();
    assert!(matches!(why, Reason::ImagePullFailed { cause: Pull::NotLoaded, .. }), "{why:?}");
    assert_eq!(images.list(bob).await.unwrap().len(), 1, "the built-in image");

    images.load(bob, archive("bobs", &["web:1"]), None).await.unwrap();
    for (owner, page) in [(ann, "anns"), (bob, "bobs")] {
        let endpoints = run(&runtime, owner, "localhost/web:1").await.unwrap();
        assert!(lab.get(&endpoints[0]).ends_with(page));
        let deleted = images.delete(owner, "localhost/web:1").await;
        assert!(matches!(deleted, Err(StoreError::InUse(_))), "{deleted:?}");
        runtime.stop(replica(1)).await.unwrap();
    }
    images.delete(bob, "localhost/web:1").await.unwrap();
    let gone = images.delete(bob, "localhost/web:1").await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
    run(&runtime, ann, "localhost/web:1").await.unwrap();
    runtime.stop(replica(1)).await.unwrap();

    let mut broken = tempfile::tempfile().unwrap();
    broken.write_all(b"no archive").unwrap();
    let refused = images.load(ann, broken, None).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    assert_eq!(std::fs::read_dir(&lab.options.dir).unwrap().count(), 0);
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}
