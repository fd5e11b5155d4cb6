//! Images and registries that are no good: one sentence, nothing left, and life goes on.

use std::time::Duration;

use runtime::Credentials;
use serde_json::json;

use crate::lab::{Lab, container};
use crate::packing::{self, Image, Layer};
use crate::registry::digest_of;

/// Starts an image that can't run: why. Nothing of it stays.
async fn refused(lab: &Lab, image: &str) -> String {
    let why = lab.runtime().start(&container("bad-0", image)).await.unwrap_err().to_string();
    assert_eq!(lab.left(), Vec::<String>::new(), "{why}");
    let kept = lab.stored().into_iter().filter(|path| !path.to_str().unwrap().contains("/layers/"));
    assert_eq!(kept.collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new(), "{why}");
    assert!(!why.contains('\n') && why.ends_with('.'), "{why:?}");
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_and_images_that_are_no_good() {
    let lab = Lab::with(|options| {
        options.read_timeout = Duration::from_secs(1);
        options.pull_timeout = Duration::from_secs(10);
    })
    .await;
    let fake = &lab.registry;
    let why = refused(&lab, &fake.name("missing")).await;
    assert!(why.contains("does not exist in the registry"), "{why}");
    let why = refused(&lab, &fake.name("garbage/x")).await;
    assert!(why.contains("makes no sense"), "{why}");
    let why = refused(&lab, &fake.name("hang/x")).await;
    assert!(why.contains("did not answer in time"), "{why}");
    let why = refused(&lab, "127.0.0.1:1/x:1.0").await;
    assert!(why.contains("can't be reached"), "{why}");
    let why = refused(&lab, "127.0.0.1:1/x:bad:tag").await;
    assert!(why.contains("is not an image's name"), "{why}");

    let other = Image { architecture: "s390x", ..packing::web() };
    let why = refused(&lab, &fake.put("other", &other)).await;
    assert!(why.contains("is for linux/s390x, but this machine is linux/amd64"), "{why}");

    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
            "digest": digest_of(b"x"), "platform": {"os": "linux", "architecture": "arm64"}}]});
    fake.shelf.lock().unwrap().manifests.insert("index/1.0".into(), index.to_string().into());
    let why = refused(&lab, &fake.name("index")).await;
    assert!(why.contains("it is offered for linux/arm64"), "{why}");

    assert!(lab.runtime().start(&lab.shell("good-0", "true")).await.is_ok(), "life goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_takes_too_long_ends() {
    let lab = Lab::with(|options| options.pull_timeout = Duration::from_secs(1)).await;
    let why = refused(&lab, &lab.registry.name("hang/x")).await;
    assert!(why.contains("did not arrive within 1 s"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_what_they_claim() {
    let lab = Lab::new().await;
    let web = packing::web();
    let name = lab.registry.put("flipped", &web);
    let digest = digest_of(&web.layers[0].1);
    let flip = |at: usize| {
        let mut shelf = lab.registry.shelf.lock().unwrap();
        let blob = shelf.blobs.get_mut(&digest).unwrap();
        blob[at] ^= 1;
    };
    flip(1000);
    let why = refused(&lab, &name).await;
    assert!(why.contains("is broken") || why.contains("is not what it says"), "{why}");
    flip(1000);

    // Its contents are another layer's than its description says.
    let mut lying = packing::web();
    lying.layers[0].0 = Layer::new().file("x", b"something else").tar();
    let why = refused(&lab, &lab.registry.put("lying", &lying)).await;
    assert!(why.contains("contents are not what it says"), "{why}");

    // Another image than the one that was asked for by its digest.
    let pinned = format!("sha256:{}", "0".repeat(64));
    let manifest = packing::web().manifest();
    lab.registry.shelf.lock().unwrap().manifests.insert(format!("pinned/{pinned}"), manifest);
    let why = refused(&lab, &format!("{}/pinned@{pinned}", lab.registry.address)).await;
    assert!(why.contains("is not what it says it is"), "{why}");

    let mut short = packing::web();
    short.layers[0].1 = b"\x1f\x8b but not really".to_vec();
    let why = refused(&lab, &lab.registry.put("short", &short)).await;
    assert!(why.contains("is refused"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_do_not_go_off() {
    let lab = Lab::with(|options| {
        options.max_image_bytes = 20 << 20;
        options.max_image_entries = 1000;
    })
    .await;
    let bomb = Layer::new().file("zeros", &vec![0; 64 << 20]).tar();
    let why = refused(&lab, &lab.registry.put("bomb", &Image::new(vec![bomb], json!({})))).await;
    assert!(why.contains("larger than an image may be"), "{why}");

    let mut large = packing::web();
    large.layers[1].1 = vec![7; 21 << 20];
    let why = refused(&lab, &lab.registry.put("large", &large)).await;
    assert!(why.contains("larger than the 20 MiB that an image may have"), "{why}");

    let many = (0..1500).fold(Layer::new(), |layer, at| layer.file(&format!("f{at}"), b"")).tar();
    let why = refused(&lab, &lab.registry.put("many", &Image::new(vec![many], json!({})))).await;
    assert!(why.contains("more than 1000 files"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_was_cut_short_goes_on_where_it_was() {
    let lab = Lab::new().await;
    let name = lab.registry.put("web", &packing::web());
    lab.registry.shelf.lock().unwrap().cut_once = Some(200_000);
    let container = crate::lab::container("cut-0", &name);
    let why = lab.runtime().start(&container).await.unwrap_err().to_string();
    assert!(why.contains("stopped"), "{why}");
    assert!(lab.stored().iter().any(|path| path.to_str().unwrap().contains("/pulls/")));
    lab.runtime().start(&container).await.unwrap();
    let ranges = lab.registry.shelf.lock().unwrap().ranges.clone();
    assert!(ranges.iter().any(|range| range != "bytes=0-"), "{ranges:?}");
    assert!(!lab.stored().iter().any(|path| path.to_str().unwrap().contains("/pulls/")));
    lab.runtime().stop("cut-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_needed_and_used() {
    let lab = Lab::new().await;
    let name = lab.registry.put("secret", &packing::web());
    // "user:right"
    lab.registry.shelf.lock().unwrap().password = Some("dXNlcjpyaWdodA==".to_owned());
    let why = refused(&lab, &name).await;
    assert!(why.contains("set credentials for"), "{why}");

    let address = lab.registry.address.clone();
    let with = |password: &str| {
        let credentials = Credentials { username: "user".into(), password: password.into() };
        Lab::with(|options| {
            options.registries.insert(address.clone(), credentials);
        })
    };
    let wrong = with("wrong").await;
    let why = refused(&wrong, &name).await;
    assert!(why.contains("check the ones that are set"), "{why}");
    let right = with("right").await;
    right.runtime().start(&container("ok-0", &name)).await.unwrap();
    right.runtime().stop("ok-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_are_here_need_no_registry_and_those_in_use_are_kept() {
    let lab = Lab::with(|options| options.read_timeout = Duration::from_secs(1)).await;
    let keeper = lab.shell("keep-0", "sleep 100");
    lab.runtime().start(&keeper).await.unwrap();
    let freed = lab.runtime().gc(Duration::ZERO).await;
    assert_eq!((freed.images, freed.layers), (0, 0));
    let asked = lab.registry.shelf.lock().unwrap().blobs_asked;
    lab.runtime().start(&lab.shell("more-0", "sleep 100")).await.unwrap();
    // The description is asked for again, the layers are not.
    assert!(lab.registry.shelf.lock().unwrap().blobs_asked <= asked + 1);
    lab.registry.shelf.lock().unwrap().password = Some("nobody knows".to_owned());
    for name in ["keep-0", "more-0"] {
        lab.runtime().stop(name).await.unwrap();
    }
    let freed = lab.runtime().gc(Duration::ZERO).await;
    assert_eq!((freed.images, freed.layers), (1, 2));
    assert_eq!(lab.stored(), Vec::<std::path::PathBuf>::new());
}
