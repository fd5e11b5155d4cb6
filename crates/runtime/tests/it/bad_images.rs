//! Invalid images and misbehaving registries: one message, no leftovers.

use std::time::Duration;

use runtime::Credentials;
use serde_json::json;

use crate::lab::{Lab, container};
use crate::packing::{self, Image, Layer};
use crate::registry::digest_of;

/// Starts an image that must fail, checks that nothing is left, and returns the message.
async fn start_error(lab: &Lab, image: &str) -> String {
    let why = lab.runtime().start(&container("bad-0", image)).await.unwrap_err().to_string();
    assert_eq!(lab.leftovers(), Vec::<String>::new(), "{why}");
    let stored =
        lab.stored().into_iter().filter(|path| !path.to_str().unwrap().contains("/layers/"));
    assert_eq!(stored.collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new(), "{why}");
    assert!(!why.contains('\n') && why.ends_with('.'), "{why:?}");
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_images_and_registries_are_rejected() {
    let lab = Lab::with(|options| {
        options.read_timeout = Duration::from_secs(1);
        options.pull_timeout = Duration::from_secs(10);
    })
    .await;
    let fake = &lab.registry;
    let why = start_error(&lab, &fake.name("missing")).await;
    assert!(why.contains("not found in registry"), "{why}");
    let why = start_error(&lab, &fake.name("garbage/x")).await;
    assert!(why.contains("sent an invalid response"), "{why}");
    let why = start_error(&lab, &fake.name("hang/x")).await;
    assert!(why.contains("did not respond in time"), "{why}");
    let why = start_error(&lab, "127.0.0.1:1/x:1.0").await;
    assert!(why.contains("is unreachable"), "{why}");
    let why = start_error(&lab, "127.0.0.1:1/x:bad:tag").await;
    assert!(why.contains("Invalid image name"), "{why}");

    let other = Image { architecture: "s390x", ..packing::web() };
    let why = start_error(&lab, &fake.put("other", &other)).await;
    assert!(why.contains("is for linux/s390x, this host is linux/amd64"), "{why}");

    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
            "digest": digest_of(b"x"), "platform": {"os": "linux", "architecture": "arm64"}}]});
    fake.content.lock().unwrap().manifests.insert("index/1.0".into(), index.to_string().into());
    let why = start_error(&lab, &fake.name("index")).await;
    assert!(why.contains("available: linux/arm64"), "{why}");

    assert!(
        lab.runtime().start(&lab.shell("good-0", "true")).await.is_ok(),
        "other images still start"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_times_out() {
    let lab = Lab::with(|options| options.pull_timeout = Duration::from_secs(1)).await;
    let why = start_error(&lab, &lab.registry.name("hang/x")).await;
    assert!(why.contains("timed out after 1 s"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_below_the_minimum_speed_is_reported() {
    let lab = Lab::with(|options| options.pull_speed_window = Duration::from_secs(2)).await;
    let image = lab.registry.put("drip/x", &packing::web());
    let began = base::monotonic();
    let why = lab.runtime().start(&container("slow-0", &image)).await.unwrap_err().to_string();
    assert!(why.contains("is too slow: less than 10 KiB/s for 2 s"), "{why}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_does_not_match_its_digest_is_rejected() {
    let lab = Lab::new().await;
    let web = packing::web();
    let name = lab.registry.put("flipped", &web);
    let digest = digest_of(&web.layers[0].1);
    let flip = |at: usize| {
        let mut content = lab.registry.content.lock().unwrap();
        let blob = content.blobs.get_mut(&digest).unwrap();
        blob[at] ^= 1;
    };
    flip(1000);
    let why = start_error(&lab, &name).await;
    assert!(why.contains("is invalid") || why.contains("does not match its digest"), "{why}");
    flip(1000);

    // A layer's content differs from the diff id.
    let mut lying = packing::web();
    lying.layers[0].0 = Layer::new().file("x", b"something else").tar();
    let why = start_error(&lab, &lab.registry.put("lying", &lying)).await;
    assert!(why.contains("content does not match its digest"), "{why}");

    // The manifest differs from the requested digest.
    let pinned = format!("sha256:{}", "0".repeat(64));
    let manifest = packing::web().manifest();
    lab.registry.content.lock().unwrap().manifests.insert(format!("pinned/{pinned}"), manifest);
    let why = start_error(&lab, &format!("{}/pinned@{pinned}", lab.registry.address)).await;
    assert!(why.contains("does not match its digest"), "{why}");

    let mut short = packing::web();
    short.layers[0].1 = b"\x1f\x8b but not really".to_vec();
    let why = start_error(&lab, &lab.registry.put("short", &short)).await;
    assert!(why.contains("a layer"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_beyond_the_size_limits_are_rejected() {
    let lab = Lab::with(|options| {
        options.max_image_bytes = 20 << 20;
        options.max_image_entries = 1000;
    })
    .await;
    let bomb = Layer::new().file("zeros", &vec![0; 64 << 20]).tar();
    let why =
        start_error(&lab, &lab.registry.put("bomb", &Image::new(vec![bomb], json!({})))).await;
    assert!(why.contains("exceeds the maximum image size"), "{why}");

    let sparse = Layer::new().sparse("holes", 300 << 20).tar();
    assert!(sparse.len() < 4096, "{}", sparse.len());
    let image = Image::new(vec![sparse], json!({}));
    let why = start_error(&lab, &lab.registry.put("sparse", &image)).await;
    assert!(why.contains("exceeds the maximum image size"), "{why}");

    let mut large = packing::web();
    large.layers[1].1 = vec![7; 21 << 20];
    let why = start_error(&lab, &lab.registry.put("large", &large)).await;
    assert!(why.contains("exceeds the maximum image size of 20 MiB"), "{why}");

    let many = (0..1500).fold(Layer::new(), |layer, at| layer.file(&format!("f{at}"), b"")).tar();
    let why =
        start_error(&lab, &lab.registry.put("many", &Image::new(vec![many], json!({})))).await;
    assert!(why.contains("more than 1000 files"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_pull_is_resumed() {
    let lab = Lab::new().await;
    let name = lab.registry.put("web", &packing::web());
    lab.registry.content.lock().unwrap().cut_once = Some(200_000);
    let container = crate::lab::container("cut-0", &name);
    let why = lab.runtime().start(&container).await.unwrap_err().to_string();
    assert!(why.contains("stopped responding") || why.contains("closed the"), "{why}");
    assert!(lab.stored().iter().any(|path| path.to_str().unwrap().contains("/pulls/")));
    lab.runtime().start(&container).await.unwrap();
    let ranges = lab.registry.content.lock().unwrap().ranges.clone();
    assert!(ranges.iter().any(|range| range != "bytes=0-"), "{ranges:?}");
    assert!(!lab.stored().iter().any(|path| path.to_str().unwrap().contains("/pulls/")));
    lab.runtime().stop("cut-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_credentials_are_used() {
    let lab = Lab::new().await;
    let name = lab.registry.put("secret", &packing::web());
    // "user:right"
    lab.registry.content.lock().unwrap().password = Some("dXNlcjpyaWdodA==".to_owned());
    let why = start_error(&lab, &name).await;
    assert!(why.contains("denied access"), "{why}");

    let address = lab.registry.address.clone();
    let with = |password: &str| {
        let credentials = Credentials { username: "user".into(), password: password.into() };
        Lab::with(|options| {
            options.registries.credentials.insert(address.clone(), credentials);
            options.registries.repositories = vec![format!("{address}/secret").parse().unwrap()];
        })
    };
    let wrong = with("wrong").await;
    let why = start_error(&wrong, &name).await;
    assert!(why.contains("denied access"), "{why}");
    let right = with("right").await;
    right.runtime().start(&container("ok-0", &name)).await.unwrap();
    right.runtime().stop("ok-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_layers_are_reused_and_gc_retains_images_in_use() {
    let lab = Lab::with(|options| options.read_timeout = Duration::from_secs(1)).await;
    let sleeper = lab.shell("keep-0", "sleep 100");
    lab.runtime().start(&sleeper).await.unwrap();
    let freed = lab.runtime().gc(Duration::ZERO).await;
    assert_eq!((freed.images, freed.layers), (0, 0));
    let before = lab.registry.content.lock().unwrap().blob_requests;
    lab.runtime().start(&lab.shell("more-0", "sleep 100")).await.unwrap();
    // The configuration is pulled again, the layers are not.
    assert!(lab.registry.content.lock().unwrap().blob_requests <= before + 1);
    lab.registry.content.lock().unwrap().password = Some("nobody knows".to_owned());
    for name in ["keep-0", "more-0"] {
        lab.runtime().stop(name).await.unwrap();
    }
    let freed = lab.runtime().gc(Duration::ZERO).await;
    assert_eq!((freed.images, freed.layers), (1, 2));
    assert_eq!(lab.stored(), Vec::<std::path::PathBuf>::new());
}
